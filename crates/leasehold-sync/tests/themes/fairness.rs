//! Grants come in the order of arrival, and nobody barges (rules Q2 and Q3).

use std::{
    pin::pin,
    sync::{
        Arc, Mutex as Log,
        atomic::{AtomicU32, Ordering},
    },
    thread,
};

use leasehold_sync::{Mutex, RwLock, Semaphore};

use crate::{poll, ready, until};

#[test]
fn a_thousand_waiters_get_in_exactly_as_they_came() {
    let mutex = Mutex::new(());
    let held = mutex.try_lock();
    let mut waiters: Vec<_> = (0..1000).map(|_| Box::pin(mutex.lock())).collect();
    for waiter in &mut waiters {
        assert!(poll(waiter.as_mut()).is_pending());
    }
    drop(held);
    for index in 0..waiters.len() {
        // The next few tell as much as all, which would take a million polls.
        let later = waiters.iter_mut().skip(index + 1).take(3);
        assert!(later.map(|waiter| poll(waiter.as_mut())).all(|poll| poll.is_pending()));
        drop(ready(waiters[index].as_mut()));
    }
    assert!(!mutex.is_locked());
}

#[test]
fn a_thousand_tasks_get_in_exactly_as_they_came() {
    let runtime = smol::Executor::new();
    let mutex = Arc::new(Mutex::new(()));
    let grants = Arc::new(Log::new(Vec::new()));
    let held = mutex.clone().try_lock_owned();
    let arrivals = Arc::new(AtomicU32::new(0));
    let tasks: Vec<_> = (0..1000)
        .map(|_| {
            let (mutex, grants, arrivals) = (mutex.clone(), grants.clone(), arrivals.clone());
            runtime.spawn(async move {
                let arrival = arrivals.fetch_add(1, Ordering::SeqCst);
                let guard = mutex.lock().await;
                grants.lock().unwrap().push(arrival);
                smol::future::yield_now().await;
                drop(guard);
            })
        })
        .collect();
    while runtime.try_tick() {}
    assert_eq!(mutex.queued(), 1000);
    drop(held);
    smol::block_on(runtime.run(async {
        for task in tasks {
            task.await;
        }
    }));
    assert!(grants.lock().unwrap().iter().copied().eq(0..1000));
}

#[test]
fn threads_get_in_exactly_as_they_came() {
    let mutex = Arc::new(Mutex::new(Vec::new()));
    let held = mutex.clone().blocking_lock_owned();
    let threads: Vec<_> = (0..20)
        .map(|index| {
            let other = mutex.clone();
            let thread = thread::spawn(move || other.blocking_lock().push(index));
            until("the thread queues", || mutex.queued() == index + 1);
            thread
        })
        .collect();
    drop(held);
    for thread in threads {
        thread.join().unwrap();
    }
    assert!(mutex.blocking_lock().iter().copied().eq(0..20));
}

#[test]
fn a_try_never_barges() {
    let mutex = Mutex::new(());
    let held = mutex.try_lock();
    let mut waiter = pin!(mutex.lock());
    assert!(poll(waiter.as_mut()).is_pending());
    drop(held);
    // Handed over already, though the waiter has not looked yet.
    assert!(mutex.is_locked());
    assert!(mutex.try_lock().is_none());
    drop(ready(waiter));

    let semaphore = Semaphore::new(2).unwrap();
    let held = semaphore.try_acquire();
    let mut heavy = pin!(semaphore.acquire_many(2));
    assert!(poll(heavy.as_mut()).is_pending());
    assert_eq!(semaphore.available_permits(), 1);
    assert!(semaphore.try_acquire().is_none());
    assert!(semaphore.try_acquire_many(1).unwrap().is_none());
    drop(held);
}

#[test]
fn a_read_does_not_overtake_a_queued_write() {
    // acceptance R16, AO6
    let lock = RwLock::new(());
    let reading = lock.try_read();
    let mut write = pin!(lock.write());
    assert!(poll(write.as_mut()).is_pending());
    let mut read = pin!(lock.read());
    assert!(poll(read.as_mut()).is_pending());
    assert!(lock.try_read().is_none());
    drop(reading);
    assert!(poll(read.as_mut()).is_pending());
    assert!(lock.is_write_locked());
    drop(ready(write));
    assert!(poll(read.as_mut()).is_ready());
}

#[test]
fn a_run_of_reads_enters_together() {
    let lock = RwLock::new(());
    let writing = lock.try_write();
    let mut reads: Vec<_> = (0..5).map(|_| Box::pin(lock.read())).collect();
    let mut write = pin!(lock.write());
    let mut late = pin!(lock.read());
    for read in &mut reads {
        assert!(poll(read.as_mut()).is_pending());
    }
    assert!(poll(write.as_mut()).is_pending());
    assert!(poll(late.as_mut()).is_pending());
    drop(writing);
    assert_eq!(lock.readers(), 5);
    let guards: Vec<_> = reads.into_iter().map(ready).collect();
    assert!(poll(late.as_mut()).is_pending());
    drop(guards);
    drop(ready(write));
    drop(ready(late));
}

#[test]
fn the_largest_number_of_readers_is_kept() {
    // acceptance R7, RT3
    let lock = RwLock::with_max_readers((), 3).unwrap();
    assert_eq!(lock.max_readers(), 3);
    let mut guards: Vec<_> = (0..3).map(|_| lock.try_read().unwrap()).collect();
    let mut fourth = pin!(lock.read());
    assert!(poll(fourth.as_mut()).is_pending());
    assert!(lock.is_read_locked() && !lock.is_write_locked());
    guards.pop();
    assert!(poll(fourth.as_mut()).is_ready());
    assert_eq!(lock.readers(), 2);
}
