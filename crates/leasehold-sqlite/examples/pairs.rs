//! Measures acquisitions with their releases per second, of one task and of 64, and the hand-over
//! between two clients: `cargo run --release -p leasehold-sqlite --example pairs [one|names|queue|hand-over]`.
#![allow(clippy::print_stdout, reason = "a measurement is printed")]

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use leasehold_core::{
    Acquire, Acquired, AttemptId, Backend, Binding, Capacity, CapacityClaim, Confirmed, HolderInfo,
    LockId, LockKind, LockName, Namespace, Released, Share, Token, Ttl, defaults,
};
use leasehold_sqlite::SqliteBackend;

const FOR: Duration = Duration::from_secs(3);

fn lock(name: &str) -> Arc<LockId> {
    let name = LockName::new(name).expect("a short name");
    Arc::new(LockId::new(Namespace::default(), LockKind::Mutex, name))
}

fn request(lock: &Arc<LockId>, info: &Arc<HolderInfo>) -> Acquire {
    Acquire {
        lock: Arc::clone(lock),
        generation: None,
        capacity: CapacityClaim::Exactly(Capacity::ONE),
        share: Share::ONE,
        token: Token::random(),
        attempt: AttemptId::random(),
        ttl: Some(Ttl::DEFAULT),
        binding: Binding::Client,
        wait: true,
        not_after: None,
        queue_limit: defaults::QUEUE_LIMIT,
        info: Arc::clone(info),
    }
}

async fn pair(backend: &SqliteBackend, lock: &Arc<LockId>, info: &Arc<HolderInfo>) -> Instant {
    let request = request(lock, info);
    match backend.acquire(&request).await.expect("the store works") {
        Acquired::Granted(_) => {}
        Acquired::Queued(place) => loop {
            place.wake.notified().await;
            match backend.confirm(lock, &request.token).await.expect("the store works") {
                Confirmed::Granted(_) => break,
                Confirmed::Waiting => {}
                other => panic!("{other:?}"),
            }
        },
        other => panic!("{other:?}"),
    }
    let held_at = Instant::now();
    let released = backend.release(lock, &request.token).await.expect("the store works");
    assert_eq!(released, Released::Holder);
    held_at
}

async fn measure(what: &str, backend: &Arc<SqliteBackend>, locks: Vec<Arc<LockId>>) {
    let info = Arc::new(HolderInfo::here());
    let many = locks.len() > 1;
    let start = Instant::now();
    let tasks: Vec<_> = locks
        .into_iter()
        .map(|lock| {
            let (backend, info) = (Arc::clone(backend), Arc::clone(&info));
            tokio::spawn(async move {
                let mut pairs = 0_u64;
                while start.elapsed() < FOR {
                    pair(&backend, &lock, &info).await;
                    pairs += 1;
                    if many {
                        tokio::task::yield_now().await;
                    }
                }
                pairs
            })
        })
        .collect();
    let mut pairs = 0;
    for task in tasks {
        pairs += task.await.expect("no panic");
    }
    let per_second = u128::from(pairs) * 1_000_000 / start.elapsed().as_micros();
    println!("{what}: {per_second} pairs/s");
}

/// Holds in one client and waits in the other, again and again: how long from the release to the
/// confirmed grant.
async fn hand_over(path: &std::path::Path) {
    let backends =
        [SqliteBackend::open(path).expect("opens"), SqliteBackend::open(path).expect("opens")];
    let (lock, info) = (lock("hand-over"), Arc::new(HolderInfo::here()));
    let mut gaps = Vec::new();
    for round in 0..500 {
        let (giver, taker) = (&backends[round % 2], &backends[(round + 1) % 2]);
        let held = request(&lock, &info);
        assert!(matches!(giver.acquire(&held).await.expect("works"), Acquired::Granted(_)));
        let wanted = request(&lock, &info);
        let Acquired::Queued(place) = taker.acquire(&wanted).await.expect("works") else {
            panic!("granted twice");
        };
        let start = Instant::now();
        giver.release(&lock, &held.token).await.expect("works");
        place.wake.notified().await;
        let confirmed = taker.confirm(&lock, &wanted.token).await.expect("works");
        assert!(matches!(confirmed, Confirmed::Granted(_)));
        gaps.push(start.elapsed());
        taker.release(&lock, &wanted.token).await.expect("works");
    }
    gaps.sort();
    println!("hand-over between two clients: median {:?}, p99 {:?}", gaps[250], gaps[495]);
}

fn main() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("locks.db");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let start = Instant::now();
        let backend = Arc::new(SqliteBackend::open(&path).expect("opens"));
        println!("created in {:?}", start.elapsed());
        let start = Instant::now();
        drop(SqliteBackend::open(&path).expect("opens"));
        println!("opened in {:?}", start.elapsed());
        let only = std::env::args().nth(1);
        let is_on = |what: &str| only.as_ref().is_none_or(|only| only == what);
        let names = |count: usize| (0..64).map(|n| lock(&format!("n{}", n % count))).collect();
        if is_on("one") {
            measure("one task", &backend, vec![lock("one")]).await;
        }
        if is_on("names") {
            measure("64 tasks, 64 names", &backend, names(64)).await;
        }
        if is_on("queue") {
            measure("64 tasks, one name", &backend, names(1)).await;
        }
        if is_on("hand-over") {
            hand_over(&path).await;
        }
    });
}
