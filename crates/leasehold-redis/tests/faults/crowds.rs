//! Many names, many waiters, and many names that are used once.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use test_servers::{Flavor, Server, proxy::Proxy};
use tokio::sync::mpsc::unbounded_channel;

use crate::{
    PATIENCE, Test,
    actor::{Actor, say},
    connect, run,
};

pub(crate) const TESTS: &[Test] = &[
    ("many_names_are_waited_for_over_one_connection", many_names_over_one_connection),
    ("many_wait_for_one_name_in_order", many_wait_for_one_name_in_order),
    ("names_that_were_used_once_leave_nothing", names_that_were_used_once_leave_nothing),
];

/// What takes too long for CI.
pub(crate) const LONG: &[Test] =
    &[("destroyed_names_are_forgotten_after_eleven_minutes", destroyed_names_are_forgotten)];

/// How many names are waited for over one connection, how many wait for one name, and how many names
/// are used once: ten times as many names and waiters in `cargo xtask soak`, and a million names.
struct Sizes {
    names: usize,
    waiters: usize,
    once: usize,
}

impl Sizes {
    fn get() -> Self {
        if crate::is_soak() {
            Self { names: 10_000, waiters: 20_000, once: 1_000_000 }
        } else {
            Self { names: 1_000, waiters: 2_000, once: 5_000 }
        }
    }
}

/// How many of those who wait for one name queue one after the other, and how many at a time then.
const IN_ORDER: usize = 100;
const AT_A_TIME: usize = 500;
/// What a client or a server may need more after many names than before: its memory moves about by
/// this much anyhow, and a hundred bytes a name of a million would be four times as much.
const NOISE_KIB: u64 = 24 * 1024;

/// How long the server keeps a name that was used, and as long again, since it clears up in its own time:
/// twice the timeout of commands and 2.5 s.
const KEPT: Duration = Duration::from_secs(13);

/// A URL whose commands are not given up for being one of hundreds at a time on a busy machine.
fn patient(url: &str) -> String {
    format!("{url}?command_timeout_ms=8000")
}

/// One crowd at a time: two would only stand in each other's way.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn many_names_over_one_connection(flavor: Flavor) {
    let (_alone, names) = (alone(), Sizes::get().names);
    let server = Server::start(flavor).expect("installed");
    run(async {
        let proxy = Proxy::to(server.address());
        let holding = connect(&patient(&server.url())).await;
        let waiting = connect(&patient(&proxy.url())).await;
        let mut held = Vec::new();
        for index in 0..names {
            let mutex = holding.mutex(format!("name {index}")).expect("a name");
            held.push(mutex.lock().ttl(PATIENCE * 2).await.expect("free"));
        }
        let open = proxy.connections();
        let (tell, mut queued) = unbounded_channel();
        let mut tasks = Vec::new();
        for index in 0..names {
            let mutex = waiting.mutex(format!("name {index}")).expect("a name");
            let tell = tell.clone();
            tasks.push(tokio::spawn(async move {
                let tell = move |_: &leasehold::Obstacle| tell.send(()).expect("somebody listens");
                let lease = mutex.lock().timeout(PATIENCE).on_queued(tell).await.expect("granted");
                lease.release().await.expect("answers")
            }));
        }
        for _ in 0..names {
            queued.recv().await.expect("every one of them is queued");
        }
        assert!(proxy.connections() <= open.max(2), "{} connections", proxy.connections());
        for lease in held {
            assert!(lease.release().await.expect("answers"));
        }
        for task in tasks {
            assert!(task.await.expect("no panic"));
        }
    });
}

fn many_wait_for_one_name_in_order(flavor: Flavor) {
    let (_alone, waiters) = (alone(), Sizes::get().waiters);
    let server = Server::start(flavor).expect("installed");
    run(async {
        let locks = connect(&patient(&server.url())).await;
        let mutex = locks.mutex("orders").expect("a name");
        let first = mutex.lock().ttl(PATIENCE * 2).await.expect("free");
        let (granted, mut grants) = unbounded_channel();
        let (tell, mut queued) = unbounded_channel();
        let (mut tasks, mut at_once) = (Vec::new(), 0);
        for index in 0..waiters {
            let (mutex, granted, told) = (mutex.clone(), granted.clone(), tell.clone());
            tasks.push(tokio::spawn(async move {
                let told = move |_: &leasehold::Obstacle| told.send(()).expect("somebody listens");
                let acquire = mutex.lock().ttl(PATIENCE).timeout(PATIENCE).on_queued(told);
                let lease = acquire.await.expect("granted");
                // Nobody listens once enough of them got in.
                let _ = granted.send((index, lease));
            }));
            // First one after the other, so that the order of their numbers is the queue's.
            at_once += 1;
            if index < IN_ORDER || at_once == AT_A_TIME || index + 1 == waiters {
                for _ in 0..std::mem::take(&mut at_once) {
                    queued.recv().await.expect("every one of them is queued");
                }
            }
        }
        assert_eq!(crate::queued(&mutex).await, waiters);
        assert!(first.release().await.expect("answers"));
        for turn in 0..waiters / 2 {
            let (index, lease) = grants.recv().await.expect("the next gets in");
            assert_eq!(rank(index), rank(turn), "{index} came in turn {turn}");
            assert!(lease.release().await.expect("answers"));
        }
        // Those who leave are no longer in anybody's way.
        tasks.iter().for_each(tokio::task::JoinHandle::abort);
        drop(grants);
        let late = connect(&patient(&server.url())).await;
        let late = late.mutex("orders").expect("a name");
        let lease = late.lock().timeout(PATIENCE).await.expect("granted after all who left");
        assert!(lease.release().await.expect("answers"));
    });
}

