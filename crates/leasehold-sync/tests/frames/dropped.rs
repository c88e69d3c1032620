//! What is dropped, outside of any poll, is waited for no more.

use std::{cell::Cell, future::poll_fn, pin::pin, task::Poll};

use leasehold_sync::{Mutex, RwLock};

use crate::{done, pause, ready, waits};

#[test]
fn a_dropped_wait_leaves_no_edge() {
    let (a, b) = (Mutex::new(()), Mutex::new(()));
    let mut one = Box::pin(a.run_exclusive(async |_| {
        pause().await;
        b.run_exclusive(async |_| ()).await
    }));
    let mut two = pin!(b.run_exclusive(async |_| {
        pause().await;
        a.run_exclusive(async |_| ()).await
    }));
    waits(one.as_mut());
    waits(two.as_mut());
    waits(one.as_mut());
    // Dropped by another thread, even.
    std::thread::scope(|threads| threads.spawn(|| drop(one)).join()).unwrap();
    assert_eq!(done(two), Ok(Ok(())));
}

#[test]
fn a_wait_that_is_dropped_within_its_frame_leaves_no_edge() {
    let (a, b) = (Mutex::new(()), Mutex::new(()));
    let mut one = pin!(a.run_exclusive(async |_| {
        {
            let mut gives_up = pin!(b.run_exclusive(async |_| ()));
            waits(gives_up.as_mut());
        }
        pause().await;
    }));
    let mut two = pin!(b.run_exclusive(async |_| {
        pause().await;
        a.run_exclusive(async |_| ()).await
    }));
    waits(two.as_mut());
    waits(one.as_mut());
    waits(two.as_mut());
    assert_eq!(done(one), Ok(()));
    assert_eq!(done(two), Ok(Ok(())));
}

#[test]
fn a_wait_that_outlives_the_frame_it_began_in_is_not_of_it() {
    let (a, b) = (Mutex::new(()), Mutex::new(()));
    let mut out = Box::pin(b.run_exclusive(async |_| ()));
    let mut two = pin!(b.run_exclusive(async |_| {
        pause().await;
        a.run_exclusive(async |_| ()).await
    }));
    waits(two.as_mut());
    assert_eq!(ready(a.run_exclusive(async |_| waits(out.as_mut()))), Ok(()));
    assert_eq!(done(two), Ok(Ok(())));
    assert_eq!(done(out.as_mut()), Ok(()));
}

#[test]
fn a_cancelled_wait_leaves_no_edge() {
    let (a, b, given_up) = (RwLock::new(()), Mutex::new(()), Cell::new(false));
    let gives_up = || poll_fn(|_| if given_up.get() { Poll::Ready(()) } else { Poll::Pending });
    let mut one = pin!(a.run_shared(async |_| {
        pause().await;
        let cancelled = b.lock().cancel_on(gives_up()).run(async |_| ()).await;
        pause().await;
        cancelled
    }));
    let mut two = pin!(b.run_exclusive(async |_| {
        pause().await;
        a.run_exclusive(async |_| ()).await
    }));
    waits(one.as_mut());
    waits(two.as_mut());
    waits(one.as_mut());
    given_up.set(true);
    waits(one.as_mut());
    waits(two.as_mut());
    assert!(done(one).unwrap().unwrap_err().is_cancelled());
    assert_eq!(done(two), Ok(Ok(())));
}
