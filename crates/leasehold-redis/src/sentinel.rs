//! Asking the sentinels which server is the master.
//!
//! All are asked at once, and the answer of the latest election counts: one that is cut off from
//! the others may name a master that has been replaced for long.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use leasehold_core::{Fault, FaultKind};
use redis::{
    AsyncConnectionConfig, ProtocolVersion, RedisConnectionInfo, Value, aio::MultiplexedConnection,
};
use tokio::{task::JoinSet, time::timeout};

use crate::{
    config::RedisConfig,
    error,
    net::{Meter, Stream},
    topology::{Endpoint, Topology},
};

/// How long one sentinel may take, when a connection may take as long.
const ANSWER: Duration = Duration::from_secs(1);

/// The sentinels of a service.
pub(crate) struct Sentinels {
    service: String,
    known: Arc<[Known]>,
    latest: Mutex<Option<Master>>,
}

/// One sentinel, and the connection to it if there is one. Only the client's thread keeps its own:
/// a connection lives no longer than the runtime that opened it.
struct Known {
    endpoint: Endpoint,
    connection: Mutex<Option<MultiplexedConnection>>,
}

/// Which server is the master, and by which election.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Master {
    pub(crate) endpoint: Endpoint,
    epoch: u64,
}

/// What a sentinel says of the service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) master: Option<Endpoint>,
    pub(crate) epoch: u64,
    /// How many sentinels must agree that the master is down.
    pub(crate) quorum: Option<u32>,
    /// How many other sentinels it knows.
    pub(crate) others: Option<u32>,
}

impl Sentinels {
    /// The sentinels of a store that has some.
    pub(crate) fn of(config: &RedisConfig) -> Option<Self> {
        let Topology::Sentinel { sentinels, service } = &config.topology else { return None };
        let known = sentinels
            .iter()
            .map(|endpoint| Known { endpoint: endpoint.clone(), connection: Mutex::default() });
        Some(Self { service: service.clone(), known: known.collect(), latest: Mutex::default() })
    }

    /// Asks for the master. `keeps`: this runtime lives as long as the client, so connections are
    /// kept for the next time.
    pub(crate) async fn master(
        &self,
        config: &RedisConfig,
        keeps: bool,
    ) -> Result<Endpoint, Fault> {
        let enough = self.known.len() / 2 + 1;
        let (mut answered, mut best, mut why) = (0, None::<Master>, None);
        let mut questions = self.ask_all(config, keeps);
        while answered < enough
            && let Some(answer) = questions.join_next().await
        {
            match answer {
                Ok((_, Ok(told))) => {
                    answered += 1;
                    if let Some(endpoint) = told.master {
                        let master = Master { endpoint, epoch: told.epoch };
                        if best.as_ref().is_none_or(|best| best.epoch < master.epoch) {
                            best = Some(master);
                        }
                    }
                }
                Ok((_, Err(fault))) => why = Some(fault),
                Err(_) => {}
            }
        }
        match best {
            Some(master) => Ok(self.latest(master)),
            None if answered > 0 => Err(self.unavailable("no sentinel knows the service")),
            None => Err(why.unwrap_or_else(|| self.unavailable("no sentinel answers"))),
        }
    }

    /// What each says, or why it says nothing.
    pub(crate) async fn survey(
        &self,
        config: &RedisConfig,
    ) -> Vec<(Endpoint, Result<Told, Fault>)> {
        let mut questions = self.ask_all(config, false);
        let mut answers = Vec::new();
        while let Some(answer) = questions.join_next().await {
            if let Ok((at, answer)) = answer {
                answers.push((at, answer));
            }
        }
        answers.sort_by_key(|(at, _)| *at);
        let named = |at: usize| self.known[at].endpoint.clone();
        answers.into_iter().map(|(at, answer)| (named(at), answer)).collect()
    }

    /// An answer from before the latest election is not believed any more.
    fn latest(&self, master: Master) -> Endpoint {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        match &*latest {
            Some(known) if known.epoch > master.epoch => known.endpoint.clone(),
            _ => {
                if latest.as_ref().is_some_and(|known| known.endpoint != master.endpoint) {
                    let service = self.service.as_str();
                    tracing::info!(service, master = %master.endpoint, "there is another master");
                }
                latest.insert(master).endpoint.clone()
            }
        }
    }

    fn ask_all(&self, config: &RedisConfig, keeps: bool) -> JoinSet<(usize, Result<Told, Fault>)> {
        let limit = ANSWER.min(config.connect_timeout);
        let mut questions = JoinSet::new();
        for at in 0..self.known.len() {
            let (known, service) = (Arc::clone(&self.known), self.service.clone());
            let config = config.clone();
            questions.spawn(async move {
                let known = &known[at];
                let answer = timeout(limit, known.ask(&config, &service, keeps)).await;
                let answer = answer.unwrap_or_else(|_| {
                    let message = format!("the sentinel {} does not answer", known.endpoint);
                    Err(Fault::new(FaultKind::Unavailable, message))
                });
                if answer.is_err() {
                    *known.connection() = None;
                }
                (at, answer)
            });
        }
        questions
    }

