//! Permits that are made and unmade (rule Q7).

use std::{pin::pin, sync::Arc, task::Poll};

use leasehold_sync::{CapacityError, ErrorKind, Semaphore};

use crate::{poll, ready};

#[test]
fn new_permits_go_to_those_who_wait() {
    let semaphore = Semaphore::new(1).unwrap();
    let held = semaphore.try_acquire();
    let mut waiters: Vec<_> = (0..3).map(|_| Box::pin(semaphore.acquire())).collect();
    for waiter in &mut waiters {
        assert!(poll(waiter.as_mut()).is_pending());
    }
    semaphore.add_permits(2).unwrap();
    let granted: Vec<_> = waiters.iter_mut().map(|waiter| poll(waiter.as_mut())).collect();
    assert!(matches!(granted[..], [Poll::Ready(_), Poll::Ready(_), Poll::Pending]));
    assert_eq!((semaphore.capacity(), semaphore.queued()), (3, 1));
    drop(held);
}

#[test]
fn more_permits_than_there_can_be_are_refused() {
    let semaphore = Semaphore::new(5).unwrap();
    let refused = semaphore.add_permits(u32::MAX).unwrap_err();
    assert_eq!(refused, CapacityError::AboveMax { capacity: u32::MAX });
    semaphore.add_permits((1 << 31) - 6).unwrap();
    assert!(semaphore.add_permits(1).is_err());
    assert_eq!(semaphore.available_permits(), (1 << 31) - 1);
}

#[test]
fn forgotten_permits_never_come_back() {
    let semaphore = Arc::new(Semaphore::new(5).unwrap());
    let permits = ready(semaphore.acquire_many(2)).unwrap();
    assert!(permits.forget().is_ok());
    assert_eq!((semaphore.capacity(), semaphore.available_permits()), (3, 3));
    let permit = semaphore.clone().try_acquire_owned().unwrap();
    assert!(permit.forget().is_ok());
    assert_eq!((semaphore.capacity(), semaphore.available_permits()), (2, 2));
    assert_eq!(Arc::strong_count(&semaphore), 1);
}

#[test]
fn the_last_permit_of_all_stays() {
    let semaphore = Semaphore::new(3).unwrap();
    assert_eq!(semaphore.forget_permits(10), 2);
    let permit = semaphore.try_acquire().unwrap();
    let permit = permit.forget().unwrap_err();
    assert_eq!(semaphore.capacity(), 1);
    drop(permit);
    assert_eq!(semaphore.available_permits(), 1);
}

#[test]
fn only_free_permits_are_forgotten_unseen() {
    let semaphore = Semaphore::new(5).unwrap();
    let held = semaphore.try_acquire_many(4).unwrap();
    assert_eq!(semaphore.forget_permits(3), 1);
    drop(held);
    assert_eq!((semaphore.capacity(), semaphore.available_permits()), (4, 4));
}

#[test]
fn who_waits_for_more_than_is_left_is_told() {
    let semaphore = Semaphore::new(4).unwrap();
    let held = semaphore.try_acquire_many(2).unwrap();
    let mut heavy = pin!(semaphore.acquire_many(4));
    let mut light = pin!(semaphore.acquire_many(3));
    assert!(poll(heavy.as_mut()).is_pending());
    assert!(poll(light.as_mut()).is_pending());
    assert_eq!(semaphore.forget_permits(1), 1);
    match poll(heavy.as_mut()) {
        Poll::Ready(Err(error)) => {
            assert!(matches!(error.kind(), ErrorKind::InvalidArgument { .. }), "{error}");
            assert_eq!(error.to_string(), "semaphore: a weight of 4 is above the capacity of 3");
        }
        other => panic!("{other:?}"),
    }
    assert!(poll(light.as_mut()).is_pending());
    drop(held);
    assert!(poll(light.as_mut()).is_ready());
}

#[test]
fn a_rejected_head_lets_in_those_behind_it() {
    let semaphore = Semaphore::new(4).unwrap();
    let held = semaphore.try_acquire_many(2).unwrap().unwrap();
    let mut heavy = pin!(semaphore.acquire_many(4));
    let mut light = pin!(semaphore.acquire());
    assert!(poll(heavy.as_mut()).is_pending());
    assert!(poll(light.as_mut()).is_pending());
    assert!(held.forget().is_ok());
    assert!(matches!(poll(heavy.as_mut()), Poll::Ready(Err(_))));
    assert!(matches!(poll(light.as_mut()), Poll::Ready(_)));
}

#[test]
fn permits_are_split_and_merged() {
    let (semaphore, other) = (Semaphore::new(5).unwrap(), Semaphore::new(5).unwrap());
    let mut permits = ready(semaphore.acquire_many(5)).unwrap();
    assert!(permits.split(0).is_none() && permits.split(5).is_none());
    let two = permits.split(2).unwrap();
    assert_eq!((permits.permits(), two.permits()), (3, 2));
    let foreign = permits.merge(other.try_acquire().unwrap()).unwrap_err();
    assert_eq!(foreign.permits(), 1);
    assert!(permits.merge(two).is_ok());
    assert_eq!((permits.permits(), semaphore.available_permits()), (5, 0));
    let one = permits.split(1);
    drop(permits);
    assert_eq!(semaphore.available_permits(), 4);
    drop(one);
    assert_eq!(semaphore.available_permits(), 5);
}

#[test]
fn owned_permits_keep_the_semaphore_alive() {
    let semaphore = Arc::new(Semaphore::new(2).unwrap());
    let mut permits = ready(semaphore.clone().acquire_many_owned(2)).unwrap();
    let one = permits.split(1).unwrap();
    assert!(Arc::ptr_eq(one.semaphore(), &semaphore));
    assert_eq!(Arc::strong_count(&semaphore), 3);
    assert!(permits.merge(one).is_ok());
    assert_eq!(Arc::strong_count(&semaphore), 2);
    drop(semaphore);
    drop(permits);
}

#[test]
fn a_change_by_nothing_changes_nothing_and_ends() {
    let semaphore = Semaphore::new(1).unwrap();
    assert_eq!((semaphore.forget_permits(0), semaphore.forget_permits(7)), (0, 0));
    semaphore.add_permits(0).unwrap();
    let held = semaphore.try_acquire();
    let mut waiter = pin!(semaphore.acquire());
    assert!(poll(waiter.as_mut()).is_pending());
    assert_eq!(semaphore.forget_permits(7), 0);
    semaphore.add_permits(0).unwrap();
    assert_eq!((semaphore.capacity(), semaphore.queued()), (1, 1));
    drop(held);
    assert!(poll(waiter.as_mut()).is_ready());
}
