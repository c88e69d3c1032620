//! The Redis store against the test kit, on real servers of each kind, in real time, with holder
//! processes that are killed and stopped.
//!
//! A server that is not installed makes its cases *ignored*, visibly; where servers are required
//! (`CI=true` or `LEASEHOLD_REQUIRE_SERVERS=1`) it fails the run.

use std::{
    collections::HashMap,
    env,
    process::Command,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use leasehold_conformance::{Cannot, Fixture, StoreUnderTest, WallStep, holder};
use leasehold_core::{Backend, ClientId};
use leasehold_redis::{RedisBackend, RedisConfig};
use test_servers::{Flavor, Server};

fn main() {
    leasehold_conformance::main_of(&[&REDIS_7_0, &REDIS_6_2, &VALKEY])
}

static REDIS_7_0: Redis = Redis::new(Flavor::Redis70);
static REDIS_6_2: Redis = Redis::new(Flavor::Redis62);
static VALKEY: Redis = Redis::new(Flavor::Valkey);

/// Stores on one server, each with its own prefix.
struct Redis {
    flavor: Flavor,
    server: OnceLock<Arc<Server>>,
    stores: AtomicU64,
}

impl Redis {
    const fn new(flavor: Flavor) -> Self {
        Self { flavor, server: OnceLock::new(), stores: AtomicU64::new(0) }
    }

    fn server(&self) -> &Arc<Server> {
        self.server.get_or_init(|| {
            Arc::new(Server::start(self.flavor).unwrap_or_else(|missing| panic!("{missing}")))
        })
    }
}

impl Fixture for Redis {
    fn name(&self) -> &'static str {
        self.flavor.name()
    }

    fn at_a_time(&self) -> Option<usize> {
        Some(10)
    }

    fn missing(&self) -> Option<String> {
        let missing = self.flavor.installed().err()?.to_string();
        let set = |variable: &str, value: &str| env::var(variable).is_ok_and(|set| set == value);
        if set("CI", "true") || set("LEASEHOLD_REQUIRE_SERVERS", "1") {
            panic!("{missing}");
        }
        Some(missing)
    }

    fn fresh(&self) -> Box<dyn StoreUnderTest> {
        let number = self.stores.fetch_add(1, Ordering::Relaxed);
        let prefix = format!("case-{}-{number}", std::process::id());
        Box::new(RedisUnderTest::on(Arc::clone(self.server()), prefix))
    }

    /// A clock that is stepped is a server's own: the others' leases would be stepped with it.
    fn fresh_for(&self, case: &str) -> Box<dyn StoreUnderTest> {
        // Debian's 7.0 does not start with such a clock.
        if !case.contains("wall_clock") || self.flavor == Flavor::Redis70 {
            return self.fresh();
        }
        let server = Server::builder(self.flavor).fake_clock().start();
        let server = server.unwrap_or_else(|missing| panic!("{missing}"));
        let stepped = Some(AtomicI64::new(0));
        Box::new(RedisUnderTest { stepped, ..RedisUnderTest::on(Arc::new(server), "case".into()) })
    }

    fn connect(&self, address: &str) -> Arc<dyn Backend> {
        let config = RedisConfig::new(address).expect("the address is a URL");
        Arc::new(pollster::block_on(RedisBackend::connect(config)).expect("the server answers"))
    }
}

struct RedisUnderTest {
    server: Arc<Server>,
    prefix: String,
    clients: Mutex<HashMap<ClientId, Known>>,
    /// By how many seconds the server's clock is beside the real one, if it can be stepped.
    stepped: Option<AtomicI64>,
}

/// How a client is broken.
struct Known {
    user: String,
    kill: Box<dyn Fn() + Send + Sync>,
}

impl RedisUnderTest {
    fn on(server: Arc<Server>, prefix: String) -> Self {
        Self { server, prefix, clients: Mutex::default(), stepped: None }
    }

    fn ask(&self, command: &[&str]) {
        let reply = self.server.command(command).text();
        assert_eq!(reply, "OK", "{command:?}");
    }
}

impl StoreUnderTest for RedisUnderTest {
    /// Each client is a user of its own, so that one can be refused what others may.
    fn client(&self) -> Arc<dyn Backend> {
        static USERS: AtomicU64 = AtomicU64::new(0);
        let user = format!("user-{}", USERS.fetch_add(1, Ordering::Relaxed));
        self.ask(&["ACL", "SETUSER", &user, "on", ">pa#s/s@w:o=rd", "~*", "&*", "+@all"]);
        let config = RedisConfig::new(&self.server.url())
            .and_then(|config| config.prefix(self.prefix.as_str()))
            .expect("the server has a URL")
            .username(user.as_str())
            .password("pa#s/s@w:o=rd");
        let backend =
            pollster::block_on(RedisBackend::connect(config)).expect("the server answers");
        let kill = Box::new(backend.killer());
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        clients.insert(backend.client(), Known { user, kill });
        Arc::new(backend)
    }

    fn kill(&self, client: Arc<dyn Backend>) {
        let clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        (clients[&client.client()].kill)();
    }

    fn advance(&self, by: Duration) {
        // sleep: the store's clock is the server's; a TTL has to pass.
        thread::sleep(by);
    }

    fn step(&self) -> Duration {
        Duration::from_millis(250)
    }

    fn holder(&self) -> Option<Command> {
        Some(holder::this_program(format!("{}?prefix={}", self.server.url(), self.prefix)))
    }

    /// Who is not pushed looks every second.
    fn heartbeat(&self) -> Duration {
        Duration::from_secs(1)
    }

    /// The server cuts the connection of a user who loses its channel, and refuses to push over
    /// the next one. What the user publishes for others still goes out.
    fn disconnect(&self, client: &dyn Backend) -> Result<(), Cannot> {
        let clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let others = clients.keys().filter(|other| **other != client.client());
        let channels: Vec<_> =
            others.map(|other| format!("&{}:client:{other}", self.prefix)).collect();
        let user = clients[&client.client()].user.as_str();
        let mut command = vec!["ACL", "SETUSER", user, "resetchannels"];
        command.extend(channels.iter().map(String::as_str));
        self.ask(&command);
        Ok(())
    }

    fn step_wall_clock(&self, step: WallStep) -> Result<(), Cannot> {
        let Some(stepped) = &self.stepped else {
            return Err(Cannot::new("this build of Redis does not start with a clock to step"));
        };
        let seconds = |by: Duration| i64::try_from(by.as_secs()).expect("a step is short");
        let by = match step {
            WallStep::Forward(by) => seconds(by),
            WallStep::Back(by) => -seconds(by),
        };
        self.server.step_clock(stepped.fetch_add(by, Ordering::Relaxed) + by);
        Ok(())
    }

    fn lives_by_the_wall_clock(&self) -> bool {
        true
    }
}
