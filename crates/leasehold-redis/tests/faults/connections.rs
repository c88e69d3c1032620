//! Scripts, subscriptions and connections that go away, and servers that do not answer for a while.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use test_servers::{Flavor, Server, proxy::Proxy};

use crate::{
    Test, connect, impatient, is_free_in_the_end, run,
    witness::{Errors, contend, contend_with},
};

pub(crate) const TESTS: &[Test] = &[
    ("scripts_that_are_flushed_all_the_time", scripts_that_are_flushed_all_the_time),
    ("subscriptions_that_are_killed_all_the_time", subscriptions_that_are_killed_all_the_time),
    ("connections_that_are_killed_all_the_time", connections_that_are_killed_all_the_time),
    ("a_pause_longer_than_the_command_timeout", a_pause_longer_than_the_command_timeout),
    ("a_sleep_longer_than_the_command_timeout", a_sleep_longer_than_the_command_timeout),
    ("a_wrong_password_is_in_no_message", a_wrong_password_is_in_no_message),
];

/// Longer than the commands of an impatient client are waited for.
const LONG: Duration = Duration::from_secs(1);

/// How often something happens to a server at least.
const TIMES: u64 = 8;

/// Does something to a server again and again, until it is stopped.
struct Nuisance {
    times: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Nuisance {
    fn of(server: &Arc<Server>, every: Duration, act: fn(&Server)) -> Self {
        let (times, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (server, acted, stopped) = (Arc::clone(server), Arc::clone(&times), Arc::clone(&stop));
        let thread = thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                act(&server);
                acted.fetch_add(1, Ordering::Relaxed);
                // sleep: the pace of the nuisance; nothing is ordered by it.
                thread::sleep(every);
            }
        });
        Self { times, stop, thread }
    }

    fn times(&self) -> u64 {
        self.times.load(Ordering::Relaxed)
    }

    fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("acts");
    }
}

/// However fast the turns are taken, they are until it has happened some times.
fn disturbed(flavor: Flavor, every: Duration, turns: usize, act: fn(&Server)) {
    let server = Arc::new(Server::start(flavor).expect("installed"));
    run(async {
        let managers = [connect(&server.url()).await, connect(&server.url()).await];
        let nuisance = Nuisance::of(&server, every, act);
        while nuisance.times() < TIMES {
            contend(&managers, "orders", 2, turns).await;
        }
        nuisance.end();
        is_free_in_the_end(&server.url(), "orders").await;
    });
}

fn scripts_that_are_flushed_all_the_time(flavor: Flavor) {
    disturbed(flavor, Duration::from_millis(3), 60, |server| {
        server.command(&["SCRIPT", "FLUSH"]);
    });
}

fn subscriptions_that_are_killed_all_the_time(flavor: Flavor) {
    disturbed(flavor, Duration::from_millis(20), 60, |server| {
        server.command(&["CLIENT", "KILL", "TYPE", "pubsub"]);
    });
}

fn connections_that_are_killed_all_the_time(flavor: Flavor) {
    disturbed(flavor, Duration::from_millis(100), 60, |server| {
        server.command(&["CLIENT", "KILL", "TYPE", "normal"]);
        server.command(&["CLIENT", "KILL", "TYPE", "pubsub"]);
    });
}

/// Field reports 35 and 36: what was asked again because no answer came is granted once, and what
/// was given back is free.
fn unanswered(flavor: Flavor, stall: fn(&Server) -> Duration) {
    let server = Arc::new(Server::start(flavor).expect("installed"));
    run(async {
        let proxy = Proxy::to(server.address());
        let url = impatient(&proxy.url());
        let managers = [connect(&url).await, connect(&url).await];
        for _ in 0..2 {
            let (stalling, before) = (Arc::clone(&server), proxy.requests());
            let stalled = thread::spawn(move || stall(&stalling));
            contend_with(&managers, "orders", 2, 3, Errors::Unanswered).await;
            let took = stalled.join().expect("answers again");
            assert!(took >= LONG, "{took:?}");
            assert!(proxy.requests() > before);
        }
        for locks in managers {
            locks.shutdown().await.expect("answers");
        }
        is_free_in_the_end(&server.url(), "orders").await;
    });
}

fn a_pause_longer_than_the_command_timeout(flavor: Flavor) {
    unanswered(flavor, |server| {
        let begun = std::time::Instant::now();
        let pause = LONG.as_millis().to_string();
        assert_eq!(server.command(&["CLIENT", "PAUSE", &pause, "ALL"]).text(), "OK");
        server.command(&["PING"]);
        begun.elapsed()
    });
}

fn a_sleep_longer_than_the_command_timeout(flavor: Flavor) {
    unanswered(flavor, |server| {
        let begun = std::time::Instant::now();
        let reply = server.command(&["DEBUG", "SLEEP", &LONG.as_secs().to_string()]);
        assert_eq!(reply.text(), "OK");
        begun.elapsed()
    });
}

fn a_wrong_password_is_in_no_message(flavor: Flavor) {
    let server = Server::builder(flavor).password("right#=@/:%").start().expect("installed");
    run(async {
        let locks = connect(&server.url_with("default", "right#=@/:%")).await;
        assert!(!format!("{locks:?}").contains("right"), "{locks:?}");
        let wrong = leasehold::connect(&server.url_with("default", "wrong-secret")).await;
        let error = wrong.expect_err("another password");
        let mut said = format!("{error} {error:?}");
        let mut source = std::error::Error::source(&error);
        while let Some(cause) = source {
            said += &format!(" {cause} {cause:?}");
            source = cause.source();
        }
        assert!(!said.contains("secret") && !said.contains("right"), "{said}");
        locks.shutdown().await.expect("answers");
    });
}
