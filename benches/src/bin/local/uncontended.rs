//! One task, one lock, nobody else: what a lock and an unlock cost.
//!
//! Outside of Tokio the loop runs under a bare `block_on`, inside it runs in a spawned task. The
//! floor is what no lock can do without: one compare-and-swap to take and one to give back.

use std::{
    hint::black_box,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use crate::{
    OURS, Rows,
    row::{FLOOR, Row, Sample},
};

/// Operations between two looks at the clock.
const BATCH: u64 = 10_000;
const MINUTE: Duration = Duration::from_secs(60);

fn leak<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

/// Repeats `$operation` for about `$run`, as a future.
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
            Sample { took: start.elapsed(), operations, turns: None }
        }
    };
}

/// The same contender under a bare `block_on`, then in a spawned task of Tokio.
macro_rules! contender {
    ($rows:ident, $name:expr, $operation:expr) => {
        $rows.0 = $rows.0.with($name, move |run| pollster::block_on(repeat!(run, $operation)));
        $rows.1 = spawned($rows.1, $name, move |run| Box::pin(repeat!(run, $operation)));
    };
}

type Boxed = std::pin::Pin<Box<dyn Future<Output = Sample> + Send>>;

fn spawned(row: Row, name: &'static str, work: impl Fn(Duration) -> Boxed + 'static) -> Row {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_time()
        .build()
        .expect("a runtime");
    row.with(name, move |run| {
        runtime.block_on(runtime.spawn(work(run))).expect("the work does not panic")
    })
}

fn pair(work: &str) -> (Row, Row) {
    (Row::new(work), Row::new(format!("{work}, tokio")))
}

pub(crate) fn rows() -> Rows {
    let all = [mutex(), semaphore(), read(), write(), with_timeout()];
    all.into_iter().flat_map(|(outside, inside)| [outside, inside]).collect()
}

#[inline]
fn floor(word: &AtomicU64) {
    let _ = word.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed);
    black_box(word);
    let _ = word.compare_exchange(1, 0, Ordering::Release, Ordering::Relaxed);
}

fn mutex() -> (Row, Row) {
    let mut rows = pair("uncontended mutex");
    let word = leak(AtomicU64::new(0));
    contender!(rows, FLOOR, floor(word));
    let ours = leak(leasehold_sync::Mutex::new(0_u64));
    contender!(rows, OURS, *black_box(ours).lock().await += 1);
    let peer = leak(tokio::sync::Mutex::new(0_u64));
    contender!(rows, "tokio", *black_box(peer).lock().await += 1);
    let peer = leak(futures_intrusive::sync::Mutex::new(0_u64, true));
    contender!(rows, "futures-intrusive", *black_box(peer).lock().await += 1);
    let peer = leak(xutex::AsyncMutex::new(0_u64));
    contender!(rows, "xutex", *black_box(peer).lock().await += 1);
    let peer = leak(async_lock::Mutex::new(0_u64));
    contender!(rows, "async-lock", *black_box(peer).lock().await += 1);
    let peer = leak(maitake_sync::Mutex::new(0_u64));
    contender!(rows, "maitake-sync", *black_box(peer).lock().await += 1);
    let peer = leak(parking_lot::Mutex::new(0_u64));
    contender!(rows, "parking_lot", *black_box(peer).lock() += 1);
    rows
}

fn semaphore() -> (Row, Row) {
    let mut rows = pair("uncontended semaphore");
    let word = leak(AtomicU64::new(0));
    contender!(rows, FLOOR, floor(word));
    let ours = leak(leasehold_sync::Semaphore::new(3).expect("three permits"));
    contender!(rows, OURS, drop(black_box(ours).acquire().await));
    let peer = leak(tokio::sync::Semaphore::new(3));
    contender!(rows, "tokio", drop(black_box(peer).acquire().await));
    let peer = leak(futures_intrusive::sync::Semaphore::new(true, 3));
    contender!(rows, "futures-intrusive", drop(black_box(peer).acquire(1).await));
    let peer = leak(async_lock::Semaphore::new(3));
    contender!(rows, "async-lock", drop(black_box(peer).acquire().await));
    let peer = leak(maitake_sync::Semaphore::new(3));
    contender!(rows, "maitake-sync", drop(black_box(peer).acquire(1).await));
    rows
}

fn read() -> (Row, Row) {
    let mut rows = pair("uncontended read");
    let word = leak(AtomicU64::new(0));
    contender!(rows, FLOOR, floor(word));
    let ours = leak(leasehold_sync::RwLock::new(0_u64));
    contender!(rows, OURS, black_box(*black_box(ours).read().await));
    let peer = leak(tokio::sync::RwLock::new(0_u64));
    contender!(rows, "tokio", black_box(*black_box(peer).read().await));
    let peer = leak(async_lock::RwLock::new(0_u64));
    contender!(rows, "async-lock", black_box(*black_box(peer).read().await));
    let peer = leak(maitake_sync::RwLock::new(0_u64));
    contender!(rows, "maitake-sync", black_box(*black_box(peer).read().await));
    let peer = leak(parking_lot::RwLock::new(0_u64));
    contender!(rows, "parking_lot", black_box(*black_box(peer).read()));
    rows
}

fn write() -> (Row, Row) {
    let mut rows = pair("uncontended write");
    let word = leak(AtomicU64::new(0));
    contender!(rows, FLOOR, floor(word));
    let ours = leak(leasehold_sync::RwLock::new(0_u64));
    contender!(rows, OURS, *black_box(ours).write().await += 1);
    let peer = leak(tokio::sync::RwLock::new(0_u64));
    contender!(rows, "tokio", *black_box(peer).write().await += 1);
    let peer = leak(async_lock::RwLock::new(0_u64));
    contender!(rows, "async-lock", *black_box(peer).write().await += 1);
    let peer = leak(maitake_sync::RwLock::new(0_u64));
    contender!(rows, "maitake-sync", *black_box(peer).write().await += 1);
    let peer = leak(parking_lot::RwLock::new(0_u64));
    contender!(rows, "parking_lot", *black_box(peer).write() += 1);
    rows
}

fn with_timeout() -> (Row, Row) {
    let mut rows = pair("uncontended mutex with timeout");
    let word = leak(AtomicU64::new(0));
    contender!(rows, FLOOR, floor(word));
    let ours = leak(leasehold_sync::Mutex::new(0_u64));
    contender!(rows, OURS, {
        if let Ok(mut guard) = black_box(ours).lock().timeout(MINUTE).await {
            *guard += 1;
        }
    });
    // Tokio's timeout needs a runtime, so its peers run inside of one only.
    let peer = leak(tokio::sync::Mutex::new(0_u64));
    rows.1 = spawned(rows.1, "tokio", move |run| {
        Box::pin(repeat!(run, {
            if let Ok(mut guard) = tokio::time::timeout(MINUTE, black_box(peer).lock()).await {
                *guard += 1;
            }
        }))
    });
    let peer = leak(xutex::AsyncMutex::new(0_u64));
    rows.1 = spawned(rows.1, "xutex", move |run| {
        Box::pin(repeat!(run, {
            if let Ok(mut guard) = tokio::time::timeout(MINUTE, black_box(peer).lock()).await {
                *guard += 1;
            }
        }))
    });
    rows
}
