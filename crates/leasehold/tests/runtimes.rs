//! The lease locks of one process on every kind of executor (rules W8, W9): Tokio with several
//! threads, with one, paused, without time; smol; a bare `block_on`; threads.
#![cfg(feature = "tokio")]

use std::{
    future::Future,
    sync::Arc,
    time::{Duration, Instant},
};

use leasehold::{Clock, LeaseMutex, LeaseRwLock, LeaseSemaphore, SystemClock, TokioClock};

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Everything that waits, on this clock: hand-off, timeout, cancellation, expiry, renewal, watching.
async fn behaviour(clock: Arc<dyn Clock>) {
    let mutex = LeaseMutex::with_clock(Arc::clone(&clock));
    let start = clock.now();

    // An expiry wakes the waiter; nobody calls.
    std::mem::forget(mutex.lock().ttl(ms(60)).await.unwrap());
    let second = mutex.lock().await.unwrap();
    assert!(clock.now().since(start) >= ms(60), "granted before the TTL ran out");

    // A timeout and a cancellation.
    assert!(mutex.lock().timeout(ms(20)).await.unwrap_err().is_timeout());
    assert!(mutex.try_lock().timeout(ms(20)).await.unwrap().is_none());
    let cancelled = mutex.lock().cancel_on(std::future::ready("stop")).await;
    assert!(cancelled.unwrap_err().is_cancelled());

    // Both sides of a hand-off in one task.
    let waiter = async { mutex.lock().await.unwrap() };
    let release = async { second.release().await.unwrap() };
    let (third, released) = both(waiter, release).await;
    assert!(released && third.is_held());

    // A lost lease says so, by the clock.
    third.extend(ms(30)).await.unwrap();
    third.lost().await;

    let exports = LeaseSemaphore::with_clock(3, Arc::clone(&clock)).unwrap();
    let slots = exports.acquire_many(3).ttl(ms(30)).await.unwrap();
    exports.wait_for_all_permits().await.unwrap();
    drop(slots);
    let sum = exports.run_exclusive(async |_| 1 + 1).await.unwrap();
    assert_eq!(sum, 2);

    let catalog = LeaseRwLock::with_clock(clock);
    let reading = catalog.read().await.unwrap();
    assert!(catalog.write().timeout(ms(10)).await.unwrap_err().is_timeout());
    drop(reading);
    drop(catalog.write().await.unwrap());
}

/// Polls two futures in one task.
async fn both<A, B>(a: impl Future<Output = A>, b: impl Future<Output = B>) -> (A, B) {
    let (mut a, mut b) = (std::pin::pin!(a), std::pin::pin!(b));
    let (mut first, mut second) = (None, None);
    std::future::poll_fn(|cx| {
        if first.is_none()
            && let std::task::Poll::Ready(value) = a.as_mut().poll(cx)
        {
            first = Some(value);
        }
        if second.is_none()
            && let std::task::Poll::Ready(value) = b.as_mut().poll(cx)
        {
            second = Some(value);
        }
        if first.is_some() && second.is_some() {
            return std::task::Poll::Ready(());
        }
        std::task::Poll::Pending
    })
    .await;
    (first.unwrap(), second.unwrap())
}

fn system() -> Arc<dyn Clock> {
    Arc::new(SystemClock::new())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokio_with_several_threads() {
    behaviour(system()).await;
}

#[tokio::test]
async fn tokio_with_one_thread() {
    behaviour(system()).await;
    behaviour(Arc::new(TokioClock::current())).await;
}

#[tokio::test(start_paused = true)]
async fn tokio_paused() {
    let start = Instant::now();
    let clock = Arc::new(TokioClock::current());
    let mutex = LeaseMutex::with_clock(clock.clone());
    std::mem::forget(mutex.lock().ttl(Duration::from_secs(50)).await.unwrap());
    drop(mutex.lock().await.unwrap());
    behaviour(clock).await;
    assert!(start.elapsed() < Duration::from_secs(10), "paused time did not move by itself");
}

#[test]
fn tokio_without_time() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(behaviour(system()));
}

#[test]
fn smol_and_a_bare_block_on() {
    smol::block_on(behaviour(system()));
    smol::block_on(smol::spawn(behaviour(system())));
    pollster::block_on(behaviour(system()));
}

#[test]
fn threads_that_block() {
    let mutex = LeaseMutex::new();
    let held = mutex.lock().ttl(ms(200)).blocking().unwrap();
    let waiting: Vec<_> = (0..8)
        .map(|_| {
            let mutex = mutex.clone();
            std::thread::spawn(move || {
                let lease = mutex.lock().blocking().unwrap();
                assert!(lease.release_blocking().unwrap());
            })
        })
        .collect();
    std::mem::forget(held);
    for thread in waiting {
        thread.join().unwrap();
    }
    assert!(pollster::block_on(mutex.inspect()).unwrap().is_none());
}
