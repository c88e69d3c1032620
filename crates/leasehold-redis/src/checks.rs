//! What is asked of a server before anything is kept in it.

use leasehold_core::{Fault, FaultKind};
use redis::Value;

use crate::{dial::Dial, error, link::Link, script::SOURCES};

/// The oldest Redis that has what the scripts use.
const REDIS_MIN: (u32, u32) = (6, 2);

/// What the server says of itself, as far as it may say it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    /// `Redis` or `Valkey`.
    pub(crate) product: Option<&'static str>,
    pub(crate) version: Option<String>,
    pub(crate) role: Option<String>,
    pub(crate) policy: Option<String>,
    pub(crate) append_only: Option<bool>,
    pub(crate) snapshots: Option<bool>,
    pub(crate) max_memory: Option<u64>,
    /// How many replicas are connected.
    pub(crate) replicas: Option<u32>,
}

/// Asks, refuses what would lose locks, and loads the scripts.
pub(crate) async fn check(dial: &Dial, place: &str, link: &Link) -> Result<Facts, Fault> {
    let facts = ask(place, link).await?;
    if let (Some("Redis"), Some(version)) = (facts.product, &facts.version)
        && is_older(version)
    {
        return Err(Fault::new(
            FaultKind::Unsupported,
            format!("{} is Redis {version}; 6.2 or later is needed, or Valkey", place),
        ));
    }
    if let Some(policy) = &facts.policy
        && drops_locks(policy)
        && !dial.config.allow_eviction
    {
        return Err(Fault::new(
            FaultKind::Unsafe,
            format!(
                "{} may drop locks to make room: its maxmemory-policy is {policy}, not noeviction \
                 (allow_eviction=true takes it all the same)",
                place
            ),
        ));
    }
    load_scripts(place, link).await?;
    Ok(facts)
}

/// Asks the server about itself.
pub(crate) async fn ask(place: &str, link: &Link) -> Result<Facts, Fault> {
    let mut questions = redis::pipe();
    questions.cmd("INFO");
    questions.cmd("CONFIG").arg("GET").arg("maxmemory-policy");
    questions.cmd("CONFIG").arg("GET").arg("save");
    let answers = link.ask_all(&questions).await.map_err(|error| error::fault(place, &error))?;
    let mut answers = answers.into_iter();
    let mut facts = Facts::default();
    let mut next = || answers.next().unwrap_or(Value::Nil);
    // Who may not ask goes on without: `doctor` says so.
    match next() {
        Value::ServerError(error) if retries(&error.clone().into()) => {
            return Err(error::fault(place, &error.into()));
        }
        answer => {
            if let Some(info) = text(&answer) {
                facts.read_info(&info);
            }
        }
    }
    if let Some(policy) = setting(&next()) {
        facts.policy = Some(policy);
    }
    facts.snapshots = setting(&next()).map(|save| !save.is_empty());
    Ok(facts)
}

impl Facts {
    fn read_info(&mut self, info: &str) {
        let field =
            |name: &str| info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let valkey = field("valkey_version");
        self.product = Some(if valkey.is_some() { "Valkey" } else { "Redis" });
        self.version = valkey.or_else(|| field("redis_version")).map(str::to_owned);
        self.role = field("role").map(str::to_owned);
        self.replicas = field("connected_slaves").and_then(|count| count.parse().ok());
        self.policy = field("maxmemory_policy").map(str::to_owned);
        self.append_only = field("aof_enabled").map(|enabled| enabled == "1");
        self.max_memory = field("maxmemory").and_then(|bytes| bytes.parse().ok());
    }
}

/// Every other policy drops keys, with or without an expiry, and all keys of locks have one.
pub(crate) fn drops_locks(policy: &str) -> bool {
    policy != "noeviction"
}

fn is_older(version: &str) -> bool {
    let mut numbers = version.split('.').map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) < REDIS_MIN,
        // A version that is not written as Redis writes it is somebody's own.
        _ => false,
    }
}

/// The first use of each script is then like every other. Who may not load them sends them.
async fn load_scripts(place: &str, link: &Link) -> Result<(), Fault> {
    let mut loads = redis::pipe();
    for source in SOURCES {
        loads.cmd("SCRIPT").arg("LOAD").arg(source.text());
    }
    for answer in link.ask_all(&loads).await.map_err(|error| error::fault(place, &error))? {
        if let Value::ServerError(error) = answer {
            tracing::debug!(store = place, code = error.code(), "a script was not loaded");
        }
    }
    Ok(())
}

fn retries(error: &redis::RedisError) -> bool {
    error::remedy(error) != error::Remedy::None
}

fn text(answer: &Value) -> Option<String> {
    match answer {
        Value::BulkString(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => Some(text.clone()),
        _ => None,
    }
}

/// The value in an answer to CONFIG GET of one name.
fn setting(answer: &Value) -> Option<String> {
    match answer {
        Value::Map(pairs) => text(&pairs.first()?.1),
        Value::Array(parts) => text(parts.get(1)?),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_servers_are_told_from_new_ones() {
        for old in ["6.0.16", "5.0.14", "6.1.240"] {
            assert!(is_older(old), "{old}");
        }
        for new in ["6.2.0", "6.2.14", "7.0.15", "10.0.0", "255.255.255", "custom"] {
            assert!(!is_older(new), "{new}");
        }
    }

    #[test]
    fn the_server_is_read_from_its_own_words() {
        let mut facts = Facts::default();
        facts.read_info(
            "# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:9.1.2\r\n\
             # Memory\r\nmaxmemory:1048576\r\nmaxmemory_policy:allkeys-lru\r\n\
             # Persistence\r\naof_enabled:1\r\n# Replication\r\nrole:master\r\n",
        );
        assert_eq!(facts.product, Some("Valkey"));
        assert_eq!(facts.version.as_deref(), Some("9.1.2"));
        assert_eq!(facts.role.as_deref(), Some("master"));
        assert_eq!(facts.policy.as_deref(), Some("allkeys-lru"));
        assert_eq!((facts.append_only, facts.max_memory), (Some(true), Some(1_048_576)));
        assert!(drops_locks("allkeys-lru") && drops_locks("volatile-ttl"));
        assert!(!drops_locks("noeviction"));
    }
}
