//! Watching without acquiring (rule U1).

use std::pin::pin;

use leasehold_sync::{Mutex, RwLock, Semaphore};

use crate::{poll, ready, until};

#[test]
fn what_is_true_already_completes_at_once() {
    let (mutex, semaphore) = (Mutex::new(()), Semaphore::new(2).unwrap());
    let lock = RwLock::new(());
    ready(mutex.wait_for_unlock());
    ready(semaphore.wait_for_all_permits());
    let held = semaphore.try_acquire();
    ready(semaphore.wait_for_any_permit());
    ready(lock.wait_for_unlock());
    let reading = lock.try_read();
    ready(lock.wait_for_readable());
    drop((held, reading));
}

#[test]
fn a_hand_off_is_not_an_unlock() {
    let mutex = Mutex::new(());
    let held = mutex.try_lock();
    let mut watcher = pin!(mutex.wait_for_unlock());
    let mut waiter = pin!(mutex.lock());
    assert!(poll(watcher.as_mut()).is_pending());
    assert!(poll(waiter.as_mut()).is_pending());
    drop(held);
    assert!(poll(watcher.as_mut()).is_pending());
    drop(ready(waiter));
    assert!(poll(watcher.as_mut()).is_ready());
    assert!(!mutex.is_locked());
}

#[test]
fn a_watcher_holds_up_nobody() {
    let mutex = Mutex::new(());
    let held = mutex.try_lock();
    let mut watcher = pin!(mutex.wait_for_unlock());
    assert!(poll(watcher.as_mut()).is_pending());
    assert_eq!(mutex.queued(), 0);
    drop(held);
    // Taken again before the watcher looks: it was told of the unlock all the same.
    let held = mutex.try_lock();
    assert!(held.is_some());
    assert!(poll(watcher.as_mut()).is_ready());
}

#[test]
fn any_and_all_permits() {
    // acceptance S13, S14
    let semaphore = Semaphore::new(5).unwrap();
    let mut held: Vec<_> = (0..5).map(|_| semaphore.try_acquire().unwrap()).collect();
    let mut all = pin!(semaphore.wait_for_all_permits());
    let mut any = pin!(semaphore.wait_for_any_permit());
    assert!(poll(all.as_mut()).is_pending());
    assert!(poll(any.as_mut()).is_pending());
    held.truncate(2);
    assert!(poll(any.as_mut()).is_ready());
    assert_eq!(semaphore.available_permits(), 3);
    assert!(poll(all.as_mut()).is_pending());
    held.clear();
    assert!(poll(all.as_mut()).is_ready());
}

#[test]
fn readable_means_that_nobody_is_queued() {
    let lock = RwLock::new(());
    let reading = lock.try_read();
    let mut write = Box::pin(lock.write());
    assert!(poll(write.as_mut()).is_pending());
    let mut readable = pin!(lock.wait_for_readable());
    let mut unlocked = pin!(lock.wait_for_unlock());
    assert!(poll(readable.as_mut()).is_pending());
    assert!(poll(unlocked.as_mut()).is_pending());
    drop(write);
    assert!(poll(readable.as_mut()).is_ready());
    assert!(poll(unlocked.as_mut()).is_pending());
    drop(reading);
    assert!(poll(unlocked.as_mut()).is_ready());
}

#[test]
fn a_dropped_watcher_leaves_nothing_behind() {
    let mutex = Mutex::new(());
    let held = mutex.try_lock();
    let mut watchers: Vec<_> = (0..3).map(|_| Box::pin(mutex.wait_for_unlock())).collect();
    for watcher in &mut watchers {
        assert!(poll(watcher.as_mut()).is_pending());
    }
    drop(watchers.remove(1));
    drop(watchers.remove(0));
    drop(held);
    assert!(poll(watchers[0].as_mut()).is_ready());
    assert!(mutex.try_lock().is_some());
}

#[test]
fn new_permits_are_seen() {
    let semaphore = Semaphore::new(1).unwrap();
    let held = semaphore.try_acquire();
    let mut any = pin!(semaphore.wait_for_any_permit());
    assert!(poll(any.as_mut()).is_pending());
    semaphore.add_permits(1).unwrap();
    assert!(poll(any.as_mut()).is_ready());
    drop(held);
}

#[test]
fn a_thread_watches_too() {
    let mutex = Mutex::new(());
    let held = mutex.try_lock();
    std::thread::scope(|scope| {
        let watching = scope.spawn(|| mutex.wait_for_unlock().blocking());
        until("a watcher is there", || {
            std::thread::yield_now();
            watching.thread().id() != std::thread::current().id()
        });
        drop(held);
        watching.join().unwrap();
    });
}
