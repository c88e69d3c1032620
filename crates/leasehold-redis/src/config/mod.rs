//! Which server is meant, and how it is spoken to: the URL and what can be said beside it.

mod parameters;
mod password;

use std::{fmt, path::PathBuf, time::Duration};

use leasehold_core::{Fault, InvalidArgument, Ttl, defaults};

use self::password::Password;
use crate::{
    topology::{Endpoint, Topology, listed},
    url,
};

/// The longest key prefix and the longest client name in bytes.
const LABEL_BYTES_MAX: usize = 64;
/// The longest timeout.
const TIMEOUT_MAX: Duration = Duration::from_secs(3600);
/// How long replicas may take to have a grant unless told otherwise.
const WAIT_REPLICAS: Duration = Duration::from_secs(1);
/// No server is given up sooner than this, unless a command may take no longer.
const REPLY_LIMIT_MIN: Duration = Duration::from_millis(100);

/// Which server is meant, and how it is spoken to.
///
/// # The URL
/// - `redis://[USER[:PASSWORD]@]HOST[:PORT][/DATABASE]`; the port is 6379 and the database 0 unless
///   named. `[::1]` is an IPv6 address.
/// - `rediss://…`, the same over TLS (feature `tls`).
/// - `unix://[USER[:PASSWORD]@]/PATH` or `redis+unix://…`, a Unix socket.
/// - `redis+sentinel://[USER[:PASSWORD]@]HOST[:PORT][,HOST[:PORT]…]/SERVICE[/DATABASE]`: the
///   sentinels at these places (port 26379 unless named) say which server is the master of the
///   service; user and password are for that server. `rediss+sentinel://…`: both over TLS.
/// - `redis+cluster://[USER[:PASSWORD]@]HOST[:PORT][,HOST[:PORT]…]`, a cluster of which some nodes
///   are named; the others are asked for. It has no other database than 0. `rediss+cluster://…`
///
/// In every part `%XX` stands for a byte, and `%`, `#`, `@`, `/` and `?` are written so where they
/// are part of a user name or a password. After a `?`, joined by `&`:
///
/// | parameter | as | default |
/// | --- | --- | --- |
/// | `username`, `password` | [`username`](Self::username), [`password`](Self::password) | none |
/// | `password_file` | [`password_file`](Self::password_file) | none |
/// | `password_env` | the environment variable that holds the password | none |
/// | `db` | [`database`](Self::database) | 0 |
/// | `prefix` | [`prefix`](Self::prefix) | `leasehold` |
/// | `client_name` | [`client_name`](Self::client_name) | `leasehold` |
/// | `connect_timeout_ms` | [`connect_timeout`](Self::connect_timeout) | 2000 |
/// | `command_timeout_ms` | [`command_timeout`](Self::command_timeout) | 2000 |
/// | `sentinel_username`, `sentinel_password` | [`sentinel_username`](Self::sentinel_username), [`sentinel_password`](Self::sentinel_password) | none |
/// | `sentinel_password_file` | [`sentinel_password_file`](Self::sentinel_password_file) | none |
/// | `sentinel_password_env` | the environment variable that holds it | none |
/// | `allow_eviction` | [`allow_eviction`](Self::allow_eviction), `true` or `false` | `false` |
/// | `wait_replicas` | [`wait_replicas`](Self::wait_replicas) | 0 |
/// | `wait_replicas_timeout_ms` | [`wait_replicas_timeout`](Self::wait_replicas_timeout) | 1000 |
/// | `restart_guard_ms` | [`restart_guard`](Self::restart_guard) | none |
/// | `ca_file` | [`ca_file`](Self::ca_file) | the system's |
///
/// A password appears in no message, no log and no `Debug`.
///
/// ```
/// use leasehold_redis::RedisConfig;
///
/// let config = RedisConfig::new("redis://app@redis.example/3?prefix=shop")?
///     .password("any #@/:% characters");
/// assert_eq!(config.to_string(), "redis://redis.example:6379/3");
/// # Ok::<(), leasehold_core::InvalidArgument>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
#[must_use = "a configuration does nothing until it is connected with"]
pub struct RedisConfig {
    pub(crate) topology: Topology,
    pub(crate) tls: bool,
    pub(crate) ca_file: Option<PathBuf>,
    pub(crate) database: u32,
    pub(crate) username: Option<String>,
    password: Password,
    pub(crate) sentinel_username: Option<String>,
    sentinel_password: Password,
    pub(crate) prefix: String,
    pub(crate) client_name: String,
    pub(crate) connect_timeout: Duration,
    pub(crate) command_timeout: Duration,
    pub(crate) allow_eviction: bool,
    pub(crate) wait_replicas: u32,
    pub(crate) wait_replicas_timeout: Duration,
    pub(crate) restart_guard: Option<Duration>,
}