/// Those who queued at the same time are of one rank.
const fn rank(index: usize) -> usize {
    if index < IN_ORDER { index } else { IN_ORDER + (index - IN_ORDER) / AT_A_TIME }
}

/// The client is a process of its own, so that its memory is that of nobody else.
fn names_that_were_used_once_leave_nothing(flavor: Flavor) {
    let (alone, names) = (alone(), Sizes::get().once);
    let server = Server::start(flavor).expect("installed");
    let fresh = used_kib(&server);
    // With the usual timeout of commands, upon which it depends how long names are kept.
    let begun = Instant::now();
    let client = Actor::start_names(&server.url(), names);
    let [early, late] = [(); 2].map(|()| client.says().parse::<u64>().expect("a number"));
    let keys = server.command(&["DBSIZE"]).int();
    let of_all = KEPT.as_secs_f64() / begun.elapsed().as_secs_f64();
    drop(alone);
    assert!(late <= early + NOISE_KIB, "{early} KiB of the client's at first, then {late}");
    #[allow(clippy::cast_precision_loss, reason = "a million is a small number")]
    let recent = of_all * names as f64;
    #[allow(clippy::cast_precision_loss, reason = "a million is a small number")]
    let there = keys as f64;
    assert!(there <= recent, "{keys} keys: more than the {recent:.0} of the last seconds");
    // The server forgets what was used a few seconds after it may.
    run(is_empty_within(&server, Duration::from_secs(60)));
    let used = used_kib(&server);
    assert!(used <= fresh + NOISE_KIB, "{fresh} KiB of the server's before, then {used}");
}

/// Says what this process uses after some of them, and after all.
pub(crate) async fn use_names(url: &str, names: usize) {
    let locks = connect(url).await;
    let rounds = names / AT_A_TIME;
    for round in 0..rounds {
        let mut tasks = Vec::new();
        for index in 0..AT_A_TIME {
            let mutex = locks.mutex(format!("once {round} {index}")).expect("a name");
            tasks.push(tokio::spawn(async move {
                let lease = mutex.lock().await.expect("free");
                lease.release().await.expect("answers")
            }));
        }
        for task in tasks {
            assert!(task.await.expect("no panic"));
        }
        if round == rounds / 10 {
            say(&own_kib().to_string());
        }
    }
    assert_eq!(locks.count(None), 0, "the manager remembers names that nobody has");
    say(&own_kib().to_string());
}

async fn is_empty_within(server: &Server, bound: Duration) {
    let begun = Instant::now();
    loop {
        let left = server.command(&["DBSIZE"]).int();
        if left == 0 {
            return;
        }
        assert!(begun.elapsed() < bound, "{left} keys are left");
        // sleep: for the server's own expiry, which comes when it comes.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Rule N5: old handles learn of it for ten minutes.
fn destroyed_names_are_forgotten(flavor: Flavor) {
    const FORGOTTEN: Duration = Duration::from_secs(11 * 60);
    let server = Server::start(flavor).expect("installed");
    run(async {
        let locks = connect(&server.url()).await;
        for index in 0..100 {
            let mutex = locks.mutex(format!("destroyed {index}")).expect("a name");
            let lease = mutex.lock().await.expect("free");
            mutex.destroy().await.expect("answers");
            assert!(!lease.release().await.expect("answers"), "it was destroyed");
        }
        assert_eq!(server.command(&["DBSIZE"]).int(), 100, "all are remembered");
        is_empty_within(&server, FORGOTTEN).await;
    });
}

/// What this process uses, in KiB.
fn own_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells");
    let own = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it is there");
    own.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// What the server uses, in KiB.
fn used_kib(server: &Server) -> u64 {
    let used = server.info("memory", "used_memory").expect("the server tells");
    used.parse::<u64>().expect("a number") / 1024
}
