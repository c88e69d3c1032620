//! `.in_current_scope()`: another task that its spawner waits for (rules R1 and R4).

use std::{
    cell::{Cell, RefCell},
    future::Future,
    pin::{Pin, pin},
    rc::Rc,
};

use leasehold_sync::{InCurrentScope, Mutex, RwLock};

use crate::{done, pause, ready, reentrant, waits};

#[test]
fn a_child_is_told_of_what_its_spawner_holds() {
    let mutex = Mutex::new(());
    let held = line!() + 1;
    let told = ready(mutex.run_exclusive(async |_| {
        let child = async { mutex.run_exclusive(async |_| ()).await }.in_current_scope();
        std::thread::scope(|threads| threads.spawn(|| ready(child)).join()).unwrap()
    }));
    assert_eq!(reentrant(&told.unwrap().unwrap_err()), (held, held + 1));
}

#[test]
fn a_child_of_a_child_is_told_too() {
    let mutex = Mutex::new(());
    let told = ready(mutex.run_exclusive(async |_| {
        let child = async {
            let inner = async { mutex.run_exclusive(async |_| ()).await }.in_current_scope();
            std::thread::scope(|threads| threads.spawn(|| ready(inner)).join()).unwrap()
        };
        let child = child.in_current_scope();
        std::thread::scope(|threads| threads.spawn(|| ready(child)).join()).unwrap()
    }));
    assert!(told.unwrap().unwrap_err().is_reentrant());
}

#[test]
#[allow(clippy::async_yields_async, reason = "the child outlives the frame that it comes from")]
fn what_the_spawner_has_released_is_free_for_the_child() {
    let mutex = Mutex::new(());
    let child = ready(mutex.run_exclusive(async |_| {
        async { mutex.run_exclusive(async |_| ()).await }.in_current_scope()
    }));
    assert_eq!(ready(child.unwrap()), Ok(()));
}

#[test]
fn a_child_reads_within_the_read_of_its_spawner_and_may_outlive_it() {
    let lock = RwLock::new(1);
    let slot = RefCell::new(None);
    let mut outer = pin!(lock.run_shared(async |_| {
        let read = lock.run_shared(async |n| {
            pause().await;
            *n
        });
        slot.replace(Some(Box::pin(read.in_current_scope())));
        pause().await;
    }));
    waits(outer.as_mut());
    let mut writer = pin!(lock.run_exclusive(async |n| *n += 1));
    waits(writer.as_mut());
    let mut child = slot.take().expect("spawned");
    waits(child.as_mut());
    assert_eq!(lock.readers(), 1);
    assert_eq!(done(outer), Ok(()));
    // The spawner's read goes on for as long as its child reads.
    waits(writer.as_mut());
    assert_eq!(done(child.as_mut()), Ok(1));
    assert_eq!(done(writer), Ok(()));
}

#[test]
fn outside_of_frames_it_adds_nothing() {
    let mutex = Mutex::new(1);
    assert_eq!(ready(mutex.run_exclusive(async |n| *n).in_current_scope()), Ok(1));
}

#[test]
fn no_deadlock_is_told_over_a_spawned_child() {
    let (a, b) = (Mutex::new(()), Mutex::new(()));
    for inherits in [false, true] {
        let child = RefCell::new(None);
        let mut one = pin!(a.run_exclusive(async |_| {
            let work = async { b.run_exclusive(async |_| ()).await };
            child.replace(Some(if inherits {
                Box::pin(work.in_current_scope()) as Pin<Box<dyn Future<Output = _>>>
            } else {
                Box::pin(work)
            }));
            pause().await;
        }));
        let mut two = pin!(b.run_exclusive(async |_| {
            pause().await;
            a.run_exclusive(async |_| ()).await
        }));
        waits(one.as_mut());
        waits(two.as_mut());
        let mut child = child.take().expect("spawned");
        waits(child.as_mut());
        // The first task may not wait for its child, and does not.
        waits(two.as_mut());
        assert_eq!(done(one), Ok(()));
        assert_eq!(done(two), Ok(Ok(())));
        assert_eq!(done(child.as_mut()), Ok(()));
    }
}

/// A read that was forgotten lasts for ever, but on its own lock alone: to share it on another would
/// be to read what somebody writes.
#[test]
fn a_forgotten_read_is_not_shared_by_a_later_lock_in_the_same_place() {
    let mut place = Box::new(RwLock::new(1));
    let later: Rc<Cell<Option<&'static RwLock<i32>>>> = Rc::default();
    let slot = RefCell::new(None);
    let mut forgotten = Box::pin(place.run_shared(async |_| {
        let later = Rc::clone(&later);
        let child = async move {
            let lock = later.get().expect("set before it is polled");
            lock.run_shared(async |n| *n).await
        };
        slot.replace(Some(Box::pin(child.in_current_scope())));
        pause().await;
    }));
    waits(forgotten.as_mut());
    std::mem::forget(forgotten);

    *place = RwLock::new(2);
    let place: &RwLock<i32> = Box::leak(place);
    later.set(Some(place));
    let mut written = place.try_write().expect("nobody reads this one");
    let mut child = slot.take().expect("set by the poll");
    waits(child.as_mut());
    *written = 3;
    drop(written);
    assert_eq!(done(child.as_mut()), Ok(3));
}