impl RedisConfig {
    /// Reads a URL; nothing is opened or looked at.
    ///
    /// # Errors
    /// [`InvalidArgument`] for anything else than the type's documentation names. The message
    /// repeats nothing of the URL, which may hold a password.
    pub fn new(url: &str) -> Result<Self, InvalidArgument> {
        let parts = url::parse(url)?;
        if parts.tls && !cfg!(feature = "tls") {
            return Err(InvalidArgument::new("rediss:// needs the feature `tls`"));
        }
        let mut config = Self {
            tls: parts.tls,
            database: parts.database.unwrap_or(0),
            username: parts.username,
            password: parts.password.map_or(Password::None, Password::Given),
            ..Self::on(parts.topology)
        };
        for (name, value) in parts.parameters {
            config = config.with_parameter(&name, value)?;
        }
        if config.database != 0 && matches!(config.topology, Topology::Cluster { .. }) {
            return Err(InvalidArgument::new("a cluster has no other database than 0"));
        }
        Ok(config)
    }

    /// The master of `service`, which the sentinels at these hosts and ports name: the same as a
    /// URL with `redis+sentinel://`, and everything else is said by the other methods.
    ///
    /// # Errors
    /// [`InvalidArgument`] unless there are 1 to 64 hosts and a name without spaces.
    pub fn sentinel<H: Into<String>>(
        sentinels: impl IntoIterator<Item = (H, u16)>,
        service: impl Into<String>,
    ) -> Result<Self, InvalidArgument> {
        let sentinels = endpoints(sentinels)?;
        let service = url::checked_service(service.into())?;
        Ok(Self::on(Topology::Sentinel { sentinels, service }))
    }

    /// The cluster that the nodes at these hosts and ports are part of: the same as a URL with
    /// `redis+cluster://`.
    ///
    /// # Errors
    /// [`InvalidArgument`] unless there are 1 to 64 hosts.
    pub fn cluster<H: Into<String>>(
        nodes: impl IntoIterator<Item = (H, u16)>,
    ) -> Result<Self, InvalidArgument> {
        Ok(Self::on(Topology::Cluster { seeds: endpoints(nodes)? }))
    }

    /// The defaults.
    fn on(topology: Topology) -> Self {
        Self {
            topology,
            tls: false,
            ca_file: None,
            database: 0,
            username: None,
            password: Password::None,
            sentinel_username: None,
            sentinel_password: Password::None,
            prefix: "leasehold".to_owned(),
            client_name: "leasehold".to_owned(),
            connect_timeout: defaults::COMMAND_TIMEOUT,
            command_timeout: defaults::COMMAND_TIMEOUT,
            allow_eviction: false,
            wait_replicas: 0,
            wait_replicas_timeout: WAIT_REPLICAS,
            restart_guard: None,
        }
    }

    /// Who logs in. Default: the server's `default` user.
    pub fn username(self, username: impl Into<String>) -> Self {
        Self { username: Some(username.into()), ..self }
    }

    /// The password, any characters.
    pub fn password(self, password: impl Into<String>) -> Self {
        Self { password: Password::Given(password.into()), ..self }
    }

    /// A file whose content is the password, without its last line break. It is read at each
    /// connection, so it may change.
    pub fn password_file(self, path: impl Into<PathBuf>) -> Self {
        Self { password: Password::File(path.into()), ..self }
    }

    /// Who logs in to the sentinels. Default: their `default` user.
    pub fn sentinel_username(self, username: impl Into<String>) -> Self {
        Self { sentinel_username: Some(username.into()), ..self }
    }

