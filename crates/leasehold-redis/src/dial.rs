//! How a connection is made: the way to the server, the log-in, the first words.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use leasehold_core::{Clock, Fault, FaultKind, Sleep};
use redis::{
    AsyncConnectionConfig, ProtocolVersion, RedisConnectionInfo, Value,
    aio::{AsyncPushSender, MultiplexedConnection},
};

use crate::{
    checks,
    config::RedisConfig,
    error, guard,
    link::Link,
    net::{Meter, Stream},
    pulse::Pulse,
    roster::Roster,
    sentinel::Sentinels,
    site::{Goal, Site},
    time::before,
    topology::{Endpoint, Topology},
};

/// How many requests may wait for a turn at a connection before their senders wait.
const QUEUE: usize = 1024;

/// What all connections of a client are made with.
pub(crate) struct Dial {
    pub(crate) config: RedisConfig,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) pulse: Arc<Pulse>,
    pub(crate) sentinels: Option<Sentinels>,
    /// Whom of a cluster to ask who the others are.
    pub(crate) roster: Roster,
    place: String,
}

/// Where the pushes of a connection go, and which channel they come from.
#[derive(Clone)]
pub(crate) struct Pushes {
    pub(crate) channel: String,
    pub(crate) sender: Arc<dyn AsyncPushSender>,
    /// Why the server refused to push, when it did.
    pub(crate) refused: Arc<Mutex<Option<Fault>>>,
}

impl Dial {
    pub(crate) fn new(config: RedisConfig, clock: Arc<dyn Clock>) -> Self {
        Self {
            pulse: Arc::new(Pulse::new(config.reply_limit())),
            sentinels: Sentinels::of(&config),
            roster: match &config.topology {
                Topology::Cluster { seeds } => Roster::new(seeds.clone()),
                _ => Roster::default(),
            },
            place: config.to_string(),
            clock,
            config,
        }
    }

    /// Whether another server may take this one's place.
    pub(crate) const fn is_many(&self) -> bool {
        !matches!(self.config.topology, Topology::One(_))
    }

    /// The store in messages.
    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    /// Opens a connection that is driven by the runtime which polls this.
    pub(crate) async fn open(
        &self,
        site: &Site,
        pushes: Option<&Pushes>,
        patience: Duration,
    ) -> Result<Arc<Link>, Fault> {
        let limit = self.clock.now().after(self.config.connect_timeout);
        let limit = Sleep::until(Arc::clone(&self.clock), limit);
        match before(limit, self.open_in_time(site, pushes, patience)).await {
            Some(opened) => opened,
            None => Err(Fault::new(
                FaultKind::Unavailable,
                format!("{} did not answer within {:?}", site.place, self.config.connect_timeout),
            )),
        }
    }

    async fn open_in_time(
        &self,
        site: &Site,
        pushes: Option<&Pushes>,
        patience: Duration,
    ) -> Result<Arc<Link>, Fault> {
        let endpoint = self.find(site).await?;
        let meter = Arc::new(Meter::default());
        let stream = Stream::connect(&endpoint, &self.config, Arc::clone(&meter)).await?;
        let mut settings = AsyncConnectionConfig::new()
            .set_connection_timeout(None)
            .set_response_timeout(None)
            .set_pipeline_buffer_size(QUEUE);
        if let Some(pushes) = pushes {
            settings = settings.set_push_sender(Arc::clone(&pushes.sender));
        }
        let opened =
            MultiplexedConnection::new_with_config(&self.log_in()?, stream, settings).await;
        let (connection, driver) = opened.map_err(|error| error::fault(&site.place, &error))?;
        let link = Link::drive(connection, driver, meter, endpoint, patience, &self.pulse);
        // It is cut when this future is dropped before its end, as no one else has it.
        self.introduce(&link, site, pushes).await?;
        Ok(link)
    }

    /// Which server a connection to this site goes to now.
    async fn find(&self, site: &Site) -> Result<Endpoint, Fault> {
        match (&site.goal, &self.sentinels) {
            (Goal::Server(endpoint), _) => Ok(endpoint.clone()),
            (Goal::Master, Some(sentinels)) => sentinels.master(&self.config, false).await,
            (Goal::Master, None) => unreachable!("only sentinels name a master"),
            (Goal::Anyone, _) => Ok(self.roster.next().expect("a cluster has seeds")),
        }
    }

    fn log_in(&self) -> Result<RedisConnectionInfo, Fault> {
        let mut info = RedisConnectionInfo::default()
            .set_protocol(ProtocolVersion::RESP3)
            .set_skip_set_lib_name()
            .set_db(self.config.database.into());
        if let Some(username) = &self.config.username {
            info = info.set_username(username);
        }
        if let Some(password) = self.config.current_password()? {
            info = info.set_password(password);
        }
        Ok(info)
    }

    async fn introduce(
        &self,
        link: &Arc<Link>,
        site: &Site,
        pushes: Option<&Pushes>,
    ) -> Result<(), Fault> {
        let fault = |error| error::fault(&site.place, &error);
        let mut words = redis::pipe();
        // Who may not name itself works without a name.
        words.cmd("CLIENT").arg("SETNAME").arg(&self.config.client_name);
        words.cmd("TIME");
        let asks_role = matches!(site.goal, Goal::Master);
        if asks_role {
            words.cmd("ROLE");
        }
        let sent = self.clock.now();
        let mut answers = link.ask_all(&words).await.map_err(fault)?.into_iter().skip(1);
        if let Some(answer) = answers.next() {
            site.offset.learn(sent, self.clock.now(), &answer);
        }
        // The sentinels may name one that does not know of it yet, or not any more.
        if asks_role && answers.next().is_some_and(|role| is_replica(&role)) {
            let message = format!("{}: {} is a replica", site.place, link.endpoint());
            return Err(Fault::new(FaultKind::Unavailable, message));
        }
        // Of several servers each is looked at; the only one was when the client was made.
        let has_locks = !matches!(site.goal, Goal::Anyone);
        if self.is_many() && has_locks && !site.has_seen(link.endpoint()) {
            checks::check(self, &site.place, link).await?;
            site.saw(link.endpoint());
        }
        if let Some(longest) = self.config.restart_guard
            && has_locks
        {
            guard::look(self, &site.place, link, longest).await?;
        }
        if let Some(pushes) = pushes {
            let refused = match link.subscribe(&pushes.channel).await {
                Ok(()) => None,
                Err(error) if error::remedy(&error) == error::Remedy::None => Some(fault(error)),
                Err(error) => return Err(fault(error)),
            };
            if let Some(fault) = &refused {
                tracing::warn!(%fault, "the server pushes nothing; waiters poll");
            }
            *pushes.refused.lock().unwrap_or_else(PoisonError::into_inner) = refused;
        }
        Ok(())
    }
}

/// What a server answers to ROLE that takes no writes. One that may not be asked refuses writes.
fn is_replica(role: &Value) -> bool {
    let Value::Array(parts) = role else { return false };
    matches!(parts.first(), Some(Value::BulkString(role)) if role != b"master")
}

impl fmt::Debug for Dial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dial").field("config", &self.config).finish_non_exhaustive()
    }
}

impl fmt::Debug for Pushes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pushes").field("refused", &self.refused).finish_non_exhaustive()
    }
}
