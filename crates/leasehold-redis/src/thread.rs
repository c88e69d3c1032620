//! The client's own thread: a small runtime with a connection of its own, over which the server
//! pushes. It beats for who waits, looks when something runs out, gives back what was dropped, and
//! ends the client.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, PoisonError, atomic::AtomicBool},
    thread,
    time::Duration,
};

use leasehold_core::{
    ClientId, Clock, Fault, FaultKind, LocalTime, LockId, SystemClock, Wake, defaults,
};
use redis::{PushInfo, PushKind, Value};
use tokio::{
    runtime::{Builder, Runtime},
    sync::oneshot,
    task::{JoinHandle, JoinSet},
    time::sleep,
};

use crate::{
    book::{Beat, Book},
    checks::{self, Facts},
    client::Client,
    config::RedisConfig,
    desk::{Desk, Ending, Order},
    dial::{Dial, Pushes},
    fleet::{Cluster, Fleet, Node},
    follow::{follow_master, follow_slots, learn_slots},
    lane::{Lane, NoLink, ended},
    link::Link,
    script::{self, Keyspace, Pulse, Push, parse_push},
    site::{Goal, Site},
    time::BackOff,
    topology::Topology,
    trip::{From, send_all},
};

/// How much is sent before anything else gets a turn.
const PORTION: usize = 512;
/// How many waiters are looked after at one time.
const DUE_MAX: usize = 4096;
/// The pauses after something could not be given back.
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Starts a client's thread, connects, and asks the server what it is.
pub(crate) async fn connect(config: RedisConfig) -> Result<Arc<Client>, Fault> {
    let space = Keyspace::new(&format!("{}:", config.prefix))?;
    let runtime = Builder::new_current_thread().enable_io().enable_time().build();
    let runtime = runtime.map_err(no_thread)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let (id, book) = (ClientId::random(), Arc::new(Book::default()));
    let desk = Arc::new(Desk::default());
    let is_cluster = matches!(config.topology, Topology::Cluster { .. });
    if is_cluster && config.database != 0 {
        let message = "a cluster has no other database than 0";
        return Err(Fault::new(FaultKind::Unsupported, message));
    }
    let goal = match &config.topology {
        Topology::One(endpoint) => Goal::Server(endpoint.clone()),
        Topology::Sentinel { .. } => Goal::Master,
        Topology::Cluster { .. } => Goal::Anyone,
    };
    let site = Arc::new(Site::new(goal, &config));
    let dial = Arc::new(Dial::new(config, Arc::clone(&clock)));
    let no_pushes = Arc::default();
    let pushes = Pushes {
        channel: space.channel(id),
        sender: Arc::new(receiver(Arc::clone(&book), Arc::clone(&desk), clock)),
        refused: Arc::clone(&no_pushes),
    };
    let home = runtime.handle().clone();
    let ear = Lane::new(home.clone(), Arc::clone(&dial), Arc::clone(&site), Some(pushes));
    let ear = Arc::new(ear);
    let fleet = if is_cluster {
        Fleet::Cluster(Cluster::new(home, Arc::clone(&dial)))
    } else {
        Fleet::One(Node::new(0, &home, &dial, Arc::clone(&ear)))
    };
    let client = Arc::new(Client {
        id,
        fleet,
        ear,
        dial,
        site,
        space,
        book,
        desk,
        no_pushes,
        facts: Mutex::default(),
        ended: AtomicBool::new(false),
        ending: tokio::sync::Notify::new(),
    });
    let (opened, answer) = oneshot::channel();
    let of_thread = Arc::clone(&client);
    thread::Builder::new()
        .name("leasehold-redis".into())
        .spawn(move || run(runtime, of_thread, opened))
        .map_err(no_thread)?;
    answer.await.map_err(|_| ended())??;
    Ok(client)
}

fn no_thread(error: std::io::Error) -> Fault {
    let message = format!("the client's thread cannot be started: {error}");
    Fault::new(FaultKind::Unavailable, message).with_source(error)
}

/// Takes what the server pushes: it wakes, or says when to look.
fn receiver(
    book: Arc<Book>,
    desk: Arc<Desk>,
    clock: Arc<dyn Clock>,
) -> impl Fn(PushInfo) -> Result<(), std::convert::Infallible> {
    move |info| {
        let PushInfo { kind: PushKind::Message, data } = info else { return Ok(()) };
        let Some(Value::BulkString(message)) = data.get(1) else { return Ok(()) };
        match parse_push(message) {
            Some(Push::Look(ids)) => book.pushed(&ids).iter().for_each(Wake::notify),
            Some(Push::LookIn(after, ids)) => {
                let at = clock.now().after(after).after(crate::client::AFTER_EXPIRY);
                book.look_at(&ids, at);
                desk.waits(Some(at));
            }
            None => {}
        }
        Ok(())
    }
}

