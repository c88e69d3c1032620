//! One task, one lock, nobody else: what a lock and an unlock cost.
//!
//! Outside of Tokio the loop runs under a bare `block_on`, inside it runs in a spawned task. The
//! floor is what no lock can do without: one compare-and-swap to take and one to give back.

use std::{
    hint::black_box,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use leasehold_benches::{
    Contenders, Goal,
    Place::{self, Floor, Ours, Peer},
    Report, Unit, runtime,
};

/// Operations between two looks at the clock.
const BATCH: u64 = 10_000;
const MINUTE: Duration = Duration::from_secs(60);

fn leak<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

/// Nanoseconds per `$operation`, repeated for about `$run`, as a future.
macro_rules! repeat {
    ($run:expr, $operation:expr) => {
        async move {
            let start = Instant::now();
            let mut operations = 0;
            while start.elapsed() < $run {
                for _ in 0..BATCH {
                    $operation;
                }
                operations += BATCH;
            }
            start.elapsed().as_secs_f64() * 1e9 / operations as f64
        }
    };
}

/// The same contender under a bare `block_on`, then in a spawned task of Tokio.
macro_rules! contender {
    ($pair:ident, $place:expr, $operation:expr) => {
        $pair.0.with($place, move |run| pollster::block_on(repeat!(run, $operation)));
        spawned(&mut $pair.1, $place, move |run| Box::pin(repeat!(run, $operation)));
    };
}

type Boxed = std::pin::Pin<Box<dyn Future<Output = f64> + Send>>;

fn spawned(
    contenders: &mut Contenders<'_>,
    place: Place,
    work: impl Fn(Duration) -> Boxed + 'static,
) {
    let runtime = runtime(1);
    contenders.with(place, move |run| {
        runtime.block_on(runtime.spawn(work(run))).expect("the work does not panic")
    });
}

/// The contenders outside of Tokio, and inside.
type Pair = (Contenders<'static>, Contenders<'static>);

pub(crate) fn measure(report: &mut Report) {
    // A mutex has to be nearer to the floor than what counts permits.
    let plain = rows(report, "uncontended mutex", [1.3, 1.9].map(Goal::TimesFloor), mutex());
    for (work, pair) in [
        ("uncontended semaphore", semaphore()),
        ("uncontended read", read()),
        ("uncontended write", write()),
    ] {
        rows(report, work, [1.4, 2.0].map(Goal::TimesFloor), pair);
    }
    let one_more = plain.map(|plain| Goal::from(plain.map(|plain| plain + 1.0)));
    rows(report, "uncontended mutex with timeout", one_more, with_timeout());
}

/// Both rows of a pair, and the medians of ours.
fn rows(report: &mut Report, work: &str, goals: [Goal; 2], pair: Pair) -> [Option<f64>; 2] {
    let [outside, inside] = goals;
    [
        report.measure(work, Unit::NS, outside, |row| *row = pair.0),
        report.measure(&format!("{work}, tokio"), Unit::NS, inside, |row| *row = pair.1),
    ]
}

#[inline]
fn floor(word: &AtomicU64) {
    let _ = word.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed);
    black_box(word);
    let _ = word.compare_exchange(1, 0, Ordering::Release, Ordering::Relaxed);
}

fn mutex() -> Pair {
    let mut pair = Pair::default();
    let word = leak(AtomicU64::new(0));
    contender!(pair, Floor, floor(word));
    let ours = leak(leasehold_sync::Mutex::new(0_u64));
    contender!(pair, Ours, *black_box(ours).lock().await += 1);
    let peer = leak(tokio::sync::Mutex::new(0_u64));
    contender!(pair, Peer("tokio"), *black_box(peer).lock().await += 1);
    let peer = leak(futures_intrusive::sync::Mutex::new(0_u64, true));
    contender!(pair, Peer("futures-intrusive"), *black_box(peer).lock().await += 1);
    let peer = leak(xutex::AsyncMutex::new(0_u64));
    contender!(pair, Peer("xutex"), *black_box(peer).lock().await += 1);
    let peer = leak(async_lock::Mutex::new(0_u64));
    contender!(pair, Peer("async-lock"), *black_box(peer).lock().await += 1);
    let peer = leak(maitake_sync::Mutex::new(0_u64));
    contender!(pair, Peer("maitake-sync"), *black_box(peer).lock().await += 1);
    let peer = leak(parking_lot::Mutex::new(0_u64));
    contender!(pair, Peer("parking_lot"), *black_box(peer).lock() += 1);
    pair
}

