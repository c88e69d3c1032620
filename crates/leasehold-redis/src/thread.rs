//! The client's own thread: a small runtime with a connection of its own, over which the server
//! pushes. It beats for who waits, looks when something runs out, gives back what was dropped, and
//! ends the client.

use std::{
    sync::{Arc, Mutex, PoisonError, atomic::AtomicBool},
    thread,
    time::Duration,
};

use leasehold_core::{ClientId, Clock, Fault, FaultKind, LocalTime, SystemClock, Wake, defaults};
use redis::{PushInfo, PushKind, Value};
use tokio::{
    runtime::{Builder, Runtime},
    sync::oneshot,
    task::JoinHandle,
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
        Fleet::One(Node::new(0, Arc::clone(&ear)))
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
    loop {
        // From here on whoever enters the book wakes this task.
        client.desk.plan(LocalTime::MAX);
        let now = client.now();
        let due = client.book.due(now, DUE_MAX);
        if !due.is_empty() {
            look(&client, due).await;
            continue;
        }
        next_beat = match next_beat {
            _ if !client.book.is_waiting() => None,
            None => Some(now.after(defaults::BEAT)),
            Some(at) if at <= now => {
                beat_for_all(&client).await;
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
            () = sleep(pause), if next != LocalTime::MAX => false,
        };
        if again {
            beat_for_all(&client).await;
            next_beat = Some(client.now().after(defaults::BEAT));
        }
    }
}

async fn beat_for_all(client: &Client) {
    for locks in client.book.locks().chunks(PORTION) {
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

/// Gives back what was dropped, until the client ends.
async fn give_back(client: Arc<Client>) {
    let mut back_off = BackOff::new(PAUSE_MIN, PAUSE_MAX);
    while !client.has_ended() {
        let orders = client.desk.take(PORTION);
        if orders.is_empty() {
            client.desk.ordered.notified().await;
            continue;
        }
        let (left, _) = carry_out(&client, orders, client.command_deadline()).await;
        if left.is_empty() {
            back_off = BackOff::new(PAUSE_MIN, PAUSE_MAX);
        } else {
            client.desk.put_back(left);
            let pause = sleep(back_off.pause());
            tokio::select! {
                () = pause => {}
                // The end does not wait for it.
                () = client.desk.ordered.notified(), if client.has_ended() => {}
            }
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
        client.desk.give_back(name, taken.keys, taken.copies);
    }
    for (name, keys) in estate.watchers {
        client.desk.unwatch(name, keys);
    }
    if let Some(running) = giving_back.take() {
        // It ends after what it has in hand.
        let _ = running.await;
    }
    let deadline = client.command_deadline();
    loop {
        let orders = client.desk.take(PORTION);
        if orders.is_empty() {
            return Ok(());
        }
        let (left, why) = carry_out(client, orders, deadline).await;
        client.desk.put_back(left);
        if let Some(fault) = why {
            return Err(fault);
        }
    }
}