    fn unavailable(&self, why: &str) -> Fault {
        Fault::new(FaultKind::Unavailable, format!("{}: {why}", self.service))
    }
}

impl Known {
    async fn ask(&self, config: &RedisConfig, service: &str, keeps: bool) -> Result<Told, Fault> {
        let kept = if keeps { self.connection().take() } else { None };
        let mut connection = match kept {
            Some(connection) => connection,
            None => self.connect(config).await?,
        };
        let mut questions = redis::pipe();
        questions.cmd("SENTINEL").arg("GET-MASTER-ADDR-BY-NAME").arg(service);
        // Who may not ask this goes by whoever answers first.
        questions.cmd("SENTINEL").arg("MASTER").arg(service);
        let answers = connection.send_packed_commands(&questions, 0, 2).await;
        let mut answers = answers.map_err(|error| self.fault(&error))?.into_iter();
        let master = match answers.next() {
            Some(Value::ServerError(error)) => return Err(self.fault(&error.into())),
            answer => answer.and_then(|answer| endpoint_of(&answer)),
        };
        let told =
            Told { master, ..answers.next().map(|fields| told(&fields)).unwrap_or_default() };
        if keeps {
            *self.connection() = Some(connection);
        }
        Ok(told)
    }

    async fn connect(&self, config: &RedisConfig) -> Result<MultiplexedConnection, Fault> {
        let stream = Stream::connect(&self.endpoint, config, Arc::new(Meter::default())).await?;
        let settings =
            AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        let mut info = RedisConnectionInfo::default()
            .set_protocol(ProtocolVersion::RESP2)
            .set_skip_set_lib_name();
        if let Some(username) = &config.sentinel_username {
            info = info.set_username(username);
        }
        if let Some(password) = config.current_sentinel_password()? {
            info = info.set_password(password);
        }
        let opened = MultiplexedConnection::new_with_config(&info, stream, settings).await;
        let (connection, driver) = opened.map_err(|error| self.fault(&error))?;
        // It ends when the last use of the connection is dropped.
        tokio::spawn(driver);
        Ok(connection)
    }

    fn fault(&self, error: &redis::RedisError) -> Fault {
        error::fault(&format!("the sentinel {}", self.endpoint), error)
    }

    fn connection(&self) -> MutexGuard<'_, Option<MultiplexedConnection>> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Sentinels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sentinels").field("service", &self.service).finish_non_exhaustive()
    }
}

/// A host and a port.
fn endpoint_of(answer: &Value) -> Option<Endpoint> {
    let Value::Array(parts) = answer else { return None };
    let [name, port] = &parts[..] else { return None };
    Some(Endpoint::Host { name: text(name)?, port: text(port)?.parse().ok()? })
}

fn told(fields: &Value) -> Told {
    let mut told = Told::default();
    let Value::Array(parts) = fields else { return told };
    for pair in parts.chunks_exact(2) {
        let (Some(name), Some(value)) = (text(&pair[0]), text(&pair[1])) else { continue };
        match name.as_str() {
            "config-epoch" => told.epoch = value.parse().unwrap_or(0),
            "quorum" => told.quorum = value.parse().ok(),
            "num-other-sentinels" => told.others = value.parse().ok(),
            _ => {}
        }
    }
    told
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::BulkString(bytes) => String::from_utf8(bytes.clone()).ok(),
        Value::SimpleString(text) => Some(text.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(parts: &[&str]) -> Value {
        let part = |part: &&str| Value::BulkString(part.as_bytes().to_vec());
        Value::Array(parts.iter().map(part).collect())
    }

    fn host(name: &str) -> Endpoint {
        Endpoint::Host { name: name.into(), port: 7 }
    }

    #[test]
    fn a_sentinel_is_understood() {
        assert_eq!(endpoint_of(&array(&["a", "7"])), Some(host("a")));
        assert_eq!(endpoint_of(&Value::Nil), None);
        assert_eq!(endpoint_of(&array(&["a", "x"])), None);
        let told = told(&array(&[
            "name",
            "s",
            "flags",
            "master",
            "num-slaves",
            "1",
            "config-epoch",
            "3",
            "quorum",
            "2",
            "num-other-sentinels",
            "2",
        ]));
        assert_eq!((told.epoch, told.quorum, told.others), (3, Some(2), Some(2)));
    }

    #[test]
    fn an_answer_from_before_the_latest_election_is_not_believed() {
        let config = RedisConfig::new("redis+sentinel://h/s").unwrap();
        let sentinels = Sentinels::of(&config).unwrap();
        let elected = |name: &str, epoch| Master { endpoint: host(name), epoch };
        assert_eq!(sentinels.latest(elected("a", 1)), host("a"));
        assert_eq!(sentinels.latest(elected("b", 2)), host("b"));
        assert_eq!(sentinels.latest(elected("a", 1)), host("b"));
        assert_eq!(sentinels.latest(elected("a", 3)), host("a"));
    }
}
