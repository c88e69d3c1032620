//! How a connection is made: the way to the server, the log-in, the first words.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use leasehold_core::{Clock, Fault, FaultKind, Sleep};
use redis::{
    AsyncConnectionConfig, ProtocolVersion, RedisConnectionInfo,
    aio::{AsyncPushSender, MultiplexedConnection},
};

use crate::{
    config::RedisConfig,
    error,
    link::Link,
    net::{Meter, Stream},
    offset::Offset,
    pulse::Pulse,
    time::before,
    topology::Topology,
};

/// How many requests may wait for a turn at a connection before their senders wait.
const QUEUE: usize = 1024;

/// What all connections of a client are made with.
pub(crate) struct Dial {
    pub(crate) config: RedisConfig,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) pulse: Arc<Pulse>,
    pub(crate) offset: Offset,
    topology: Topology,
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
            offset: Offset::default(),
            topology: Topology::One(config.endpoint.clone()),
            place: config.to_string(),
            clock,
            config,
        }
    }

    /// The server in messages.
    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    /// Opens a connection that is driven by the runtime which polls this.
    pub(crate) async fn open(&self, pushes: Option<&Pushes>) -> Result<Arc<Link>, Fault> {
        let limit = self.clock.now().after(self.config.connect_timeout);
        let limit = Sleep::until(Arc::clone(&self.clock), limit);
        match before(limit, self.open_in_time(pushes)).await {
            Some(opened) => opened,
            None => Err(Fault::new(
                FaultKind::Unavailable,
                format!("{} did not answer within {:?}", self.place, self.config.connect_timeout),
            )),
        }
    }

    async fn open_in_time(&self, pushes: Option<&Pushes>) -> Result<Arc<Link>, Fault> {
        let meter = Arc::new(Meter::default());
        let endpoint = self.topology.endpoint();
        let stream = Stream::connect(endpoint, &self.config, Arc::clone(&meter)).await?;
        let mut settings = AsyncConnectionConfig::new()
            .set_connection_timeout(None)
            .set_response_timeout(None)
            .set_pipeline_buffer_size(QUEUE);
        if let Some(pushes) = pushes {
            settings = settings.set_push_sender(Arc::clone(&pushes.sender));
        }
        let opened =
            MultiplexedConnection::new_with_config(&self.log_in()?, stream, settings).await;
        let (connection, driver) = opened.map_err(|error| error::fault(&self.place, &error))?;
        let link = Link::drive(connection, driver, meter, &self.pulse);
        // It is cut when this future is dropped before its end, as no one else has it.
        self.introduce(&link, pushes).await?;
        Ok(link)
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

    async fn introduce(&self, link: &Arc<Link>, pushes: Option<&Pushes>) -> Result<(), Fault> {
        let fault = |error| error::fault(&self.place, &error);
        let mut words = redis::pipe();
        // Who may not name itself works without a name.
        words.cmd("CLIENT").arg("SETNAME").arg(&self.config.client_name);
        words.cmd("TIME");
        let sent = self.clock.now();
        let answers = link.ask_all(&words).await.map_err(fault)?;
        if let Some(answer) = answers.into_iter().nth(1) {
            self.offset.learn(sent, self.clock.now(), &answer);
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