    /// The password for the sentinels. That of the servers is never sent to them.
    pub fn sentinel_password(self, password: impl Into<String>) -> Self {
        Self { sentinel_password: Password::Given(password.into()), ..self }
    }

    /// A file whose content is the password for the sentinels, without its last line break.
    pub fn sentinel_password_file(self, path: impl Into<PathBuf>) -> Self {
        Self { sentinel_password: Password::File(path.into()), ..self }
    }

    /// The number of the database. Default: 0. A cluster takes no other.
    pub fn database(self, database: u32) -> Self {
        Self { database, ..self }
    }

    /// What every key and every channel of this store begins with. Clients with different prefixes
    /// share a server and nothing else. Default: `leasehold`.
    ///
    /// # Errors
    /// [`InvalidArgument`] unless it is 1 to 64 ASCII letters, digits, `-`, `_`, `.` or `:`.
    pub fn prefix(self, prefix: impl Into<String>) -> Result<Self, InvalidArgument> {
        let prefix = prefix.into();
        // Nothing that has a meaning in a hash tag, in a pattern or in a list of access rules.
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
        if !(1..=LABEL_BYTES_MAX).contains(&prefix.len()) || !prefix.bytes().all(allowed) {
            return Err(InvalidArgument::new(
                "a key prefix is 1 to 64 ASCII letters, digits, `-`, `_`, `.` or `:`",
            ));
        }
        Ok(Self { prefix, ..self })
    }

    /// What the server's list of clients shows. Default: `leasehold`.
    ///
    /// # Errors
    /// [`InvalidArgument`] unless it is 1 to 64 printable ASCII characters without spaces.
    pub fn client_name(self, name: impl Into<String>) -> Result<Self, InvalidArgument> {
        let name = name.into();
        if !(1..=LABEL_BYTES_MAX).contains(&name.len())
            || !name.bytes().all(|byte| byte.is_ascii_graphic())
        {
            return Err(InvalidArgument::new(
                "a client name is 1 to 64 printable ASCII characters without spaces",
            ));
        }
        Ok(Self { client_name: name, ..self })
    }

    /// How long a connection may take to be there. Default: 2 s.
    ///
    /// # Errors
    /// [`InvalidArgument`] unless it is between 1 ms and 1 h.
    pub fn connect_timeout(self, timeout: Duration) -> Result<Self, InvalidArgument> {
        Ok(Self { connect_timeout: checked(timeout)?, ..self })
    }

    /// How long the server may take to answer one command. A third of it (100 ms at least) without a word
    /// from the server, and the command is sent once more over another connection. Default: 2 s.
    ///
    /// # Errors
    /// [`InvalidArgument`] unless it is between 1 ms and 1 h.
    pub fn command_timeout(self, timeout: Duration) -> Result<Self, InvalidArgument> {
        Ok(Self { command_timeout: checked(timeout)?, ..self })
    }

    /// Whether a server may be used that can drop locks to make room: one whose `maxmemory-policy`
    /// is not `noeviction`. Default: no.
    pub fn allow_eviction(self, allow: bool) -> Self {
        Self { allow_eviction: allow, ..self }
    }

    /// How many replicas must have a grant before it is delivered, so that a failover to one of them
    /// does not lose it. Default: 0, none. Each acquisition then takes as long as the replicas take;
    /// when fewer have it in time, it is released and the answer is an error of kind `Unavailable`.
    ///
    /// It makes a loss less likely, not impossible: a failover may choose a replica that does not
    /// have it.
    pub fn wait_replicas(self, count: u32) -> Self {
        Self { wait_replicas: count, ..self }
    }

    /// How long the replicas may take. Default: 1 s.
    ///
    /// # Errors
    /// [`InvalidArgument`] unless it is between 1 ms and 1 h.
    pub fn wait_replicas_timeout(self, timeout: Duration) -> Result<Self, InvalidArgument> {
        Ok(Self { wait_replicas_timeout: checked(timeout)?, ..self })
    }

