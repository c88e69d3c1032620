//! Every interleaving of the atomic steps, under loom: `cargo xtask loom`.
#![cfg(leasehold_loom)]

use std::{
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use leasehold_sync::{Mutex, RwLock, Semaphore};
use loom::{
    cell::UnsafeCell,
    future::{AtomicWaker, block_on},
    model::Builder,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

const MINUTE: Duration = Duration::from_secs(60);

/// Runs every interleaving within the preemption bound, 2 unless `LOOM_MAX_PREEMPTIONS` says more.
fn every_interleaving(test: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound.get_or_insert(2);
    builder.check(test);
}

/// Data that loom sees the use of: two at once is a failure.
struct Seen(UnsafeCell<u32>);

impl Seen {
    fn new() -> Self {
        Self(UnsafeCell::new(0))
    }

    fn add(&self) {
        self.0.with_mut(|value| {
            // SAFETY: loom fails the test if anybody else looks at the same time.
            unsafe { *value += 1 }
        });
    }

    fn get(&self) -> u32 {
        // SAFETY: as above.
        self.0.with(|value| unsafe { *value })
    }
}

// SAFETY: loom checks every access.
unsafe impl Sync for Seen {}

fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn fast_path_against_release() {
    every_interleaving(|| {
        let shared = Arc::new((Mutex::new(()), Seen::new()));
        let other = shared.clone();
        let thread = thread::spawn(move || {
            for _ in 0..2 {
                if let Some(_guard) = other.0.try_lock() {
                    other.1.add();
                }
            }
        });
        if let Some(_guard) = shared.0.try_lock() {
            shared.1.add();
        }
        thread.join().unwrap();
        let _guard = shared.0.try_lock().expect("nobody holds it");
        assert!(shared.1.get() >= 1);
    });
}

#[test]
fn enqueue_against_release() {
    every_interleaving(|| {
        let shared = Arc::new((Mutex::new(()), Seen::new()));
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let shared = shared.clone();
                thread::spawn(move || {
                    let _guard = block_on(shared.0.lock());
                    shared.1.add();
                })
            })
            .collect();
        {
            let _guard = block_on(shared.0.lock());
            shared.1.add();
        }
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(shared.1.get(), 3);
        assert_eq!((shared.0.is_locked(), shared.0.queued()), (false, 0));
    });
}

#[test]
fn weighted_enqueue_against_weighted_release() {
    every_interleaving(|| {
        let shared = Arc::new((Semaphore::new(2).unwrap(), Seen::new()));
        let heavy = shared.clone();
        let heavy = thread::spawn(move || {
            let permits = block_on(heavy.0.acquire_many(2)).unwrap();
            heavy.1.add();
            drop(permits);
        });
        let light = shared.clone();
        let light = thread::spawn(move || {
            drop(block_on(light.0.acquire()));
        });
        drop(block_on(shared.0.acquire()));
        heavy.join().unwrap();
        light.join().unwrap();
        assert_eq!(shared.0.available_permits(), 2);
        assert_eq!(shared.1.get(), 1);
    });
}

#[test]
fn cancel_against_grant() {
    every_interleaving(|| {
        let shared = Arc::new((Mutex::new(()), Seen::new()));
        let held = shared.0.try_lock();
        let other = shared.clone();
        let thread = thread::spawn(move || {
            let mut waiter = Box::pin(other.0.lock());
            if let Poll::Ready(_guard) = poll(waiter.as_mut()) {
                other.1.add();
            }
            // Dropped while queued, while being granted, or granted.
            drop(waiter);
        });
        drop(held);
        drop(block_on(shared.0.lock()));
        thread.join().unwrap();
        assert!(shared.0.try_lock().is_some(), "a permit was lost");
    });
}

