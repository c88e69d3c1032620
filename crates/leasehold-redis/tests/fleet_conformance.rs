//! The Redis store against the test kit where it is more than one server: a cluster of three
//! masters with a replica, and a service that sentinels watch over.
//!
//! One kind of server each here, every kind with `LEASEHOLD_SOAK=1`. A server that is not installed
//! makes its cases *ignored*, visibly; where servers are required (`CI=true` or
//! `LEASEHOLD_REQUIRE_SERVERS=1`) it fails the run.

use std::{
    collections::HashMap,
    env,
    process::Command,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use leasehold_conformance::{Cannot, Fixture, StoreUnderTest, holder};
use leasehold_core::{Backend, ClientId};
use leasehold_redis::{RedisBackend, RedisConfig};
use test_servers::{Cluster, Flavor, Sentinels, Server};

/// All of them in a soak; else the first of each shape, of different kinds.
static FLEETS: [Fleet; 6] = [
    Fleet::new(Shape::Cluster, Flavor::Valkey),
    Fleet::new(Shape::Sentinels, Flavor::Redis70),
    Fleet::new(Shape::Cluster, Flavor::Redis70),
    Fleet::new(Shape::Cluster, Flavor::Redis62),
    Fleet::new(Shape::Sentinels, Flavor::Redis62),
    Fleet::new(Shape::Sentinels, Flavor::Valkey),
];
const IN_CI: usize = 2;

const PASSWORD: &str = "pa#s/s@w:o=rd";

fn main() {
    let count = if is_set("LEASEHOLD_SOAK", "1") { FLEETS.len() } else { IN_CI };
    let fixtures: Vec<&dyn Fixture> =
        FLEETS[..count].iter().map(|fleet| fleet as &dyn Fixture).collect();
    leasehold_conformance::main_of(&fixtures)
}

fn is_set(variable: &str, value: &str) -> bool {
    env::var(variable).is_ok_and(|set| set == value)
}

#[derive(Clone, Copy)]
enum Shape {
    Cluster,
    Sentinels,
}

/// Stores on one fleet, each with its own prefix.
struct Fleet {
    shape: Shape,
    flavor: Flavor,
    running: OnceLock<Arc<Running>>,
    stores: AtomicU64,
}

enum Running {
    Cluster(Cluster),
    Sentinels(Sentinels),
}

impl Fleet {
    const fn new(shape: Shape, flavor: Flavor) -> Self {
        Self { shape, flavor, running: OnceLock::new(), stores: AtomicU64::new(0) }
    }

    fn running(&self) -> &Arc<Running> {
        self.running.get_or_init(|| {
            let running = match self.shape {
                Shape::Cluster => Cluster::start(self.flavor, 1).map(Running::Cluster),
                Shape::Sentinels => Sentinels::start(self.flavor, 1).map(Running::Sentinels),
            };
            Arc::new(running.unwrap_or_else(|missing| panic!("{missing}")))
        })
    }
}

impl Fixture for Fleet {
    fn name(&self) -> &'static str {
        match (self.shape, self.flavor) {
            (Shape::Cluster, Flavor::Redis70) => "cluster of redis-7.0",
            (Shape::Cluster, Flavor::Redis62) => "cluster of redis-6.2",
            (Shape::Cluster, Flavor::Valkey) => "cluster of valkey",
            (Shape::Sentinels, Flavor::Redis70) => "sentinels of redis-7.0",
            (Shape::Sentinels, Flavor::Redis62) => "sentinels of redis-6.2",
            (Shape::Sentinels, Flavor::Valkey) => "sentinels of valkey",
        }
    }

    fn at_a_time(&self) -> Option<usize> {
        Some(10)
    }

    fn missing(&self) -> Option<String> {
        let missing = self.flavor.installed().err()?.to_string();
        if is_set("CI", "true") || is_set("LEASEHOLD_REQUIRE_SERVERS", "1") {
            panic!("{missing}");
        }
        Some(missing)
    }

    fn fresh(&self) -> Box<dyn StoreUnderTest> {
        let number = self.stores.fetch_add(1, Ordering::Relaxed);
        let prefix = format!("case-{}-{number}", std::process::id());
        Box::new(OnFleet { fleet: Arc::clone(self.running()), prefix, clients: Mutex::default() })
    }

    fn connect(&self, address: &str) -> Arc<dyn Backend> {
        let config = RedisConfig::new(address).expect("the address is a URL");
        Arc::new(pollster::block_on(RedisBackend::connect(config)).expect("the servers answer"))
    }
}

impl Running {
    fn url(&self) -> String {
        match self {
            Self::Cluster(cluster) => cluster.url(),
            Self::Sentinels(sentinels) => sentinels.url(),
        }
    }

    /// Those that have keys, replicas included.
    fn servers(&self) -> &[Server] {
        match self {
            Self::Cluster(cluster) => cluster.nodes(),
            Self::Sentinels(sentinels) => sentinels.servers(),
        }
    }
}

struct OnFleet {
    fleet: Arc<Running>,
    prefix: String,
    clients: Mutex<HashMap<ClientId, Known>>,
}

/// How a client is broken.
struct Known {
    user: String,
    kill: Box<dyn Fn() + Send + Sync>,
}

impl OnFleet {
    /// Users are not replicated, so each server is told.
    fn ask_all(&self, command: &[&str]) {
        for server in self.fleet.servers() {
            let reply = server.command(command).text();
            assert_eq!(reply, "OK", "{command:?}");
        }
    }
}

impl StoreUnderTest for OnFleet {
    /// Each client is a user of its own, so that one can be refused what others may.
    fn client(&self) -> Arc<dyn Backend> {
        static USERS: AtomicU64 = AtomicU64::new(0);
        let user = format!("user-{}", USERS.fetch_add(1, Ordering::Relaxed));
        self.ask_all(&[
            "ACL",
            "SETUSER",
            &user,
            "on",
            &format!(">{PASSWORD}"),
            "~*",
            "&*",
            "+@all",
        ]);
        let config = RedisConfig::new(&self.fleet.url())
            .and_then(|config| config.prefix(self.prefix.as_str()))
            .expect("a fleet has a URL")
            .username(user.as_str())
            .password(PASSWORD);
        let backend =
            pollster::block_on(RedisBackend::connect(config)).expect("the servers answer");
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
        // sleep: the store's clock is the servers'; a TTL has to pass.
        thread::sleep(by);
    }

    fn step(&self) -> Duration {
        Duration::from_millis(250)
    }

    fn holder(&self) -> Option<Command> {
        Some(holder::this_program(format!("{}?prefix={}", self.fleet.url(), self.prefix)))
    }

    /// Who is not pushed looks every second.
    fn heartbeat(&self) -> Duration {
        Duration::from_secs(1)
    }

    /// The servers cut the connections of a user who loses its channel, and refuse to push over the
    /// next ones. What the user publishes for others still goes out.
    fn disconnect(&self, client: &dyn Backend) -> Result<(), Cannot> {
        let clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let others = clients.keys().filter(|other| **other != client.client());
        let channels: Vec<_> =
            others.map(|other| format!("&{}:client:{other}", self.prefix)).collect();
        let user = clients[&client.client()].user.as_str();
        let mut command = vec!["ACL", "SETUSER", user, "resetchannels"];
        command.extend(channels.iter().map(String::as_str));
        self.ask_all(&command);
        Ok(())
    }

    fn lives_by_the_wall_clock(&self) -> bool {
        true
    }
}