    /// The longest TTL that is in use. A server that has started without its data grants nothing
    /// until it is as old as that, so that no lock is granted that somebody still holds by the lost
    /// data. Default: none, nothing is held back.
    ///
    /// Acquisitions wait for that within their timeout; those that would not, or do not wait at all,
    /// get an error of kind `Unavailable`. A new server is taken for one without its data, once. All
    /// clients of a store should say the same.
    ///
    /// # Errors
    /// [`InvalidArgument`] unless it is a TTL: between 1 ms and 2^31−1 ms.
    pub fn restart_guard(self, longest: Duration) -> Result<Self, InvalidArgument> {
        Ttl::new(longest)?;
        Ok(Self { restart_guard: Some(longest), ..self })
    }

    /// A file of PEM certificates that vouch for the server, instead of those that the system
    /// trusts. It is read at each connection.
    pub fn ca_file(self, path: impl Into<PathBuf>) -> Self {
        Self { ca_file: Some(path.into()), ..self }
    }

    /// How long the server may be silent before a command is sent again: so that more sends come
    /// within the command's own time. A machine that is busy is no reason.
    pub(crate) fn reply_limit(&self) -> Duration {
        (self.command_timeout / 3).max(REPLY_LIMIT_MIN).min(self.command_timeout)
    }

    /// The password as it is now.
    pub(crate) fn current_password(&self) -> Result<Option<String>, Fault> {
        self.password.current("password_env")
    }

    /// The password for the sentinels as it is now.
    pub(crate) fn current_sentinel_password(&self) -> Result<Option<String>, Fault> {
        self.sentinel_password.current("sentinel_password_env")
    }
}

impl fmt::Display for RedisConfig {
    /// The URL without user, password and parameters.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "rediss" } else { "redis" };
        match &self.topology {
            Topology::One(Endpoint::Socket(path)) => {
                write!(f, "unix://{}?db={}", path.display(), self.database)
            }
            Topology::One(endpoint) => write!(f, "{scheme}://{endpoint}/{}", self.database),
            Topology::Sentinel { sentinels, service } => {
                write!(f, "{scheme}+sentinel://{}/{service}/{}", listed(sentinels), self.database)
            }
            Topology::Cluster { seeds } => write!(f, "{scheme}+cluster://{}", listed(seeds)),
        }
    }
}

impl fmt::Debug for RedisConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisConfig")
            .field("url", &format_args!("{self}"))
            .field("username", &self.username)
            .field("password", &self.password)
            .field("sentinel_username", &self.sentinel_username)
            .field("sentinel_password", &self.sentinel_password)
            .field("prefix", &self.prefix)
            .field("client_name", &self.client_name)
            .field("connect_timeout", &self.connect_timeout)
            .field("command_timeout", &self.command_timeout)
            .field("allow_eviction", &self.allow_eviction)
            .field("wait_replicas", &self.wait_replicas)
            .field("wait_replicas_timeout", &self.wait_replicas_timeout)
            .field("restart_guard", &self.restart_guard)
            .field("ca_file", &self.ca_file)
            .finish()
    }
}

fn endpoints<H: Into<String>>(
    hosts: impl IntoIterator<Item = (H, u16)>,
) -> Result<Vec<Endpoint>, InvalidArgument> {
    let hosts = hosts.into_iter().take(url::HOSTS_MAX + 1);
    let endpoints: Vec<_> =
        hosts.map(|(name, port)| Endpoint::Host { name: name.into(), port }).collect();
    if endpoints.is_empty() || endpoints.len() > url::HOSTS_MAX {
        return Err(InvalidArgument::new("1 to 64 hosts are named"));
    }
    Ok(endpoints)
}

fn checked(timeout: Duration) -> Result<Duration, InvalidArgument> {
    if (Duration::from_millis(1)..=TIMEOUT_MAX).contains(&timeout) {
        return Ok(timeout);
    }
    Err(InvalidArgument::new(format!("a timeout of {timeout:?} is not in 1 ms ..= 1 h")))
}

#[cfg(test)]
mod tests {
    use leasehold_core::FaultKind;

    use super::*;

    const NASTY: &str = "a=b#c@d/e:f%g?h&i j\u{e9}";
    const NASTY_ENCODED: &str = "a%3Db%23c%40d%2Fe%3Af%25g%3Fh%26i%20j%C3%A9";

