//! A read within a read shares the grant of the outer one (rule R2).

use std::{
    cell::{Cell, RefCell},
    future::Future,
    pin::{Pin, pin},
    task::Poll,
};

use leasehold_sync::{Error, RwLock};

use crate::{done, pause, poll, ready, waits};

#[test]
fn ao18_reads_within_a_read_overlap_and_the_outer_ends_last() {
    let lock = RwLock::new(1);
    let inside = Cell::new(0);
    let read = async || {
        let inner = lock.run_shared(async |n| {
            inside.set(inside.get() + 1);
            pause().await;
            *n
        });
        inner.await
    };
    let mut outer = pin!(lock.run_shared(async |_| {
        let (mut one, mut two) = (pin!(read()), pin!(read()));
        waits(one.as_mut());
        waits(two.as_mut());
        // Both are in at once, and take no permit: the lock has one reader.
        assert_eq!((inside.get(), lock.readers()), (2, 1));
        pause().await;
        (done(one).unwrap(), done(two).unwrap())
    }));
    waits(outer.as_mut());
    assert_eq!(done(outer), Ok((1, 1)));
    assert!(!lock.is_locked());
}

#[test]
fn a_read_within_a_read_does_not_wait_behind_a_writer_that_waits_for_it() {
    let lock = RwLock::new(1);
    let mut outer = pin!(lock.run_shared(async |_| {
        pause().await;
        lock.run_shared(async |n| *n).await
    }));
    waits(outer.as_mut());
    let mut writer = pin!(lock.run_exclusive(async |n| *n += 1));
    waits(writer.as_mut());
    assert_eq!(done(outer), Ok(Ok(1)));
    assert_eq!(done(writer), Ok(()));
}

#[test]
fn a_lock_for_one_reader_lets_a_read_into_a_read() {
    let lock = RwLock::with_max_readers(1, 1).unwrap();
    let deep = ready(lock.run_shared(async |_| {
        let inner = lock.run_shared(async |_| lock.run_shared(async |n| *n).await);
        inner.await
    }));
    assert_eq!(deep, Ok(Ok(Ok(1))));
    assert!(!lock.is_locked());
}

#[test]
fn the_grant_is_released_with_its_last_guard() {
    let lock = RwLock::new(1);
    let mut inner: Pin<Box<dyn Future<Output = _>>> = Box::pin(lock.run_shared(async |n| {
        pause().await;
        *n
    }));
    let first = ready(lock.run_shared(async |_| poll(inner.as_mut())));
    assert_eq!(first, Ok(Poll::Pending));
    // The outer read has ended; the inner one was moved out of it and reads on.
    assert_eq!(lock.readers(), 1);
    assert!(lock.try_write().is_none());
    assert_eq!(done(inner.as_mut()), Ok(1));
    assert!(lock.try_write().is_some());
}

#[test]
fn an_inner_read_that_is_dropped_leaves_the_outer_one_its_grant() {
    let lock = RwLock::new(1);
    ready(lock.run_shared(async |_| {
        {
            let mut inner = pin!(lock.run_shared(async |_| pause().await));
            waits(inner.as_mut());
        }
        assert_eq!(lock.readers(), 1);
    }))
    .unwrap();
    assert!(!lock.is_locked());
}

#[test]
fn a_read_that_waits_and_is_moved_into_a_read_shares_it() {
    let lock = RwLock::new(1);
    let slot = RefCell::new(None::<Pin<Box<dyn Future<Output = Result<i32, Error>> + '_>>>);
    let mut outer = pin!(lock.run_shared(async |_| {
        pause().await;
        let moved = slot.take().expect("put there meanwhile");
        moved.await
    }));
    waits(outer.as_mut());
    let mut writer = pin!(lock.run_exclusive(async |n| *n += 1));
    waits(writer.as_mut());
    let mut late: Pin<Box<dyn Future<Output = _> + '_>> = Box::pin(lock.run_shared(async |n| *n));
    waits(late.as_mut());
    // It waits behind a writer that waits for the outer read; there it need not.
    slot.replace(Some(late));
    assert_eq!(done(outer), Ok(Ok(1)));
    assert_eq!(done(writer), Ok(()));
    assert_eq!(*lock.try_read().unwrap(), 2);
}
