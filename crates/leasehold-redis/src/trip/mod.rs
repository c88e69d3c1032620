//! One request until its answer: sent again with the same token and attempt for as long as that can
//! help and the caller waits (rule L7).

mod batch;

use std::{sync::Arc, time::Duration};

use leasehold_core::{Fault, FaultKind, LocalTime, LockId, Sleep};
use redis::{Cmd, RedisError, Value};

use crate::{
    client::Client,
    error::{self, Remedy},
    fleet::Node,
    lane::{Lane, Lanes, NoLink, ended},
    link::Link,
    script::{LockKeys, Request},
    site::Site,
    slots::{redirection, slot_of},
    time::{BackOff, before, until},
};

pub(crate) use self::batch::send_all;

/// The pauses between two tries.
const PAUSE_MIN: Duration = Duration::from_millis(5);
const PAUSE_MAX: Duration = Duration::from_millis(250);
/// How often a request follows a server that sends it elsewhere without a pause.
const HURRIES: u32 = 4;

/// Where a request travels, until when, and what became of it so far.
pub(crate) struct Trip<'a> {
    client: &'a Client,
    node: Arc<Node>,
    lane: Arc<Lane>,
    /// Which server of a cluster has the lock, may change on the way; this does not.
    slot: Option<u16>,
    /// Where the lock is on its way to: asked next, and only then.
    ask: Option<Arc<Node>>,
    from: From,
    /// How many replicas are waited for after each send.
    replicas: u32,
    /// How many of them had what was sent last, or why that is not known.
    pub(crate) acknowledged: Result<u32, Fault>,
    pub(crate) deadline: LocalTime,
    back_off: BackOff,
    /// The server has said where to go: there is nothing to wait for.
    hurries: bool,
    redirections: u32,
    /// How often it was sent.
    pub(crate) sends: u32,
    /// Whether a send that was not answered may have taken effect, or may yet do so.
    pub(crate) in_doubt: bool,
    /// Whether it asks for a grant, which a server may have to hold back.
    is_guarded: bool,
    /// Until when the last try was held back.
    pub(crate) held_until: Option<LocalTime>,
}

/// Over which connections requests travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum From {
    /// Those of the runtime that this is called in.
    Here,
    /// Those of the client's own thread, also at the client's end.
    Own,
}

/// What one try came to.
pub(crate) enum Once<R> {
    /// The answer, which may be a refusal for good.
    Answer(Result<R, Fault>),
    /// Another try may help.
    Again(Fault),
}

impl<'a> Trip<'a> {
    /// To whoever has a lock, from where this is called.
    pub(crate) fn from_here(client: &'a Client, keys: &LockKeys, deadline: LocalTime) -> Self {
        let slot = client.fleet.cluster().map(|_| slot_of(keys.state().as_bytes()));
        Self::on(client, From::Here, client.node_of(slot), slot, deadline)
    }

    /// To one server, from where this is called.
    pub(crate) fn to(client: &'a Client, node: &Arc<Node>, deadline: LocalTime) -> Self {
        Self::on(client, From::Here, Arc::clone(node), None, deadline)
    }

    /// The same for what is to be had by replicas before it counts, where that is asked for.
    pub(crate) fn replicated(mut self) -> Self {
        let config = &self.client.dial.config;
        if config.wait_replicas > 0 {
            self.replicas = config.wait_replicas;
            self.deadline = self.deadline.after(config.wait_replicas_timeout);
            self.lane = self.way();
        }
        self
    }

    /// The same for what asks for a grant.
    pub(crate) fn guarded(self) -> Self {
        Self { is_guarded: self.client.dial.config.restart_guard.is_some(), ..self }
    }

    /// Gives it the time of a trip that begins now.
    pub(crate) fn begin_anew(&mut self) {
        let mut deadline = self.client.command_deadline();
        if self.replicas > 0 {
            deadline = deadline.after(self.client.dial.config.wait_replicas_timeout);
        }
        self.deadline = self.deadline.max(deadline);
    }

    fn on(
        client: &'a Client,
        from: From,
        node: Arc<Node>,
        slot: Option<u16>,
        deadline: LocalTime,
    ) -> Self {
        Self {
            lane: from.choose(&node.lanes),
            client,
            node,
            slot,
            ask: None,
            from,
            replicas: 0,
            acknowledged: Ok(0),
            deadline,
            back_off: BackOff::new(PAUSE_MIN, PAUSE_MAX),
            hurries: false,
            redirections: 0,
            sends: 0,
            in_doubt: false,
            is_guarded: false,
            held_until: None,
        }
    }

    /// Turns to the server that has the lock now.
    pub(crate) fn aim(&mut self) {
        if self.slot.is_some() {
            let node = match &self.ask {
                Some(node) => Arc::clone(node),
                None => self.client.node_of(self.slot),
            };
            if node.id != self.node.id {
                self.node = node;
                self.lane = self.way();
            }
        }
    }

