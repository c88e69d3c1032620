//! A timeout is neither early nor forgotten, and costs a free lock nothing (rule W2).

use std::{
    pin::pin,
    sync::atomic::{AtomicBool, Ordering},
    task::Poll,
    thread,
    time::{Duration, Instant},
};

use leasehold_sync::{Mutex, RwLock, Semaphore};

use crate::{HOUR, poll, ready};

#[test]
fn zero_is_one_attempt_that_never_queues() {
    // acceptance S17, R20
    let semaphore = Semaphore::new(1).unwrap();
    let held = ready(semaphore.acquire().timeout(Duration::ZERO)).expect("a free one is granted");
    assert!(ready(semaphore.acquire().timeout(Duration::ZERO)).unwrap_err().is_timeout());
    assert_eq!(semaphore.queued(), 0);
    drop(held);
    let lock = RwLock::new(());
    let held = ready(lock.write().timeout(Duration::ZERO)).unwrap();
    assert!(ready(lock.read().timeout(Duration::ZERO)).is_err());
    drop(held);
}

#[test]
fn zero_does_not_barge() {
    let semaphore = Semaphore::new(2).unwrap();
    let held = semaphore.try_acquire();
    let mut heavy = pin!(semaphore.acquire_many(2));
    assert!(poll(heavy.as_mut()).is_pending());
    let error = ready(semaphore.acquire().timeout(Duration::ZERO)).unwrap_err();
    assert_eq!(error.to_string(), "semaphore: not free; 1 waiting");
    drop(held);
}

#[test]
fn half_a_millisecond_is_neither_none_nor_for_ever() {
    let mutex = Mutex::new(());
    let held = mutex.try_lock();
    let mut waiter = Box::pin(mutex.lock().timeout(Duration::from_micros(500)));
    assert!(poll(waiter.as_mut()).is_pending());
    assert_eq!(mutex.queued(), 1);
    assert!(pollster::block_on(waiter).unwrap_err().is_timeout());
    drop(held);
}

#[test]
fn the_longest_duration_is_for_ever_and_does_not_overflow() {
    let mutex = Mutex::new(());
    let held = mutex.try_lock();
    let mut waiter = pin!(mutex.lock().timeout(Duration::MAX));
    assert!(poll(waiter.as_mut()).is_pending());
    assert!(poll(waiter.as_mut()).is_pending());
    drop(held);
    assert!(matches!(poll(waiter.as_mut()), Poll::Ready(Ok(_))));
}

#[test]
fn the_timeout_covers_the_whole_wait() {
    // acceptance R14
    let lock = RwLock::new(());
    let writing = lock.try_write();
    let start = Instant::now();
    let wait = Duration::from_millis(30);
    let error = lock.read().timeout(wait).blocking().unwrap_err();
    assert!(error.is_timeout() && start.elapsed() >= wait);
    assert_eq!(lock.queued(), 0);
    drop(writing);
}

#[test]
fn many_timeouts_at_once_each_end_their_own_wait() {
    let mutex = Mutex::new(());
    let held = mutex.try_lock();
    let waits: Vec<_> = (0..200_u64)
        .map(|n| Box::pin(mutex.lock().timeout(Duration::from_millis(1 + n % 20))))
        .collect();
    let mut waits = waits;
    for wait in &mut waits {
        assert!(poll(wait.as_mut()).is_pending());
    }
    assert_eq!(mutex.queued(), 200);
    for wait in waits {
        assert!(pollster::block_on(wait).unwrap_err().is_timeout());
    }
    assert_eq!(mutex.queued(), 0);
    drop(held);
}

/// Waits of a second and more are timed in another way than shorter ones, and neither is early, nor late by
/// more than a busy machine makes it; also while other waits begin and end all the time.
#[test]
fn no_timeout_is_early_on_either_side_of_a_second() {
    const LATE: Duration = Duration::from_secs(10);
    let (held, turns) = (Mutex::new(()), Mutex::new(()));
    let _guard = held.try_lock();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let waits = (0..12_u64).map(|n| Duration::from_micros(990_000 + n * 1_999));
        let waiters: Vec<_> = waits
            .map(|wait| {
                let held = &held;
                scope.spawn(move || {
                    let start = Instant::now();
                    let outcome = held.lock().timeout(wait).blocking();
                    (wait, start.elapsed(), outcome.is_err())
                })
            })
            .collect();
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    drop(turns.lock().timeout(HOUR).blocking().expect("its turn comes"));
                }
            });
        }
        let waited: Vec<_> = waiters.into_iter().map(thread::ScopedJoinHandle::join).collect();
        done.store(true, Ordering::Relaxed);
        for waited in waited {
            let (wait, took, timed_out) = waited.expect("no panic");
            assert!(timed_out && took >= wait, "{wait:?} were over after {took:?}");
            assert!(took < wait + LATE, "{wait:?} were over after {took:?} only");
        }
    });
    assert_eq!((held.queued(), turns.queued()), (0, 0));
}

#[test]
fn the_last_timeout_given_counts() {
    let mutex = Mutex::new(());
    let held = mutex.try_lock();
    assert!(ready(mutex.lock().timeout(HOUR).timeout(Duration::ZERO)).is_err());
    drop(held);
}