    #[test]
    fn urls_name_servers() {
        for (url, shown) in [
            ("redis://h", "redis://h:6379/0"),
            ("redis://h:1/2", "redis://h:1/2"),
            ("redis://h/", "redis://h:6379/0"),
            ("redis://[::1]:7/3", "redis://[::1]:7/3"),
            ("redis://u:p@h?db=4", "redis://h:6379/4"),
            ("unix:///run/redis.sock", "unix:///run/redis.sock?db=0"),
            ("redis+unix:///run/a%20b.sock?db=2", "unix:///run/a b.sock?db=2"),
            ("unix://u:p@/run/r.sock", "unix:///run/r.sock?db=0"),
            ("redis+sentinel://h/mymaster", "redis+sentinel://h:26379/mymaster/0"),
            ("redis+sentinel://u:p@a,[::1]:7/s%2Ft/2", "redis+sentinel://a:26379,[::1]:7/s/t/2"),
            ("redis+cluster://u:p@a,b:1", "redis+cluster://a:6379,b:1"),
            ("redis+cluster://a/0", "redis+cluster://a:6379"),
        ] {
            assert_eq!(RedisConfig::new(url).unwrap().to_string(), shown, "{url}");
        }
    }

    #[test]
    fn users_and_passwords_are_decoded_wherever_they_stand() {
        for url in [
            format!("redis://{NASTY_ENCODED}:{NASTY_ENCODED}@h"),
            format!("unix://{NASTY_ENCODED}:{NASTY_ENCODED}@/run/s"),
            format!("redis://h?username={NASTY_ENCODED}&password={NASTY_ENCODED}"),
        ] {
            let config = RedisConfig::new(&url).unwrap();
            assert_eq!(config.username.as_deref(), Some(NASTY));
            assert_eq!(config.current_password().unwrap().as_deref(), Some(NASTY));
            let built = RedisConfig::new("redis://h").unwrap().username(NASTY).password(NASTY);
            assert_eq!(built.username, config.username);
            assert_eq!(built.password, config.password);
        }
        // What needs no encoding is taken as it is.
        let config = RedisConfig::new("redis://:a=b:c@h").unwrap();
        assert_eq!(config.username, None);
        assert_eq!(config.current_password().unwrap().as_deref(), Some("a=b:c"));
        let config = RedisConfig::new("redis://app@h").unwrap();
        assert_eq!(config.username.as_deref(), Some("app"));
        assert_eq!(config.current_password().unwrap(), None);
    }

