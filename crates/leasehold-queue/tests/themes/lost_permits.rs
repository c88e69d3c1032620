//! A permit is never lost and never given twice (rule Q4).

use leasehold_queue::{HoldError, Permits};

use crate::{Queue, granted, held, queued};

#[test]
fn a_second_release_is_refused_and_makes_no_permit() {
    let mut queue = Queue::new(2).unwrap();
    held(&mut queue, 2);
    queue.release(2, |_, _, _| {}).unwrap();
    let refused = queue.release(1, |_, _, _| {});
    assert_eq!(refused, Err(HoldError::NotHeld { weight: 1, held: 0 }));
    assert_eq!((queue.used(), queue.free()), (0, 2));
}

#[test]
fn a_release_of_more_than_is_held_gives_nothing_back_and_grants_nobody() {
    let mut queue = Queue::new(2).unwrap();
    held(&mut queue, 2);
    queued(&mut queue, 1, "next");
    let grants = granted(|on| {
        assert_eq!(queue.release(3, on), Err(HoldError::NotHeld { weight: 3, held: 2 }));
    });
    assert_eq!((grants.len(), queue.used(), queue.queued()), (0, 2, 1));
}

#[test]
fn a_plain_release_cannot_take_the_share_of_the_upgradable_holder() {
    let mut queue = Queue::new(4).unwrap();
    assert_eq!(queue.acquire_upgradable_now(1), Ok(true));
    held(&mut queue, 2);
    let refused = HoldError::NotHeld { weight: 3, held: 2 };
    assert_eq!(queue.release(3, |_, _, _| {}), Err(refused));
    assert_eq!(queue.downgrade(3, 1, |_, _, _| {}), Err(refused));
    queue.release(2, |_, _, _| {}).unwrap();
    queue.release_upgradable(|_, _, _| {}).unwrap();
    assert!(queue.is_idle());
}

#[test]
fn the_last_permit_is_given_once() {
    let mut queue = Queue::new(3).unwrap();
    held(&mut queue, 2);
    held(&mut queue, 1);
    queued(&mut queue, 1, "a");
    queued(&mut queue, 1, "b");
    assert_eq!(granted(|on| queue.release(1, on)), ["a"]);
    assert_eq!((queue.used(), queue.queued()), (3, 1));
}

#[test]
fn a_lock_that_counts_elsewhere_can_hand_its_count_over_only_while_nobody_is_queued() {
    let mut queue = Queue::new(3).unwrap();
    queue.set_used(3).unwrap();
    assert_eq!(queue.acquire_now(1), Ok(false));
    queue.set_used(2).unwrap();
    assert_eq!(queue.acquire_upgradable_now(1), Ok(true));
    assert_eq!(queue.set_used(0), Err(HoldError::NotHeld { weight: 1, held: 0 }));
    assert_eq!(queue.set_used(1), Ok(()));
    queued(&mut queue, 3, "next");
    assert_eq!(queue.set_used(1), Err(HoldError::WaitersQueued));
    assert_eq!((queue.used(), queue.capacity()), (1, 3));
}

#[test]
fn a_store_may_remember_more_in_use_than_a_shrunk_capacity() {
    let mut permits = Permits::from_parts(2, 5).unwrap();
    assert_eq!((permits.free(), permits.fits(1)), (0, false));
    assert!(!permits.grant(1));
    permits.release(4).unwrap();
    assert!(permits.grant(1));
    assert_eq!((permits.used(), permits.capacity()), (2, 2));
}