    fn way(&self) -> Arc<Lane> {
        self.from.choose(self.lanes())
    }

    fn lanes(&self) -> &Lanes {
        if self.replicas > 0 { self.node.patient() } else { &self.node.lanes }
    }

    /// The server that it goes to.
    pub(crate) fn site(&self) -> &Arc<Site> {
        self.node.site()
    }

    /// Sends a request until it is answered or the deadline has come.
    pub(crate) async fn send<R>(&mut self, request: &Request<R>) -> Result<R, Fault> {
        loop {
            match self.once(request).await {
                Once::Answer(answer) => return answer,
                Once::Again(fault) => self.pause(fault).await?,
            }
        }
    }

    /// Waits until another try makes sense.
    ///
    /// # Errors
    /// `fault`, when there is no time for another try.
    pub(crate) async fn pause(&mut self, fault: Fault) -> Result<(), Fault> {
        if self.client.has_ended() && self.from == From::Here {
            return Err(ended());
        }
        let clock = &self.client.dial.clock;
        if std::mem::take(&mut self.hurries) && clock.now() < self.deadline {
            return Ok(());
        }
        let next = clock.now().after(self.back_off.pause());
        if next >= self.deadline {
            return Err(fault);
        }
        until(clock, next).await;
        Ok(())
    }

    /// Sends a request once.
    pub(crate) async fn once<R>(&mut self, request: &Request<R>) -> Once<R> {
        self.aim();
        let asks = self.ask.take().is_some();
        let link = match self.link().await {
            Ok(link) => link,
            Err(fault) if fault.is_retryable() => return Once::Again(fault),
            Err(fault) => return Once::Answer(Err(fault)),
        };
        if self.is_guarded
            && let Some(hold) = link.hold()
        {
            // The very connection that it would go out on: no server is taken for another.
            if let Some((end, fault)) = hold.holds(&self.lane.site().place, self.client.now()) {
                self.held_until = Some(end);
                return Once::Again(fault);
            }
            hold.mark(&link).await;
        }
        let mut answer = self.exchange(&link, request.by_digest(), asks).await;
        if let Err(error) = &answer
            && error::remedy(error) == Remedy::SendScript
        {
            answer = self.exchange(&link, &request.by_text(), asks).await;
        }
        match answer {
            Ok(value) => Once::Answer(request.read(value).map_err(|fault| self.named(fault))),
            Err(error) => self.failed(&link, &error),
        }
    }

    /// A connection, within the deadline. A runtime that does not connect soon may be blocked by
    /// the caller itself: then it is the client's thread that sends.
    pub(crate) async fn link(&mut self) -> Result<Arc<Link>, Fault> {
        loop {
            if let Some(link) = self.lane.open_link() {
                return Ok(link);
            }
            let is_own = Arc::ptr_eq(&self.lane, self.lanes().own());
            let (now, soon) = (self.client.now(), self.client.dial.config.reply_limit());
            if !is_own && self.lane.connects_since().is_some_and(|since| since.after(soon) <= now) {
                // Somebody has waited for that already.
                self.lane = Arc::clone(self.lanes().own());
                continue;
            }
            let soon = now.after(soon);
            // Another server of a cluster may have the lock before this one can be reached.
            let is_cluster = self.client.fleet.cluster().is_some();
            let patient = is_own && !is_cluster;
            let limit = if patient { self.deadline } else { self.deadline.min(soon) };
            let limit = Sleep::until(Arc::clone(&self.client.dial.clock), limit);
            match before(limit, self.lane.link()).await {
                Some(Ok(link)) => return Ok(link),
                Some(Err(NoLink::Fault(fault))) => {
                    self.doubt();
                    return Err(fault);
                }
                None | Some(Err(NoLink::Gone)) if !is_own && self.client.now() < self.deadline => {
                    self.lane = Arc::clone(self.lanes().own());
                }
                Some(Err(NoLink::Gone)) => return Err(ended()),
                None => {
                    self.doubt();
                    return Err(self.silent());
                }
            }
        }
    }

    /// What is known of the cluster may be wrong.
    fn doubt(&self) {
        if let Some(cluster) = self.client.fleet.cluster() {
            cluster.doubted.notify_one();
        }
    }

    /// One request and its answer. The first is limited by the watch over the connection, which
    /// takes no timer; another try ends with the deadline at the latest.
    async fn exchange(
        &mut self,
        link: &Link,
        command: &Cmd,
        asks: bool,
    ) -> Result<Value, RedisError> {
        self.sends += 1;
        let answer = if asks || self.replicas > 0 {
            self.exchange_many(link, command, asks).await
        } else if self.sends == 1 {
            link.ask(command).await
        } else {
            let limit = Sleep::until(Arc::clone(&self.client.dial.clock), self.deadline);
            match before(limit, link.ask(command)).await {
                Some(answer) => answer,
                None => Err(std::io::Error::from(std::io::ErrorKind::TimedOut).into()),
            }
        };
        match answer? {
            Value::ServerError(error) => Err(error.into()),
            value => Ok(value),
        }
    }