type Opened = oneshot::Sender<Result<(), Fault>>;

fn run(runtime: Runtime, client: Arc<Client>, opened: Opened) {
    runtime.block_on(live(&client, opened));
    client.give_up(client.book.end().wakes);
    for link in client.dial.pulse.living() {
        link.cut();
    }
    for ending in client.desk.leave() {
        if let Ending::Close(reply) = ending {
            let _ = reply.send(Ok(()));
        }
    }
    // A look-up of a name that hangs must not keep the thread.
    runtime.shutdown_background();
}

async fn live(client: &Arc<Client>, opened: Opened) {
    let pulse = Arc::clone(&client.dial.pulse);
    tokio::spawn(async move { pulse.run().await });
    match open(client).await {
        Ok(facts) => *client.facts.lock().unwrap_or_else(PoisonError::into_inner) = facts,
        Err(fault) => {
            let _ = opened.send(Err(fault));
            return;
        }
    }
    if opened.send(Ok(())).is_err() {
        // Nobody waits for the client any more.
        return;
    }
    let reconnected = Arc::new(tokio::sync::Notify::new());
    tokio::spawn(keep(Arc::clone(client), Arc::clone(&reconnected)));
    tokio::spawn(beat(Arc::clone(client), reconnected));
    tokio::spawn(follow_master(Arc::clone(client)));
    tokio::spawn(follow_slots(Arc::clone(client)));
    let giving_back = tokio::spawn(give_back(Arc::clone(client)));
    end(client, giving_back).await;
}

/// The first connection; one that can be had only later than it may take is an error now.
async fn open(client: &Client) -> Result<Facts, Fault> {
    let limit = client.now().after(client.dial.config.connect_timeout);
    loop {
        let link = match client.ear.link().await {
            Ok(link) => link,
            // A failover may be under way; the lane pauses between two tries.
            Err(NoLink::Fault(fault))
                if client.dial.is_many() && fault.is_retryable() && client.now() < limit =>
            {
                continue;
            }
            Err(NoLink::Fault(fault)) => return Err(fault),
            Err(NoLink::Gone) => return Err(ended()),
        };
        match look_around(client, &link).await {
            // A connection that was lost meanwhile says nothing of the server.
            Err(_) if link.is_over() && client.now() < limit => {}
            answer => return answer,
        }
    }
}

/// What there is at the other end: the server, or the servers of the cluster.
async fn look_around(client: &Client, link: &Link) -> Result<Facts, Fault> {
    if let Some(cluster) = client.fleet.cluster() {
        learn_slots(cluster, link).await?;
        // Each server is looked at when it is connected to.
        return checks::ask(&client.site.place, link).await;
    }
    checks::check(&client.dial, &client.site.place, link).await
}

/// Keeps the thread's connection, and with it the pushes.
async fn keep(client: Arc<Client>, reconnected: Arc<tokio::sync::Notify>) {
    let mut first = true;
    loop {
        match client.ear.link().await {
            Ok(link) => {
                if !std::mem::take(&mut first) {
                    // What was pushed meanwhile is lost: everybody is to be looked after.
                    tracing::info!(store = client.dial.place(), "connected again");
                    reconnected.notify_one();
                }
                link.over().await;
                tracing::info!(store = client.dial.place(), "the connection was lost");
            }
            // The lane pauses between two tries.
            Err(NoLink::Fault(fault)) => tracing::debug!(%fault, "not connected"),
            Err(NoLink::Gone) => return,
        }
    }
}