fn semaphore() -> Pair {
    let mut pair = Pair::default();
    let word = leak(AtomicU64::new(0));
    contender!(pair, Floor, floor(word));
    let ours = leak(leasehold_sync::Semaphore::new(3).expect("three permits"));
    contender!(pair, Ours, drop(black_box(ours).acquire().await));
    let peer = leak(tokio::sync::Semaphore::new(3));
    contender!(pair, Peer("tokio"), drop(black_box(peer).acquire().await));
    let peer = leak(futures_intrusive::sync::Semaphore::new(true, 3));
    contender!(pair, Peer("futures-intrusive"), drop(black_box(peer).acquire(1).await));
    let peer = leak(async_lock::Semaphore::new(3));
    contender!(pair, Peer("async-lock"), drop(black_box(peer).acquire().await));
    let peer = leak(maitake_sync::Semaphore::new(3));
    contender!(pair, Peer("maitake-sync"), drop(black_box(peer).acquire(1).await));
    pair
}

fn read() -> Pair {
    let mut pair = Pair::default();
    let word = leak(AtomicU64::new(0));
    contender!(pair, Floor, floor(word));
    let ours = leak(leasehold_sync::RwLock::new(0_u64));
    contender!(pair, Ours, black_box(*black_box(ours).read().await));
    let peer = leak(tokio::sync::RwLock::new(0_u64));
    contender!(pair, Peer("tokio"), black_box(*black_box(peer).read().await));
    let peer = leak(async_lock::RwLock::new(0_u64));
    contender!(pair, Peer("async-lock"), black_box(*black_box(peer).read().await));
    let peer = leak(maitake_sync::RwLock::new(0_u64));
    contender!(pair, Peer("maitake-sync"), black_box(*black_box(peer).read().await));
    let peer = leak(parking_lot::RwLock::new(0_u64));
    contender!(pair, Peer("parking_lot"), black_box(*black_box(peer).read()));
    pair
}

fn write() -> Pair {
    let mut pair = Pair::default();
    let word = leak(AtomicU64::new(0));
    contender!(pair, Floor, floor(word));
    let ours = leak(leasehold_sync::RwLock::new(0_u64));
    contender!(pair, Ours, *black_box(ours).write().await += 1);
    let peer = leak(tokio::sync::RwLock::new(0_u64));
    contender!(pair, Peer("tokio"), *black_box(peer).write().await += 1);
    let peer = leak(async_lock::RwLock::new(0_u64));
    contender!(pair, Peer("async-lock"), *black_box(peer).write().await += 1);
    let peer = leak(maitake_sync::RwLock::new(0_u64));
    contender!(pair, Peer("maitake-sync"), *black_box(peer).write().await += 1);
    let peer = leak(parking_lot::RwLock::new(0_u64));
    contender!(pair, Peer("parking_lot"), *black_box(peer).write() += 1);
    pair
}

fn with_timeout() -> Pair {
    let mut pair = Pair::default();
    let word = leak(AtomicU64::new(0));
    contender!(pair, Floor, floor(word));
    let ours = leak(leasehold_sync::Mutex::new(0_u64));
    contender!(pair, Ours, {
        if let Ok(mut guard) = black_box(ours).lock().timeout(MINUTE).await {
            *guard += 1;
        }
    });
    // Tokio's timeout needs a runtime, so its peers run inside of one only.
    let peer = leak(tokio::sync::Mutex::new(0_u64));
    spawned(&mut pair.1, Peer("tokio"), move |run| {
        Box::pin(repeat!(run, {
            if let Ok(mut guard) = tokio::time::timeout(MINUTE, black_box(peer).lock()).await {
                *guard += 1;
            }
        }))
    });
    let peer = leak(xutex::AsyncMutex::new(0_u64));
    spawned(&mut pair.1, Peer("xutex"), move |run| {
        Box::pin(repeat!(run, {
            if let Ok(mut guard) = tokio::time::timeout(MINUTE, black_box(peer).lock()).await {
                *guard += 1;
            }
        }))
    });
    pair
}