    /// The same with what goes with it: leave to ask for a lock that is on its way, and the wait for
    /// replicas. All of it is one write, so the replicas are those of the server that answered.
    async fn exchange_many(
        &mut self,
        link: &Link,
        command: &Cmd,
        asks: bool,
    ) -> Result<Value, RedisError> {
        let mut all = redis::pipe();
        if asks {
            all.cmd("ASKING");
        }
        all.add_command(command.clone());
        if self.replicas > 0 {
            let timeout = self.client.dial.config.wait_replicas_timeout.as_millis();
            all.cmd("WAIT").arg(self.replicas).arg(u64::try_from(timeout).unwrap_or(u64::MAX));
        }
        let limit = Sleep::until(Arc::clone(&self.client.dial.clock), self.deadline);
        let mut answers = match before(limit, link.ask_all(&all)).await {
            Some(answers) => answers?,
            None => return Err(std::io::Error::from(std::io::ErrorKind::TimedOut).into()),
        };
        if self.replicas > 0 {
            self.acknowledged = match answers.pop() {
                Some(Value::Int(count)) => Ok(u32::try_from(count).unwrap_or(0)),
                Some(Value::ServerError(error)) => {
                    Err(error::fault(&self.lane.site().place, &error.into()))
                }
                _ => Ok(0),
            };
        }
        Ok(answers.pop().unwrap_or(Value::Nil))
    }

    /// Whether enough replicas have what was sent last.
    ///
    /// # Errors
    /// Fewer have it.
    pub(crate) fn is_replicated(&self, lock: &LockId) -> Result<(), Fault> {
        let count = self.acknowledged.clone()?;
        if count >= self.replicas {
            return Ok(());
        }
        let timeout = self.client.dial.config.wait_replicas_timeout;
        let (wanted, place) = (self.replicas, &self.lane.site().place);
        Err(Fault::new(
            FaultKind::Unavailable,
            format!(
                "{place}: {count} of {wanted} replicas have \"{}\" after {timeout:?}",
                lock.name()
            ),
        ))
    }

    fn failed<R>(&mut self, link: &Link, error: &RedisError) -> Once<R> {
        let remedy = error::remedy(error);
        tracing::debug!(store = self.lane.site().place.as_str(), ?remedy, "a request failed");
        match remedy {
            Remedy::None | Remedy::SendScript => {
                Once::Answer(Err(error::fault(&self.lane.site().place, error)))
            }
            Remedy::Wait => {
                self.doubt();
                Once::Again(error::fault(&self.lane.site().place, error))
            }
            Remedy::Follow => self.follow(link, error),
            Remedy::FindMaster => {
                link.cut();
                Once::Again(error::fault(&self.lane.site().place, error))
            }
            Remedy::Reconnect => {
                self.in_doubt = true;
                self.doubt();
                if link.is_over() {
                    // The runtime that drove it may be blocked: the client's thread is not.
                    self.lane = Arc::clone(self.lanes().own());
                    return Once::Again(self.lost());
                }
                // The deadline came first, or what was read made no sense.
                if error.kind() == redis::ErrorKind::Parse {
                    link.cut();
                }
                Once::Again(self.silent())
            }
        }
    }

    /// The server has sent it elsewhere.
    fn follow<R>(&mut self, link: &Link, error: &RedisError) -> Once<R> {
        let fault = error::fault(&self.lane.site().place, error);
        let Some(cluster) = self.client.fleet.cluster() else { return Once::Answer(Err(fault)) };
        let Some((slot, to)) = redirection(error, link.endpoint()) else {
            // It does not know the other's address yet.
            self.doubt();
            return Once::Again(again(fault));
        };
        if error::is_ask(error) {
            self.ask = Some(cluster.node(&to));
        } else {
            cluster.moved(slot, &to);
        }
        self.redirections += 1;
        self.hurries = !self.redirections.is_multiple_of(HURRIES);
        Once::Again(again(fault))
    }

    fn lost(&self) -> Fault {
        let message = format!("the connection to {} was lost", self.lane.site().place.as_str());
        Fault::new(FaultKind::Unavailable, message)
    }

    fn silent(&self) -> Fault {
        let message = format!("{} did not answer in time", self.lane.site().place.as_str());
        Fault::new(FaultKind::Unavailable, message)
    }

    /// A fault that names the server.
    fn named(&self, fault: Fault) -> Fault {
        Fault::new(fault.kind(), format!("{}: {fault}", self.lane.site().place.as_str()))
    }
}

impl From {
    fn choose(self, lanes: &Lanes) -> Arc<Lane> {
        match self {
            Self::Here => lanes.here(),
            Self::Own => Arc::clone(lanes.own()),
        }
    }
}

/// A server that sends a request elsewhere has not refused it.
fn again(fault: Fault) -> Fault {
    Fault::new(FaultKind::Unavailable, fault.to_string())
}