/// Beats for who waits, and looks when something runs out.
async fn beat(client: Arc<Client>, reconnected: Arc<tokio::sync::Notify>) {
    let mut next_beat: Option<LocalTime> = None;
    let mut looks = Looks::new(Arc::clone(&client));
    loop {
        // From here on whoever enters the book wakes this task.
        client.desk.plan(LocalTime::MAX);
        let now = client.now();
        let due = client.book.due(now, DUE_MAX);
        if !due.is_empty() {
            looks.after(due).await;
            continue;
        }
        next_beat = match next_beat {
            _ if !client.book.is_waiting() => None,
            None => Some(now.after(defaults::BEAT)),
            Some(at) if at <= now => {
                looks.after_all().await;
                Some(client.now().after(defaults::BEAT))
            }
            later => later,
        };
        let next_look = client.book.next_look();
        let next = next_beat.into_iter().chain(next_look).min().unwrap_or(LocalTime::MAX);
        client.desk.plan(next);
        let pause = next.since(client.now());
        let again = tokio::select! {
            biased;
            () = reconnected.notified() => true,
            () = client.desk.waiting.notified() => false,
            () = looks.done() => false,
            () = sleep(pause), if next != LocalTime::MAX => false,
        };
        if again {
            looks.after_all().await;
            next_beat = Some(client.now().after(defaults::BEAT));
        }
    }
}

/// Looks after who waits. In a cluster the looks at different servers go side by side: one that does
/// not answer delays none elsewhere.
struct Looks {
    client: Arc<Client>,
    running: JoinSet<Option<u64>>,
    /// Parts of the store whose locks are all being looked after.
    busy: HashSet<u64>,
}

impl Looks {
    fn new(client: Arc<Client>) -> Self {
        Self { client, running: JoinSet::new(), busy: HashSet::new() }
    }

    /// Looks after these.
    async fn after(&mut self, beats: Vec<Beat>) {
        if self.client.fleet.cluster().is_none() {
            return look(&self.client, beats).await;
        }
        let mut parts: HashMap<u64, Vec<Beat>> = HashMap::new();
        for beat in beats {
            parts.entry(self.client.part_of(&beat.keys)).or_default().push(beat);
        }
        for beats in parts.into_values() {
            let client = Arc::clone(&self.client);
            self.running.spawn(async move {
                look(&client, beats).await;
                None
            });
        }
    }

    /// Looks after everybody who waits.
    async fn after_all(&mut self) {
        let locks = self.client.book.locks();
        if self.client.fleet.cluster().is_none() {
            return look_all(&self.client, &locks).await;
        }
        let mut parts: HashMap<u64, Vec<Arc<LockId>>> = HashMap::new();
        for lock in locks {
            parts.entry(self.client.part(&lock)).or_default().push(lock);
        }
        for (part, locks) in parts {
            if self.busy.insert(part) {
                let client = Arc::clone(&self.client);
                self.running.spawn(async move {
                    look_all(&client, &locks).await;
                    Some(part)
                });
            }
        }
    }

    /// Waits until one of the looks has come to its end; for ever, when there are none.
    async fn done(&mut self) {
        match self.running.join_next().await {
            Some(Ok(Some(part))) => drop(self.busy.remove(&part)),
            Some(_) => {}
            None => std::future::pending().await,
        }
    }
}

async fn look_all(client: &Client, locks: &[Arc<LockId>]) {
    for locks in locks.chunks(PORTION) {
        look(client, client.book.beats(locks)).await;
    }
}

/// Shows the server who waits, and wakes those that should ask.
async fn look(client: &Client, beats: Vec<Beat>) {
    if beats.is_empty() {
        return;
    }
    let requests: Vec<_> = beats
        .iter()
        .map(|beat| script::beat(&beat.keys, beat.waiters.iter(), beat.watchers.iter()))
        .collect();
    let answers = send_all(client, From::Own, client.command_deadline(), &requests).await;
    for (beat, answer) in beats.iter().zip(answers) {
        match answer {
            Ok(reply) => {
                let look = client.look_at(reply.waiting);
                for ((name, watches), pulse) in beat.names().zip(reply.pulses) {
                    match pulse {
                        Pulse::Waits => client.book.looks_at(&name, watches, look),
                        Pulse::Look => {
                            if let Some(wake) = client.book.wake_of(&name, watches) {
                                wake.notify();
                            }
                        }
                    }
                }
            }
            // The next beat, or the next connection, makes up for it; a look that was due is due
            // again.
            Err(fault) => {
                tracing::debug!(%fault, lock = %beat.lock, "a beat failed");
                let again = client.now().after(PAUSE_MAX);
                for (name, watches) in beat.names() {
                    client.book.looks_at(&name, watches, Some(again));
                }
            }
        }
    }
}

