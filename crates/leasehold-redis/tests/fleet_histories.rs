//! A history through failovers: processes that are killed and stopped, while the servers that they
//! take turns on are killed and held up, and replicas take their places. What a replica never heard
//! of is lost, as asynchronous replication allows; it is counted, and nothing else may be.
//! `cargo xtask soak` runs long ones, on every kind of server (`LEASEHOLD_SOAK=1`).
//!
//! A server that is not installed makes its history *ignored*, visibly; where servers are required
//! (`CI=true` or `LEASEHOLD_REQUIRE_SERVERS=1`) it fails.
#![forbid(unsafe_code)]

use std::{
    env, fs,
    path::Path,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use leasehold_conformance::history::{self, Disturbance, Forgets, History, Size, Stage};
use leasehold_core::{Backend, Fault, defaults};
use leasehold_redis::{RedisBackend, RedisConfig};
use test_servers::{Cluster, Flavor, Sentinels, Server, wait_until};

/// Leases outlast a failover, so that some are lost by it; so do the dead, so there are few of them.
const CI: Size = Size {
    processes: 8,
    // Few locks, so that somebody waits for each of them when its holder is stopped.
    sets: 1,
    hand_offs: 150,
    kills_each: 2,
    kills_anywhere: 1,
    stops_each: 3,
    disturbances: 3,
    ttl: Duration::from_secs(3),
};
const SOAK: Size = Size {
    processes: 12,
    sets: 3,
    hand_offs: 2_000,
    kills_each: 40,
    kills_anywhere: 20,
    stops_each: 10,
    disturbances: 60,
    ttl: Duration::from_secs(3),
};
/// How long a process may take to connect: longer than a failover.
const CONNECT_BOUND: Duration = Duration::from_secs(60);
/// How long a command may take: longer than a failover, on a machine however busy.
const COMMAND_BOUND: Duration = Duration::from_secs(10);
/// How long keys may stay when nobody wants them any more.
const KEYS_BOUND: Duration = Duration::from_secs(60);
/// So long a master goes on that nobody replicates, and one that was replaced while it was held up.
const ALONE: Duration = Duration::from_millis(500);

/// All of them in a soak; else the first of each shape, of different kinds.
static FLEETS: [OnFleet; 6] = [
    OnFleet::new(Shape::Sentinels, Flavor::Redis70),
    OnFleet::new(Shape::Cluster, Flavor::Valkey),
    OnFleet::new(Shape::Sentinels, Flavor::Redis62),
    OnFleet::new(Shape::Sentinels, Flavor::Valkey),
    OnFleet::new(Shape::Cluster, Flavor::Redis70),
    OnFleet::new(Shape::Cluster, Flavor::Redis62),
];
const IN_CI: usize = 2;

fn main() {
    let set = |name: &str, value: &str| env::var(name).is_ok_and(|set| set == value);
    let is_soak = set("LEASEHOLD_SOAK", "1");
    let (size, count) = if is_soak { (SOAK, FLEETS.len()) } else { (CI, IN_CI) };
    let is_required = set("CI", "true") || set("LEASEHOLD_REQUIRE_SERVERS", "1");
    let histories = FLEETS[..count].iter().map(|stage| {
        let missing = stage.flavor.installed().err().map(|missing| missing.to_string());
        assert!(missing.is_none() || !is_required, "{missing:?}");
        // It is said once, and the process ends with it.
        let missing = missing.map(|missing| &*missing.leak());
        History { kind: stage.name(), stage, size, missing }
    });
    history::main_of(&histories.collect::<Vec<_>>());
}

#[derive(Clone, Copy)]
enum Shape {
    Cluster,
    Sentinels,
}

/// A fleet, which every process of the history finds by the file at its address.
struct OnFleet {
    shape: Shape,
    flavor: Flavor,
    running: OnceLock<Running>,
    /// Whom the last failover made the master.
    master: AtomicUsize,
}

/// Two of its servers take turns at being the master, of all slots or of a third of them.
enum Running {
    Cluster(Cluster),
    Sentinels(Sentinels),
}

impl OnFleet {
    const fn new(shape: Shape, flavor: Flavor) -> Self {
        Self { shape, flavor, running: OnceLock::new(), master: AtomicUsize::new(0) }
    }

    fn start(&self) -> Running {
        let started = match self.shape {
            Shape::Cluster => Cluster::start(self.flavor, 1).map(Running::Cluster),
            Shape::Sentinels => Sentinels::start(self.flavor, 1).map(Running::Sentinels),
        };
        let running = started.unwrap_or_else(|missing| panic!("{missing}"));
        running.hold_still();
        running
    }

    fn running(&self) -> Result<&Running, String> {
        self.running.get().ok_or_else(|| "the servers were not started here".to_owned())
    }

    fn client(url: &str) -> Result<RedisBackend, Fault> {
        // Many processes start at once, on a machine however busy; commands outlast a failover.
        let config = RedisConfig::new(url)
            .and_then(|config| config.connect_timeout(CONNECT_BOUND))
            .and_then(|config| config.command_timeout(COMMAND_BOUND))
            .expect("the address is a URL");
        let begun = Instant::now();
        loop {
            match pollster::block_on(RedisBackend::connect(config.clone())) {
                Err(fault) if fault.is_retryable() && begun.elapsed() < CONNECT_BOUND => {}
                done => return done,
            }
        }
    }
}

impl Running {
    fn url(&self) -> String {
        match self {
            Self::Cluster(cluster) => cluster.url(),
            Self::Sentinels(sentinels) => sentinels.url(),
        }
    }

    fn servers(&self) -> &[Server] {
        match self {
            Self::Cluster(cluster) => cluster.nodes(),
            Self::Sentinels(sentinels) => sentinels.servers(),
        }
    }

    /// The number of the replica of the first master at the start, which is 0.
    const fn second(&self) -> usize {
        match self {
            Self::Cluster(_) => 3,
            Self::Sentinels(_) => 1,
        }
    }

    /// From now on failovers come when they are asked for: one that a busy machine makes them do by
    /// themselves would lose answers that nobody knows of.
    fn hold_still(&self) {
        let (asked, settings): (_, &[&str]) = match self {
            Self::Cluster(cluster) => (cluster.nodes(), &["CONFIG SET cluster-node-timeout 60000"]),
            Self::Sentinels(sentinels) => (
                sentinels.sentinels(),
                &[
                    "SENTINEL SET locks down-after-milliseconds 60000",
                    // One that does not come to an end is given up and begun anew.
                    "SENTINEL SET locks failover-timeout 10000",
                ],
            ),
        };
        for (server, setting) in asked.iter().flat_map(|one| settings.iter().map(move |s| (one, s)))
        {
            let command: Vec<_> = setting.split(' ').collect();
            assert_eq!(server.command(&command).text(), "OK", "{command:?}");
        }
    }

    /// Puts a replica in its master's place, and returns once it is there.
    fn replace_by(&self, replica: usize) {
        match self {
            Self::Cluster(cluster) => {
                let command = ["CLUSTER", "FAILOVER", "TAKEOVER"];
                assert_eq!(cluster.node(replica).command(&command).text(), "OK");
                wait_until("the replica is the master", || cluster.is_master(replica));
            }
            Self::Sentinels(sentinels) => assert_eq!(sentinels.fail_over(), replica),
        }
    }

    /// The master and its replica, once both are in their places for everybody.
    fn pair(&self) -> (usize, usize) {
        let mut pair = None;
        wait_until("a replica has what its master has", || {
            let (one, other) = (0, self.second());
            pair = [(one, other), (other, one)].into_iter().find(|(master, replica)| {
                let about = |key| self.servers()[*replica].info("replication", key);
                self.is_master(*master)
                    && about("role").as_deref() == Some("slave")
                    && about("master_link_status").as_deref() == Some("up")
            });
            pair.is_some()
        });
        pair.expect("just found")
    }

    fn is_master(&self, number: usize) -> bool {
        match self {
            Self::Cluster(cluster) => cluster.is_master(number),
            Self::Sentinels(sentinels) => {
                sentinels.master() == Some(number) && sentinels.is_master(number)
            }
        }
    }

    /// Returns once a replica has all that its master has answered.
    fn wait_until_replicated(&self, master: usize, replica: usize) {
        let offset = |number: usize, key| -> Option<u64> {
            self.servers()[number].info("replication", key)?.parse().ok()
        };
        let answered = offset(master, "master_repl_offset").expect("a master");
        wait_until("the replica has it all", || {
            offset(replica, "slave_repl_offset").is_some_and(|has| has >= answered)
        });
    }

    /// Has one follow the other, and returns once it does not answer as a master any more. A cluster
    /// sees to that by itself, and sentinels would after some 10 s.
    fn wait_until_follows(&self, number: usize, master: usize) {
        let servers = self.servers();
        if let Self::Sentinels(sentinels) = self {
            // The sentinels would send it to the address that they know.
            let port = match master {
                0 => sentinels.to_first().address().port(),
                _ => servers[master].port(),
            };
            let port = port.to_string();
            let reply = servers[number].command(&["REPLICAOF", "127.0.0.1", &port]);
            assert!(!reply.is_error(), "{reply:?}");
        }
        wait_until("the one before is a replica", || {
            servers[number].info("replication", "role").as_deref() == Some("slave")
        });
    }
}

impl Stage for OnFleet {
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

    fn connect(&self, address: &Path) -> Result<Arc<dyn Backend>, Fault> {
        if !address.exists() {
            let running = self.running.get_or_init(|| self.start());
            fs::write(address, running.url()).expect("the address can be written");
        }
        let url = fs::read_to_string(address).expect("the address can be read");
        Ok(Arc::new(Self::client(&url)?))
    }

    fn disturb(&self, _: &Path, turn: u32) -> Result<Disturbance, String> {
        let fleet = self.running()?;
        let (master, replica) = fleet.pair();
        if self.master.swap(replica, Ordering::Relaxed) != master {
            return Err(format!("server {master} has become the master by itself"));
        }
        let (old, new) = (&fleet.servers()[master], &fleet.servers()[replica]);
        let since = Instant::now();
        fleet.wait_until_replicated(master, replica);
        let (what, from, until);
        if turn % 3 == 2 {
            what = "a master held up, replaced and going on for a while";
            old.pause();
            from = Instant::now();
            fleet.replace_by(replica);
            old.resume();
            // sleep: for others to take turns, on whichever they take for the master.
            thread::sleep(ALONE);
            fleet.wait_until_follows(master, replica);
            until = Instant::now();
        } else {
            if turn.is_multiple_of(3) {
                what = "a master killed that nobody replicated for a while";
                // It would ask for what it has missed at once.
                new.pause();
                old.command(&["CLIENT", "KILL", "TYPE", "replica"]);
                // sleep: for others to take turns that are forgotten.
                thread::sleep(ALONE);
            } else {
                what = "a master killed";
            }
            old.kill();
            until = Instant::now();
            from = until;
            new.resume();
            fleet.replace_by(replica);
            // Whatever it had is gone.
            old.start_again();
            fleet.wait_until_follows(master, replica);
        }
        let forgets = Some(Forgets { since, from, until });
        Ok(Disturbance { forgets, ..Disturbance::from(what) })
    }

    /// What the killed have left must run out.
    fn reboot(&self, address: &Path) -> Result<(), String> {
        let client = self.connect(address).map_err(|fault| fault.to_string())?;
        let begun = Instant::now();
        loop {
            let left =
                pollster::block_on(client.survey(None)).map_err(|fault| fault.to_string())?;
            if left.is_empty() {
                return Ok(());
            }
            if begun.elapsed() > 3 * defaults::LIVENESS_LIMIT {
                return Err(format!("left after {:?}: {left:?}", begun.elapsed()));
            }
            // sleep: between two looks at a condition with a deadline.
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// A minute after the end no master has a key of it.
    fn end(&self, _: &Path) -> Result<(), String> {
        let fleet = self.running()?;
        fleet.pair();
        let begun = Instant::now();
        for server in fleet.servers() {
            while server.info("replication", "role").as_deref() == Some("master")
                && !server.command(&["KEYS", "*"]).items().is_empty()
            {
                if begun.elapsed() > KEYS_BOUND {
                    return Err(format!("left: {:?}", server.command(&["KEYS", "*"])));
                }
                // sleep: between two looks at a condition with a deadline.
                thread::sleep(Duration::from_millis(50));
            }
        }
        Ok(())
    }
}
