//! A history on a real server of each kind: processes that are killed and stopped, while scripts are
//! forgotten, connections cut, the server held up, killed and started anew, and its clock stepped.
//! `cargo xtask soak` runs long ones (`LEASEHOLD_SOAK=1`).
//!
//! A server that is not installed makes its history *ignored*, visibly; where servers are required
//! (`CI=true` or `LEASEHOLD_REQUIRE_SERVERS=1`) it fails.
#![forbid(unsafe_code)]

use std::{
    env, fs,
    path::Path,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicI64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use leasehold_conformance::history::{self, Disturbance, History, Size, Stage};
use leasehold_core::{Backend, Fault, defaults};
use leasehold_redis::{RedisBackend, RedisConfig};
use test_servers::{Data, Flavor, Server};

/// Each of the dead is waited for until it runs out, so there are more locks than where a death is
/// proven, and less happens in the same time.
const CI: Size = Size {
    processes: 8,
    sets: 2,
    hand_offs: 320,
    kills_each: 10,
    kills_anywhere: 2,
    stops_each: 4,
    disturbances: 14,
    ttl: Size::TTL,
};
const SOAK: Size = Size {
    processes: 12,
    sets: 3,
    hand_offs: 5_200,
    kills_each: 205,
    kills_anywhere: 100,
    stops_each: 40,
    disturbances: 140,
    ttl: Size::TTL,
};
/// How long a process may take to connect.
const CONNECT_BOUND: Duration = Duration::from_secs(20);
/// How long keys may stay when nobody wants them any more.
const KEYS_BOUND: Duration = Duration::from_secs(60);

static REDIS_7_0: OnRedis = OnRedis::new(Flavor::Redis70);
static REDIS_6_2: OnRedis = OnRedis::new(Flavor::Redis62);
static VALKEY: OnRedis = OnRedis::new(Flavor::Valkey);

fn main() {
    let set = |name: &str, value: &str| env::var(name).is_ok_and(|set| set == value);
    let size = if set("LEASEHOLD_SOAK", "1") { SOAK } else { CI };
    let is_required = set("CI", "true") || set("LEASEHOLD_REQUIRE_SERVERS", "1");
    let histories = [&REDIS_7_0, &REDIS_6_2, &VALKEY].map(|stage| {
        let missing = stage.flavor.installed().err().map(|missing| missing.to_string());
        assert!(missing.is_none() || !is_required, "{missing:?}");
        // It is said once, and the process ends with it.
        let missing = missing.map(|missing| &*missing.leak());
        History { kind: stage.flavor.name(), stage, size, missing }
    });
    history::main_of(&histories);
}

/// One server, which every process of the history finds by the file at its address.
struct OnRedis {
    flavor: Flavor,
    server: OnceLock<Server>,
    /// How far its clock is beside the real one, in seconds.
    beside: AtomicI64,
}

impl OnRedis {
    const fn new(flavor: Flavor) -> Self {
        Self { flavor, server: OnceLock::new(), beside: AtomicI64::new(0) }
    }

    /// Debian's 7.0 does not start with a clock that can be stepped.
    fn has_fake_clock(&self) -> bool {
        self.flavor != Flavor::Redis70
    }

    fn server(&self) -> Result<&Server, String> {
        self.server.get().ok_or_else(|| "the server was not started here".to_owned())
    }

    fn start(&self) -> Server {
        let builder = Server::builder(self.flavor).persistence(true);
        let builder = if self.has_fake_clock() { builder.fake_clock() } else { builder };
        builder.start().unwrap_or_else(|missing| panic!("{missing}"))
    }

    fn step_clock(&self, by: i64) -> Result<(), String> {
        let beside = self.beside.fetch_add(by, Ordering::Relaxed) + by;
        self.server()?.step_clock(beside);
        Ok(())
    }

    /// Polls a condition that names what is left; `Err`: it was left for longer than that.
    fn until_nothing_is_left(
        bound: Duration,
        left: impl Fn() -> Result<Option<String>, String>,
    ) -> Result<(), String> {
        let begun = Instant::now();
        while let Some(left) = left()? {
            if begun.elapsed() > bound {
                return Err(format!("left after {bound:?}: {left}"));
            }
            // sleep: between two looks at a condition with a deadline.
            thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }
}

impl Stage for OnRedis {
    fn name(&self) -> &'static str {
        self.flavor.name()
    }

    fn connect(&self, address: &Path) -> Result<Arc<dyn Backend>, Fault> {
        if !address.exists() {
            let server = self.server.get_or_init(|| self.start());
            fs::write(address, server.url()).expect("the address can be written");
        }
        let url = fs::read_to_string(address).expect("the address can be read");
        // Many processes start at once, on a machine however busy.
        let config = RedisConfig::new(&url)
            .and_then(|config| config.connect_timeout(CONNECT_BOUND))
            .expect("the address is a URL");
        let begun = Instant::now();
        loop {
            match pollster::block_on(RedisBackend::connect(config.clone())) {
                Ok(backend) => return Ok(Arc::new(backend)),
                // A server that was silent for a moment, while somebody connected.
                Err(fault) if fault.is_retryable() && begun.elapsed() < CONNECT_BOUND => {}
                Err(fault) => return Err(fault),
            }
        }
    }

    fn disturb(&self, _: &Path, turn: u32) -> Result<Disturbance, String> {
        let server = self.server()?;
        let ask = |command: &[&str]| server.command(command).text();
        Ok(match turn % if self.has_fake_clock() { 8 } else { 6 } {
            0 => {
                ask(&["SCRIPT", "FLUSH"]);
                "scripts forgotten".into()
            }
            1 => {
                ask(&["CLIENT", "KILL", "TYPE", "pubsub"]);
                "pushing connections cut".into()
            }
            2 => {
                ask(&["CLIENT", "KILL", "TYPE", "normal"]);
                "asking connections cut".into()
            }
            3 => {
                // Less than what is left of a lease that is renewed in time.
                ask(&["CLIENT", "PAUSE", "150"]);
                "paused for 150 ms".into()
            }
            4 => {
                server.restart(Data::Kept);
                "started anew with its data".into()
            }
            5 => {
                // Everything is on disk before it is answered.
                server.kill();
                server.start_again();
                "killed and started anew".into()
            }
            6 => {
                self.step_clock(7_200)?;
                Disturbance { steps_clock: true, ..Disturbance::from("clock two hours ahead") }
            }
            _ => {
                // By as much longer the dead are in the way, so not by hours.
                self.step_clock(-2)?;
                Disturbance { steps_clock: true, ..Disturbance::from("clock two seconds back") }
            }
        })
    }

    /// The machine's boots are nothing to a server; but what the killed have left must run out.
    fn reboot(&self, address: &Path) -> Result<(), String> {
        let client = self.connect(address).map_err(|fault| fault.to_string())?;
        Self::until_nothing_is_left(3 * defaults::LIVENESS_LIMIT, || {
            let left =
                pollster::block_on(client.survey(None)).map_err(|fault| fault.to_string())?;
            Ok((!left.is_empty()).then(|| format!("{left:?}")))
        })
    }

    /// A minute after the end the server has forgotten all of it.
    fn end(&self, _: &Path) -> Result<(), String> {
        let server = self.server()?;
        Self::until_nothing_is_left(KEYS_BOUND, || {
            let left = server.command(&["KEYS", "*"]);
            Ok((!left.items().is_empty()).then(|| format!("{left:?}")))
        })
    }
}