    #[test]
    fn a_password_file_is_read_without_its_last_line_break() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("password");
        let config = RedisConfig::new("redis://h").unwrap().password_file(&path);
        assert_eq!(config.current_password().unwrap_err().kind(), FaultKind::Denied);
        for (content, password) in [("p w\n", "p w"), ("p\r\n", "p"), ("p", "p"), ("p\n\n", "p\n")]
        {
            std::fs::write(&path, content).unwrap();
            assert_eq!(config.current_password().unwrap().as_deref(), Some(password));
        }
        let url = format!("redis://h?password_file={}", path.display());
        assert_eq!(RedisConfig::new(&url).unwrap(), config);
    }

    #[test]
    fn parameters_are_taken() {
        let url = "redis://h?prefix=shop&client_name=web&connect_timeout_ms=10\
                   &command_timeout_ms=20&allow_eviction=true&ca_file=/a%2Fb\
                   &wait_replicas=2&wait_replicas_timeout_ms=30&restart_guard_ms=40";
        let built = RedisConfig::new("redis://h")
            .and_then(|config| config.prefix("shop"))
            .and_then(|config| config.client_name("web"))
            .and_then(|config| config.connect_timeout(Duration::from_millis(10)))
            .and_then(|config| config.command_timeout(Duration::from_millis(20)))
            .and_then(|config| config.wait_replicas_timeout(Duration::from_millis(30)))
            .and_then(|config| config.restart_guard(Duration::from_millis(40)))
            .map(|config| config.allow_eviction(true).ca_file("/a/b").wait_replicas(2));
        assert_eq!(RedisConfig::new(url), built);
    }

    #[test]
    fn what_a_url_says_can_be_said_without_one() {
        let url = "redis+sentinel://a,b:7/orders?sentinel_username=x&sentinel_password=y&db=3";
        let built = RedisConfig::sentinel([("a", 26379), ("b", 7)], "orders")
            .map(|config| config.sentinel_username("x").sentinel_password("y").database(3));
        assert_eq!(RedisConfig::new(url), built);
        let built = RedisConfig::cluster([("a", 6379), ("::1", 7)]);
        assert_eq!(RedisConfig::new("redis+cluster://a,[::1]:7"), built);
        assert!(RedisConfig::cluster::<&str>([]).is_err());
        assert!(RedisConfig::cluster(vec![("h", 1); 65]).is_err());
        assert!(RedisConfig::sentinel([("h", 1)], "a b").is_err());
        assert!(RedisConfig::new(&format!("redis+cluster://{}", vec!["h"; 65].join(","))).is_err());
    }

    #[test]
    fn what_is_refused_is_not_repeated() {
        for (url, hint) in [
            ("memory:", "redis://"),
            ("http://hunter2@h", "redis://"),
            ("redis:hunter2", "redis://"),
            ("redis://", "host"),
            ("redis://u:hunter2@", "host"),
            ("redis://h:hunter2", "port"),
            ("redis://h:70000", "port"),
            ("redis://h/hunter2", "database"),
            ("redis://:hunter2#x@h", "%23"),
            ("redis://:hunter2/x@h", "port"),
            ("redis://:hunter2?x@h", "port"),
            ("redis://h?hunter2?x@h", "%3F"),
            ("redis://:hunter2@x@h", "%40"),
            ("redis://:hunter2%zz@h", "%25"),
            ("redis://:hunter2%2@h", "%25"),
            ("redis://:hunter2%FF@h", "UTF-8"),
            ("redis://h?hunter2=1", "parameters"),
            ("redis://h?db=hunter2", "number"),
            ("redis://h?prefix=hunter2%20", "prefix"),
            ("redis://h?prefix=", "prefix"),
            ("redis://h?client_name=hunter%202", "client name"),
            ("redis://h?command_timeout_ms=0", "1 ms"),
            ("redis://h?command_timeout_ms=hunter2", "whole number"),
            ("redis://h?allow_eviction=hunter2", "true or false"),
            ("redis://h?wait_replicas=hunter2", "number"),
            ("redis://h?wait_replicas=-1", "number"),
            ("redis://h?wait_replicas_timeout_ms=0", "1 ms"),
            ("redis://h?restart_guard_ms=0", "1 ms"),
            ("redis://h?restart_guard_ms=hunter2", "whole number"),
            ("redis+sentinel://h", "service"),
            ("redis+sentinel://h/", "service"),
            ("redis+sentinel://h/hunter%202", "service"),
            ("redis+sentinel://h,,hunter2/s", "host"),
            ("redis+sentinel://h:hunter2/s", "port"),
            ("redis+sentinel://h/s/hunter2", "database"),
            ("redis+sentinel:hunter2", "redis://"),
            ("redis+cluster://:hunter2@", "host"),
            ("redis+cluster://h,i:hunter2", "port"),
            ("redis+cluster://h/hunter2", "database"),
            ("redis+cluster://h/1?password=hunter2", "database"),
            ("redis+cluster://h?db=2&password=hunter2", "database"),
            ("redis+cluster://h?sentinel_password=hunter2", "redis+sentinel://"),
            ("redis://h?sentinel_username=hunter2", "redis+sentinel://"),
            ("unix://hunter2", "path"),
            ("unix://host/hunter2", "no host"),
        ] {
            let error = RedisConfig::new(url).unwrap_err().to_string();
            assert!(error.contains(hint), "{url}: {error}");
            assert!(!error.contains("hunter2"), "{url}: {error}");
        }
    }

    #[test]
    fn no_password_is_shown() {
        for url in [
            "redis://u:hunter2@h/1",
            "redis://h?password=hunter2",
            "redis://h?password_env=hunter2",
            "unix://:hunter2@/s",
            "redis+sentinel://:hunter2@h/s?sentinel_password=hunter2",
            "redis+sentinel://h/s?sentinel_password_env=hunter2",
            "redis+cluster://:hunter2@h",
        ] {
            let config = RedisConfig::new(url).unwrap();
            assert!(!format!("{config} {config:?} {config:#?}").contains("hunter2"), "{url}");
        }
    }
}
