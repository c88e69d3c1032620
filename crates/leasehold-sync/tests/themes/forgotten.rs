//! `std::mem::forget` of a future or a guard is safe: it can only keep others out.

use std::{mem::forget, pin::pin, sync::Arc};

use leasehold_sync::{Mutex, RwLock, Semaphore};

use crate::{HOUR, poll};

#[test]
fn a_forgotten_guard_holds_for_ever() {
    let mutex = Mutex::new(7);
    forget(mutex.try_lock());
    assert!(mutex.try_lock().is_none());
    assert_eq!(mutex.into_inner(), 7);
    let semaphore = Semaphore::new(2).unwrap();
    forget(semaphore.try_acquire());
    assert_eq!((semaphore.available_permits(), semaphore.capacity()), (1, 2));
}

#[test]
fn a_forgotten_waiter_stays_in_the_queue_and_takes_its_grant_with_it() {
    let mutex = Mutex::new(7);
    let held = mutex.try_lock();
    let mut lost = Box::pin(mutex.lock());
    assert!(poll(lost.as_mut()).is_pending());
    forget(lost);
    let mut behind = pin!(mutex.lock());
    assert!(poll(behind.as_mut()).is_pending());
    drop(held);
    assert!(poll(behind.as_mut()).is_pending());
    assert_eq!(mutex.queued(), 1);
}

#[test]
fn a_lock_moves_and_ends_with_a_forgotten_waiter_in_its_queue() {
    let lock = RwLock::new(vec![1]);
    let held = lock.try_write();
    let mut lost = Box::pin(lock.read().timeout(HOUR));
    assert!(poll(lost.as_mut()).is_pending());
    forget(lost);
    forget(held);
    let moved = Box::new(lock);
    assert!(moved.try_read().is_none());
    assert_eq!(moved.queued(), 1);
    drop(moved);
}

#[test]
fn a_forgotten_owned_waiter_keeps_its_lock_alive() {
    let mutex = Arc::new(Mutex::new(()));
    let held = mutex.clone().try_lock_owned();
    let mut lost = Box::pin(mutex.clone().lock_owned());
    assert!(poll(lost.as_mut()).is_pending());
    forget(lost);
    drop(held);
    assert_eq!(Arc::strong_count(&mutex), 2);
    assert!(mutex.try_lock().is_none());
}

#[test]
fn a_forgotten_watcher_is_told_and_nothing_else() {
    let mutex = Mutex::new(());
    let held = mutex.try_lock();
    let mut lost = Box::pin(mutex.wait_for_unlock());
    assert!(poll(lost.as_mut()).is_pending());
    forget(lost);
    drop(held);
    assert!(mutex.try_lock().is_some());
}
