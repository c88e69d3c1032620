//! A panic inside of a critical section releases the lock and poisons nothing.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::Arc,
    task::{Context, Wake, Waker},
    thread,
};

use leasehold_sync::{Mutex, RwLock, Semaphore};

use crate::{Count, poll, ready};

#[test]
fn a_panic_in_a_section_releases_and_poisons_nothing() {
    // acceptance AO12, R10, R11
    let mutex = Arc::new(Mutex::new(1));
    let other = mutex.clone();
    let joined = thread::spawn(move || {
        let _guard = other.blocking_lock();
        panic!("inside of the section");
    })
    .join();
    assert!(joined.is_err());
    assert_eq!(*mutex.try_lock().expect("released"), 1);

    let lock = RwLock::new(1);
    let write = || {
        let _guard = lock.try_write();
        panic!("inside of the section");
    };
    assert!(catch_unwind(AssertUnwindSafe(write)).is_err());
    let read = || {
        let _guard = lock.try_read();
        panic!("inside of the section");
    };
    assert!(catch_unwind(AssertUnwindSafe(read)).is_err());
    assert!(!lock.is_locked());
}

#[test]
fn a_panic_hands_the_lock_to_the_next() {
    let mutex = Mutex::new(());
    let mut waiter = pin!(mutex.lock());
    let section = || {
        let _guard = mutex.try_lock();
        assert!(poll(waiter.as_mut()).is_pending());
        panic!("inside of the section");
    };
    assert!(catch_unwind(AssertUnwindSafe(section)).is_err());
    drop(ready(waiter));
}

#[test]
fn a_waker_that_panics_costs_nobody_else_a_wake_up() {
    struct Panics;
    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            panic!("a waker");
        }
    }
    let lock = RwLock::new(());
    let writing = lock.try_write();
    let (count, counting) = Count::new();
    let panicking = Waker::from(Arc::new(Panics));
    let mut reads: Vec<_> = (0..10).map(|_| Box::pin(lock.read())).collect();
    for (index, read) in reads.iter_mut().enumerate() {
        let waker = if index == 3 { &panicking } else { &counting };
        assert!(read.as_mut().poll(&mut Context::from_waker(waker)).is_pending());
    }
    assert!(catch_unwind(AssertUnwindSafe(|| drop(writing))).is_err());
    assert_eq!(count.get(), 9);
    let guards: Vec<_> = reads.into_iter().map(ready).collect();
    drop(guards);
    assert!(!lock.is_locked());
}

#[test]
fn a_task_that_panics_while_queued_leaves() {
    let semaphore = Semaphore::new(1).unwrap();
    let held = semaphore.try_acquire();
    let queued = || {
        let mut waiter = pin!(semaphore.acquire());
        assert!(poll(waiter.as_mut()).is_pending());
        panic!("while queued");
    };
    assert!(catch_unwind(AssertUnwindSafe(queued)).is_err());
    assert_eq!(semaphore.queued(), 0);
    drop(held);
    assert_eq!(semaphore.available_permits(), 1);
}
