//! Threads block in the same queue, also when their own is ending.

use std::{
    cell::RefCell,
    sync::{Arc, Barrier},
    thread,
    time::Duration,
};

use leasehold_sync::{Mutex, RwLock, Semaphore};

use crate::until;

#[test]
fn readers_share_and_writers_do_not() {
    let lock = Arc::new(RwLock::new(0_u64));
    let start = Arc::new(Barrier::new(8));
    let threads: Vec<_> = (0..8)
        .map(|index| {
            let (lock, start) = (lock.clone(), start.clone());
            thread::spawn(move || {
                start.wait();
                for turn in 0..2000 {
                    if (turn + index) % 4 == 0 {
                        let mut data = lock.blocking_write();
                        let before = *data;
                        *data = before + 1;
                    } else if (turn + index) % 4 == 1 {
                        let data = lock.blocking_upgradable_read();
                        let before = *data;
                        let mut data = data.upgrade().blocking();
                        assert_eq!(*data, before, "nobody writes during an upgrade");
                        *data += 1;
                    } else {
                        let data = lock.blocking_read();
                        let before = *data;
                        thread::yield_now();
                        assert_eq!(*data, before, "nobody writes during a read");
                    }
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(*lock.blocking_read(), 8 * 1000);
}

#[test]
fn a_foreign_unpark_wakes_nobody_too_early() {
    let mutex = Arc::new(Mutex::new(()));
    let held = mutex.blocking_lock();
    let other = mutex.clone();
    let waiting = thread::spawn(move || {
        thread::current().unpark();
        drop(other.blocking_lock());
    });
    until("the thread queues", || mutex.queued() == 1);
    for _ in 0..100 {
        waiting.thread().unpark();
    }
    assert!(!waiting.is_finished());
    drop(held);
    waiting.join().unwrap();
}

#[test]
fn a_thread_that_is_ending_can_still_wait() {
    struct Waits(Arc<Semaphore>);
    impl Drop for Waits {
        fn drop(&mut self) {
            drop(self.0.blocking_acquire());
            let short = Duration::from_millis(1);
            let _held = self.0.try_acquire();
            assert!(self.0.acquire().timeout(short).blocking().is_err());
        }
    }
    thread_local! {
        static LAST: RefCell<Option<Waits>> = const { RefCell::new(None) };
    }
    let semaphore = Arc::new(Semaphore::new(1).unwrap());
    let held = semaphore.try_acquire();
    let waits = Waits(semaphore.clone());
    let ending = thread::spawn(move || LAST.set(Some(waits)));
    until("the thread queues", || semaphore.queued() == 1);
    drop(held);
    ending.join().unwrap();
    assert_eq!(semaphore.available_permits(), 1);
}

#[test]
fn many_threads_lose_no_permit() {
    let semaphore = Arc::new(Semaphore::new(3).unwrap());
    let threads: Vec<_> = (1..7)
        .map(|index| {
            let semaphore = semaphore.clone();
            thread::spawn(move || {
                for turn in 0..1000_u32 {
                    let weight = 1 + (turn + index) % 3;
                    let wait = Duration::from_micros(u64::from(turn % 50));
                    match turn % 3 {
                        0 => drop(semaphore.blocking_acquire_many(weight).unwrap()),
                        1 => drop(semaphore.acquire_many(weight).timeout(wait).blocking()),
                        _ => drop(semaphore.try_acquire_many(weight).unwrap()),
                    }
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!((semaphore.available_permits(), semaphore.queued()), (3, 0));
}
