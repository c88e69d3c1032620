//! Many names, many waiters, and many names that are used once.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use test_servers::{Flavor, Server, proxy::Proxy};
use tokio::sync::mpsc::unbounded_channel;

use crate::{PATIENCE, Test, connect, run};

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

/// How many of those who wait for one name are let in before the rest leaves.
const IN_ORDER: usize = 100;
const AT_A_TIME: usize = 500;
/// What a client or a server may need more after many names than after a few: its memory moves about
/// by this much anyhow, and a hundred bytes a name of a million would be a hundred times as much.
const NOISE_KIB: u64 = 24 * 1024;

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
        let (holding, waiting) = (connect(&server.url()).await, connect(&proxy.url()).await);
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
        let locks = connect(&server.url()).await;
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
        for expected in 0..IN_ORDER {
            let (index, lease) = grants.recv().await.expect("the next gets in");
            assert_eq!(index, expected, "not in the order of arrival");
            assert!(lease.release().await.expect("answers"));
        }
        // Those who leave are no longer in anybody's way.
        tasks.iter().for_each(tokio::task::JoinHandle::abort);
        drop(grants);
        let late = connect(&server.url()).await;
        let late = late.mutex("orders").expect("a name");
        let lease = late.lock().timeout(PATIENCE).await.expect("granted after all who left");
        assert!(lease.release().await.expect("answers"));
    });
}

fn names_that_were_used_once_leave_nothing(flavor: Flavor) {
    let (_alone, rounds) = (alone(), Sizes::get().once / AT_A_TIME);
    let server = Server::start(flavor).expect("installed");
    run(async {
        let locks = connect(&server.url()).await;
        let mut early = None;
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
            // By then as many names are remembered as ever will be, for the seconds that they are.
            if round == rounds.min(100) / 2 {
                early = Some(memory_kib(&server));
            }
        }
        assert_eq!(locks.count(None), 0, "the manager remembers names that nobody has");
        let (early, late) = (early.expect("there are many rounds"), memory_kib(&server));
        let (client, server_side) = (("client", early.0, late.0), ("server", early.1, late.1));
        // This process is also that of the trials beside this one: its memory tells of the client only
        // where a million names would show among theirs.
        let of_client = crate::is_soak().then_some(client);
        for (whose, early, late) in of_client.into_iter().chain([server_side]) {
            assert!(late <= early + NOISE_KIB, "{whose}: {early} KiB at first, then {late}");
        }
        // The server forgets what was used a few seconds after it may.
        let begun = std::time::Instant::now();
        while server.command(&["DBSIZE"]).int() > 0 {
            let left = server.command(&["DBSIZE"]).int();
            assert!(begun.elapsed() < Duration::from_secs(60), "{left} keys are left");
            // sleep: for the server's own expiry, which comes when it comes.
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
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
        let begun = std::time::Instant::now();
        while server.command(&["DBSIZE"]).int() > 0 {
            let left = server.command(&["DBSIZE"]).int();
            assert!(begun.elapsed() < FORGOTTEN, "{left} keys are left");
            // sleep: for the server's own expiry, which comes when it comes.
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    });
}

/// What this process and the server use, in KiB.
fn memory_kib(server: &Server) -> (u64, u64) {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells");
    let own = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it is there");
    let own = own.trim().trim_end_matches(" kB").parse().expect("a number");
    let servers = server.info("memory", "used_memory").expect("the server tells");
    (own, servers.parse::<u64>().expect("a number") / 1024)
}
