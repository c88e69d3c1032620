//! Every interleaving of keyed locks, under loom: `cargo xtask loom`.
#![cfg(leasehold_loom)]

use std::{
    hash::{BuildHasherDefault, Hasher},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use leasehold_sync::KeyedLock;
use loom::{cell::UnsafeCell, future::block_on, model::Builder, thread};

/// Runs every interleaving within the preemption bound, 2 unless `LOOM_MAX_PREEMPTIONS` says more.
fn every_interleaving(test: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound.get_or_insert(2);
    builder.check(test);
}

/// The key is the hash, so that every run goes the same way.
#[derive(Default)]
struct Identity(u64);

impl Hasher for Identity {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0 << 8 | u64::from(*byte);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// The lock, and data that loom sees the use of: two at once is a failure.
struct Shared {
    keys: KeyedLock<u8, BuildHasherDefault<Identity>>,
    data: UnsafeCell<u32>,
}

// SAFETY: loom checks every access.
unsafe impl Sync for Shared {}

impl Shared {
    fn new() -> Arc<Self> {
        let keys = KeyedLock::with_hasher(BuildHasherDefault::default());
        Arc::new(Self { keys, data: UnsafeCell::new(0) })
    }

    fn add(&self) {
        self.data.with_mut(|value| {
            // SAFETY: loom fails the test if anybody else looks at the same time.
            unsafe { *value += 1 }
        });
    }

    fn get(&self) -> u32 {
        // SAFETY: as above.
        self.data.with(|value| unsafe { *value })
    }

    fn check_is_empty(&self) {
        assert!(self.keys.is_empty() && self.keys.queued() == 0, "something was left");
        assert!(self.keys.try_write_all().is_some(), "a grant was lost");
    }
}

fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn the_last_waiter_is_cancelled_while_the_holder_releases() {
    every_interleaving(|| {
        let shared = Shared::new();
        let held = shared.keys.try_write(1);
        let other = shared.clone();
        let thread = thread::spawn(move || {
            let mut waiter = Box::pin(other.keys.write(1));
            if let Poll::Ready(_guard) = poll(waiter.as_mut()) {
                other.add();
            }
            // Dropped while queued, while being granted, or granted.
            drop(waiter);
        });
        shared.add();
        drop(held);
        thread.join().unwrap();
        shared.check_is_empty();
    });
}

#[test]
fn the_entry_of_a_key_comes_and_goes() {
    every_interleaving(|| {
        let shared = Shared::new();
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let shared = shared.clone();
                thread::spawn(move || {
                    let _guard = block_on(shared.keys.write(1));
                    shared.add();
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(shared.get(), 2);
        shared.check_is_empty();
    });
}

#[test]
fn the_whole_set_against_a_key() {
    every_interleaving(|| {
        let shared = Shared::new();
        let other = shared.clone();
        let thread = thread::spawn(move || {
            let _guard = block_on(other.keys.write(1));
            other.add();
        });
        {
            let _guard = block_on(shared.keys.write_all());
            shared.add();
        }
        thread.join().unwrap();
        assert_eq!(shared.get(), 2);
        shared.check_is_empty();
    });
}

#[test]
fn a_read_of_the_whole_set_that_gives_up_against_writes() {
    every_interleaving(|| {
        let shared = Shared::new();
        let held = shared.keys.try_write(1);
        let other = shared.clone();
        let thread = thread::spawn(move || {
            let mut all = Box::pin(other.keys.read_all());
            let _ = poll(all.as_mut());
            drop(all);
        });
        // Behind the whole set or before it, in the same shard or another one.
        let write = shared.keys.write(2);
        drop(held);
        drop(block_on(write));
        thread.join().unwrap();
        shared.check_is_empty();
    });
}

#[test]
fn a_waiter_behind_the_whole_set_gives_up_while_that_ends() {
    every_interleaving(|| {
        let shared = Shared::new();
        let all = shared.keys.try_write_all();
        let other = shared.clone();
        let thread = thread::spawn(move || {
            let mut waiter = Box::pin(other.keys.read(1));
            if let Poll::Ready(_guard) = poll(waiter.as_mut()) {
                other.get();
            }
            drop(waiter);
        });
        shared.add();
        drop(all);
        thread.join().unwrap();
        shared.check_is_empty();
    });
}

/// Its first poll leaves a waker that wakes nobody; the grant may come while the second one
/// replaces it, and must not be lost then.
#[test]
fn a_waiter_moves_to_another_task_while_the_holder_releases() {
    for whole in [false, true] {
        every_interleaving(move || {
            let shared = Shared::new();
            let held = shared.keys.try_write(1);
            let other = shared.clone();
            let thread = thread::spawn(move || {
                let keys = &other.keys;
                let mut waiter = Box::pin(if whole { keys.write_all() } else { keys.write(1) });
                let _guard = match poll(waiter.as_mut()) {
                    Poll::Ready(guard) => guard,
                    Poll::Pending => block_on(waiter),
                };
                other.add();
            });
            shared.add();
            drop(held);
            thread.join().unwrap();
            assert_eq!(shared.get(), 2);
            shared.check_is_empty();
        });
    }
}

/// The entry has to outlive the first waiter, and the second one gets the key, whoever is faster.
#[test]
fn the_first_of_two_waiters_is_cancelled_while_the_holder_releases() {
    every_interleaving(|| {
        let shared = Shared::new();
        let held = shared.keys.try_write(1);
        let (first, second) = (shared.clone(), shared.clone());
        let cancelled = thread::spawn(move || {
            let mut waiter = Box::pin(first.keys.write(1));
            drop(poll(waiter.as_mut()));
            drop(waiter);
        });
        let waits = thread::spawn(move || {
            let _guard = block_on(second.keys.read(1));
            second.add();
        });
        shared.add();
        drop(held);
        cancelled.join().unwrap();
        waits.join().unwrap();
        assert_eq!(shared.get(), 2);
        shared.check_is_empty();
    });
}

/// In both shards, and of both kinds: the end of the whole set lets all of them in, and afterwards
/// no shard takes the way of the whole set any more.
#[test]
fn everybody_behind_the_whole_set_is_let_in() {
    every_interleaving(|| {
        let shared = Shared::new();
        let all = shared.keys.try_write_all();
        let other = shared.clone();
        let thread = thread::spawn(move || {
            let keys = &other.keys;
            let mut waiters = [keys.read(1), keys.write(2), keys.read(3), keys.write(4)];
            let early = waiters.each_mut().map(|waiter| {
                let early = poll(Pin::new(waiter));
                if early.is_ready() {
                    other.add();
                }
                early
            });
            for (waiter, early) in waiters.into_iter().zip(early) {
                if early.is_pending() {
                    let _guard = block_on(waiter);
                    other.add();
                }
            }
        });
        shared.add();
        drop(all);
        thread.join().unwrap();
        assert_eq!(shared.get(), 5);
        shared.check_is_empty();
    });
}

/// A key is taken and given back while the first request for the whole set arrives: it must be
/// counted, or the whole set would be granted beside it, or never.
#[test]
fn two_keys_against_a_write_and_a_read_of_the_whole_set() {
    every_interleaving(|| {
        let shared = Shared::new();
        let (one, two) = (shared.clone(), shared.clone());
        let keyed = thread::spawn(move || {
            let _guard = block_on(one.keys.write(1));
            one.add();
        });
        let reads = thread::spawn(move || {
            let _guard = block_on(two.keys.read_all());
            two.get();
        });
        {
            let _guard = block_on(shared.keys.write_all());
            shared.add();
        }
        keyed.join().unwrap();
        reads.join().unwrap();
        assert_eq!(shared.get(), 2);
        shared.check_is_empty();
    });
}

/// Behind the whole set a key has an entry that nobody holds: it stays for the second waiter.
#[test]
fn the_first_of_two_waiters_behind_the_whole_set_gives_up_while_that_ends() {
    every_interleaving(|| {
        let shared = Shared::new();
        let all = shared.keys.try_write_all();
        let other = shared.clone();
        let thread = thread::spawn(move || {
            let mut first = Box::pin(other.keys.read(1));
            let mut second = Box::pin(other.keys.write(1));
            let early = poll(first.as_mut());
            if early.is_pending() && poll(second.as_mut()).is_pending() {
                drop(first);
                let _guard = block_on(second);
                other.add();
            }
        });
        shared.add();
        drop(all);
        thread.join().unwrap();
        shared.check_is_empty();
    });
}

/// A second request for a held key, and one for the whole set: whichever comes second waits for the
/// other, also if it saw the key held before the whole set was asked for.
#[test]
fn a_waiter_of_a_held_key_against_the_whole_set() {
    every_interleaving(|| {
        let shared = Shared::new();
        let held = shared.keys.try_write(1);
        let (one, two) = (shared.clone(), shared.clone());
        let keyed = thread::spawn(move || {
            let _guard = block_on(one.keys.write(1));
            one.add();
        });
        let whole = thread::spawn(move || {
            let _guard = block_on(two.keys.write_all());
            two.add();
        });
        shared.add();
        drop(held);
        keyed.join().unwrap();
        whole.join().unwrap();
        assert_eq!(shared.get(), 3);
        shared.check_is_empty();
    });
}
