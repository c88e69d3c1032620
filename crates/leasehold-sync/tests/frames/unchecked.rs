//! What is neither checked nor recorded: plain calls, guards that can be moved, semaphores, readers
//! that are merely too many, threads (rules R3 and R4).

use std::pin::pin;

use leasehold_sync::{Mutex, RwLock, Semaphore};

use crate::{done, pause, ready, waits};

#[test]
fn a_plain_call_within_a_frame_waits() {
    let mutex = Mutex::new(());
    let mut task = pin!(mutex.run_exclusive(async |_| {
        let mut again = pin!(mutex.lock());
        waits(again.as_mut());
        assert!(mutex.try_lock().is_none());
    }));
    assert_eq!(done(task.as_mut()), Ok(()));
}

#[test]
fn a_guard_in_the_hand_is_not_recorded() {
    let (a, b) = (Mutex::new(()), Mutex::new(()));
    let mut one = pin!(async {
        let guard = a.lock().await;
        pause().await;
        b.run_exclusive(async |_| ()).await.map(|()| drop(guard))
    });
    let mut two = pin!(b.run_exclusive(async |_| {
        pause().await;
        let mut waiting = pin!(a.run_exclusive(async |_| ()));
        waits(waiting.as_mut());
    }));
    waits(one.as_mut());
    waits(two.as_mut());
    waits(one.as_mut());
    // It cannot be known whether the guard stays where it is.
    assert_eq!(done(two), Ok(()));
    assert_eq!(done(one), Ok(()));
}

#[test]
fn a_plain_request_between_two_checked_ones_hides_neither() {
    let (a, b) = (Mutex::new(()), Mutex::new(()));
    let mut one = pin!(a.run_exclusive(async |_| {
        pause().await;
        b.run_exclusive(async |_| ()).await
    }));
    let mut two = pin!(b.run_exclusive(async |_| {
        pause().await;
        a.run_exclusive(async |_| ()).await
    }));
    waits(one.as_mut());
    waits(two.as_mut());
    let mut plain = pin!(a.lock());
    waits(plain.as_mut());
    waits(one.as_mut());
    assert!(done(two).unwrap().unwrap_err().is_deadlock());
    assert_eq!(done(one), Ok(Ok(())));
    drop(done(plain));
}

#[test]
fn a_semaphore_is_no_edge() {
    let (a, permits) = (Mutex::new(()), Semaphore::new(1).unwrap());
    let mut one = pin!(a.run_exclusive(async |_| {
        pause().await;
        drop(permits.acquire().await);
    }));
    let mut two = pin!(async {
        let permit = permits.acquire().await;
        pause().await;
        let mut waiting = pin!(a.run_exclusive(async |_| ()));
        waits(waiting.as_mut());
        drop(permit);
    });
    waits(one.as_mut());
    waits(two.as_mut());
    waits(one.as_mut());
    done(two);
    assert_eq!(done(one), Ok(()));
}

#[test]
fn readers_that_are_too_many_are_no_edge() {
    let (few, mutex) = (RwLock::with_max_readers((), 1).unwrap(), Mutex::new(()));
    let mut reader = pin!(few.run_shared(async |_| {
        pause().await;
        let mut waiting = pin!(mutex.run_exclusive(async |_| ()));
        waits(waiting.as_mut());
    }));
    let mut other = pin!(mutex.run_exclusive(async |_| {
        pause().await;
        few.run_shared(async |_| ()).await
    }));
    waits(reader.as_mut());
    waits(other.as_mut());
    waits(other.as_mut());
    assert_eq!(done(reader), Ok(()));
    assert_eq!(done(other), Ok(Ok(())));
}

#[test]
fn a_thread_that_blocks_is_no_frame_of_the_task() {
    let mutex = Mutex::new(1);
    let guard = mutex.blocking_lock();
    let mut task = pin!(mutex.run_exclusive(async |n| *n));
    waits(task.as_mut());
    drop(guard);
    assert_eq!(done(task), Ok(1));
    assert_eq!(ready(mutex.run_exclusive(async |n| *n)), Ok(1));
}