#[test]
fn cancel_on_against_grant() {
    every_interleaving(|| {
        let shared = Arc::new((Mutex::new(()), Seen::new()));
        let held = shared.0.try_lock();
        let stop = Arc::new((AtomicBool::new(false), AtomicWaker::new()));
        let (other, stopped) = (shared.clone(), stop.clone());
        let waiter = thread::spawn(move || {
            let stopped = std::future::poll_fn(move |cx| {
                stopped.1.register_by_ref(cx.waker());
                if stopped.0.load(Ordering::Acquire) { Poll::Ready(()) } else { Poll::Pending }
            });
            if let Ok(_guard) = block_on(other.0.lock().cancel_on(stopped)) {
                other.1.add();
            }
        });
        let stopper = thread::spawn(move || {
            stop.0.store(true, Ordering::Release);
            stop.1.wake();
        });
        shared.1.add();
        drop(held);
        waiter.join().unwrap();
        stopper.join().unwrap();
        assert!(shared.0.try_lock().is_some(), "a permit was lost");
    });
}

#[test]
fn timeout_against_grant() {
    every_interleaving(|| {
        let shared = Arc::new((Mutex::new(()), Seen::new()));
        let held = shared.0.try_lock();
        let other = shared.clone();
        let thread = thread::spawn(move || {
            // The timer of the model fires whenever it likes.
            if let Ok(_guard) = block_on(other.0.lock().timeout(MINUTE)) {
                other.1.add();
            }
        });
        shared.1.add();
        drop(held);
        thread.join().unwrap();
        assert!(shared.0.try_lock().is_some(), "a permit was lost");
        assert!((1..=2).contains(&shared.1.get()));
    });
}

#[test]
fn a_waker_that_changes_against_grant() {
    every_interleaving(|| {
        let shared = Arc::new(Mutex::new(()));
        let held = shared.try_lock();
        let other = shared.clone();
        let thread = thread::spawn(move || {
            let mut waiter = pin!(other.lock());
            // Queued with a waker that wakes nobody; `block_on` puts its own in place.
            if poll(waiter.as_mut()).is_pending() {
                drop(block_on(waiter));
            }
        });
        drop(held);
        thread.join().unwrap();
        assert!(shared.try_lock().is_some());
    });
}

#[test]
fn a_waker_that_changes_against_grant_and_timeout() {
    every_interleaving(|| {
        let shared = Arc::new(Mutex::new(()));
        let held = shared.try_lock();
        let other = shared.clone();
        let thread = thread::spawn(move || {
            let mut waiter = pin!(other.lock().timeout(MINUTE));
            // Queued with a waker that wakes nobody; `block_on` puts its own in place.
            if poll(waiter.as_mut()).is_pending() {
                drop(block_on(waiter));
            }
        });
        drop(held);
        thread.join().unwrap();
        assert!(shared.try_lock().is_some(), "a permit was lost");
    });
}

#[test]
fn a_dropped_wait_against_grant_and_timeout() {
    every_interleaving(|| {
        let shared = Arc::new(Mutex::new(()));
        let held = shared.try_lock();
        let other = shared.clone();
        let thread = thread::spawn(move || {
            let mut waiter = Box::pin(other.lock().timeout(MINUTE));
            let _ = poll(waiter.as_mut());
            drop(waiter);
        });
        drop(held);
        drop(block_on(shared.lock()));
        thread.join().unwrap();
        assert!(shared.try_lock().is_some(), "a permit was lost");
    });
}

#[test]
fn downgrade_against_read() {
    every_interleaving(|| {
        let shared = Arc::new((RwLock::with_max_readers((), 2).unwrap(), Seen::new()));
        let writing = shared.0.try_write().unwrap();
        let other = shared.clone();
        let thread = thread::spawn(move || {
            let _guard = block_on(other.0.read());
            assert_eq!(other.1.get(), 1);
        });
        shared.1.add();
        let reading = writing.downgrade();
        assert_eq!(shared.1.get(), 1);
        thread.join().unwrap();
        drop(reading);
        assert!(shared.0.try_write().is_some(), "a permit was lost");
    });
}