/// Gives back what was dropped, until the client ends. Each part of the store has its own pace: one
/// that does not answer holds up no other.
async fn give_back(client: Arc<Client>) {
    let (mut running, mut busy) = (JoinSet::new(), HashSet::new());
    while !client.has_ended() {
        if let Some((part, orders)) = client.desk.take(PORTION, &busy) {
            busy.insert(part);
            running.spawn(give_back_to(Arc::clone(&client), part, orders));
            continue;
        }
        tokio::select! {
            () = client.desk.ordered.notified() => {}
            Some(done) = running.join_next() => {
                if let Ok(part) = done {
                    busy.remove(&part);
                }
            }
        }
    }
    // What they have in hand is put back for the end.
    while running.join_next().await.is_some() {}
}

async fn give_back_to(client: Arc<Client>, part: u64, mut orders: Vec<Order>) -> u64 {
    let mut back_off = BackOff::new(PAUSE_MIN, PAUSE_MAX);
    loop {
        (orders, _) = carry_out(&client, orders, client.command_deadline()).await;
        if orders.is_empty() || client.has_ended() {
            client.desk.put_back(part, orders);
            return part;
        }
        tokio::select! {
            () = sleep(back_off.pause()) => {}
            // The end does not wait for it.
            () = client.ending.notified() => {}
        }
    }
}

/// Carries out orders; gives those that may be carried out later, and why they were not.
async fn carry_out(
    client: &Client,
    orders: Vec<Order>,
    deadline: LocalTime,
) -> (Vec<Order>, Option<Fault>) {
    let requests: Vec<_> = orders.iter().map(|order| order.request(client.id)).collect();
    let answers = send_all(client, From::Own, deadline, &requests).await;
    let (mut left, mut why) = (Vec::new(), None);
    for (order, answer) in orders.into_iter().zip(answers) {
        match answer {
            Ok(()) => {}
            Err(fault) if fault.is_retryable() => {
                left.push(order);
                why = Some(fault);
            }
            Err(fault) => tracing::warn!(%fault, "something was not given back; its TTL ends it"),
        }
    }
    (left, why)
}

/// Waits for the end and brings it about.
async fn end(client: &Arc<Client>, giving_back: JoinHandle<()>) {
    let mut giving_back = Some(giving_back);
    loop {
        let endings = client.desk.endings();
        if endings.is_empty() {
            client.desk.ending.notified().await;
            continue;
        }
        if endings.iter().any(|ending| matches!(ending, Ending::Vanish)) {
            return;
        }
        let quits_at = endings.iter().find_map(|ending| match ending {
            Ending::Quit(at) => Some(*at),
            _ => None,
        });
        let closing = close(client, &mut giving_back);
        let closed = match quits_at {
            None => closing.await,
            Some(at) => {
                let limit = sleep(at.since(client.now()));
                tokio::select! { closed = closing => closed, () = limit => Ok(()) }
            }
        };
        let good = closed.is_ok();
        for ending in endings {
            if let Ending::Close(reply) = ending {
                let _ = reply.send(closed.clone());
            }
        }
        if good {
            return;
        }
    }
}

/// Gives back all that the client has (rule N6). After a failure it may be tried again.
async fn close(
    client: &Arc<Client>,
    giving_back: &mut Option<JoinHandle<()>>,
) -> Result<(), Fault> {
    // Who waits is told so before anything is given back.
    let estate = client.book.end();
    client.give_up(estate.wakes);
    client.desk.ordered.notify_one();
    for (name, taken) in estate.own {
        client.give_back(name, taken.keys, taken.copies);
    }
    for (name, keys) in estate.watchers {
        client.order(&Arc::clone(&keys), Order::Unwatch { name, keys });
    }
    if let Some(running) = giving_back.take() {
        // It ends after what it has in hand.
        let _ = running.await;
    }
    let deadline = client.command_deadline();
    let (mut closing, mut parts, mut why) = (JoinSet::new(), HashSet::new(), None);
    while let Some((part, orders)) = client.desk.take(PORTION, &parts) {
        parts.insert(part);
        closing.spawn(close_part(Arc::clone(client), part, orders, deadline));
    }
    while let Some(closed) = closing.join_next().await {
        why = closed.unwrap_or_else(|_| Some(ended())).or(why);
    }
    why.map_or(Ok(()), Err)
}

/// Gives back all that the client has in a part of the store; says why that failed.
async fn close_part(
    client: Arc<Client>,
    part: u64,
    mut orders: Vec<Order>,
    deadline: LocalTime,
) -> Option<Fault> {
    while !orders.is_empty() {
        let (left, why) = carry_out(&client, orders, deadline).await;
        client.desk.put_back(part, left);
        if why.is_some() {
            return why;
        }
        orders = client.desk.take_of(part, PORTION);
    }
    None
}