#[test]
fn upgrade_against_read_and_write() {
    every_interleaving(|| {
        let shared = Arc::new((RwLock::with_max_readers((), 2).unwrap(), Seen::new()));
        let upgradable = shared.0.try_upgradable_read().unwrap();
        let reader = shared.clone();
        let reader = thread::spawn(move || {
            let _guard = block_on(reader.0.read());
            let seen = reader.1.get();
            assert_eq!(reader.1.get(), seen);
        });
        let writer = shared.clone();
        let writer = thread::spawn(move || {
            let _guard = block_on(writer.0.write());
            writer.1.add();
        });
        let before = shared.1.get();
        let writing = block_on(upgradable.upgrade());
        assert_eq!(shared.1.get(), before, "somebody wrote during the upgrade");
        shared.1.add();
        drop(writing);
        reader.join().unwrap();
        writer.join().unwrap();
        assert_eq!(shared.1.get(), 2);
        assert!(shared.0.try_write().is_some(), "a permit was lost");
    });
}

#[test]
fn an_upgrade_that_gives_up_against_release() {
    every_interleaving(|| {
        let shared = Arc::new(RwLock::with_max_readers((), 2).unwrap());
        let reading = shared.try_read();
        let upgradable = shared.clone().try_upgradable_read_owned().unwrap();
        let thread = thread::spawn(move || {
            let mut upgrade = Box::pin(upgradable.upgrade());
            let _ = poll(upgrade.as_mut());
            drop(upgrade);
        });
        drop(reading);
        drop(block_on(shared.write()));
        thread.join().unwrap();
        assert!(shared.try_write().is_some(), "a permit was lost");
        assert!(shared.try_upgradable_read().is_some(), "the slot was lost");
    });
}

#[test]
fn add_and_forget_against_acquire_and_release() {
    every_interleaving(|| {
        let shared = Arc::new(Semaphore::new(2).unwrap());
        let held = shared.try_acquire().unwrap();
        let other = shared.clone();
        let heavy = thread::spawn(move || {
            // Two permits are one too many once one is forgotten, until one is added.
            drop(block_on(other.acquire_many(2)));
        });
        let other = shared.clone();
        let adding = thread::spawn(move || other.add_permits(1).unwrap());
        assert!(held.forget().is_ok());
        heavy.join().unwrap();
        adding.join().unwrap();
        assert_eq!((shared.capacity(), shared.available_permits()), (2, 2));
    });
}

#[test]
fn free_permits_that_are_forgotten_against_acquire() {
    every_interleaving(|| {
        let shared = Arc::new(Semaphore::new(2).unwrap());
        let other = shared.clone();
        let thread = thread::spawn(move || drop(block_on(other.acquire())));
        let forgotten = shared.forget_permits(1);
        thread.join().unwrap();
        assert_eq!(forgotten, 1);
        assert_eq!((shared.capacity(), shared.available_permits()), (1, 1));
    });
}

#[test]
fn watch_against_release() {
    every_interleaving(|| {
        let shared = Arc::new(Mutex::new(()));
        let held = shared.try_lock();
        let other = shared.clone();
        let watcher = thread::spawn(move || block_on(other.wait_for_unlock()));
        let other = shared.clone();
        let waiter = thread::spawn(move || drop(block_on(other.lock())));
        drop(held);
        watcher.join().unwrap();
        waiter.join().unwrap();
        assert!(shared.try_lock().is_some());
    });
}

#[test]
fn a_dropped_watcher_against_release() {
    every_interleaving(|| {
        let shared = Arc::new(Mutex::new(()));
        let held = shared.try_lock();
        let other = shared.clone();
        let thread = thread::spawn(move || {
            let mut watcher = Box::pin(other.wait_for_unlock());
            let _ = poll(watcher.as_mut());
            drop(watcher);
        });
        drop(held);
        drop(block_on(shared.lock()));
        thread.join().unwrap();
        assert!(shared.try_lock().is_some());
    });
}
