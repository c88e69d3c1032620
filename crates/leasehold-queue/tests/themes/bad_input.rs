//! Bad input is refused with a typed error, changes nothing and never panics (rules Q5 and W6).

use std::error::Error;

use leasehold_queue::{CAPACITY_MAX, CapacityError, EnqueueError, HoldError, Permits, WeightError};

use crate::{Queue, held, nobody, queued};

#[test]
fn a_capacity_of_0_or_beyond_the_maximum_is_refused() {
    assert_eq!(Queue::new(0).err(), Some(CapacityError::Zero));
    assert_eq!(Queue::new(1).map(|queue| queue.capacity()), Ok(1));
    assert_eq!(Queue::new(CAPACITY_MAX).map(|queue| queue.capacity()), Ok(CAPACITY_MAX));
    for capacity in [CAPACITY_MAX + 1, u32::MAX] {
        assert_eq!(Queue::new(capacity).err(), Some(CapacityError::AboveMax { capacity }));
        let mut queue = Queue::new(3).unwrap();
        let refused = queue.resize(capacity, nobody, nobody);
        assert_eq!(refused, Err(CapacityError::AboveMax { capacity }));
        assert_eq!(queue.capacity(), 3);
    }
    assert_eq!(Queue::new(3).unwrap().resize(0, nobody, nobody), Err(CapacityError::Zero));
}

#[test]
fn a_weight_of_0_or_above_the_capacity_is_refused_also_on_a_busy_lock() {
    let mut queue = Queue::new(3).unwrap();
    for _busy in [false, true] {
        for (weight, error) in [
            (0, WeightError::Zero),
            (4, WeightError::AboveCapacity { weight: 4, capacity: 3 }),
            (u32::MAX, WeightError::AboveCapacity { weight: u32::MAX, capacity: 3 }),
        ] {
            let used = queue.used();
            assert_eq!(queue.acquire_now(weight), Err(error));
            assert_eq!(queue.acquire_upgradable_now(weight), Err(error));
            let refused = Err((EnqueueError::Weight(error), "back"));
            assert_eq!(queue.enqueue(weight, "back"), refused);
            assert_eq!(queue.enqueue_upgradable(weight, "back"), refused);
            assert_eq!(queue.upgrade(weight, "back", nobody), refused);
            assert_eq!((queue.used(), queue.queued()), (used, 0));
        }
        let _ = queue.acquire_now(3);
    }
}

#[test]
fn a_hold_that_does_not_exist_can_be_neither_released_nor_changed() {
    let mut queue = Queue::new(5).unwrap();
    held(&mut queue, 3);
    queued(&mut queue, 3, "next");
    assert_eq!(queue.release(0, nobody), Err(HoldError::Zero));
    assert_eq!(queue.release(4, nobody), Err(HoldError::NotHeld { weight: 4, held: 3 }));
    assert_eq!(queue.downgrade(3, 0, nobody), Err(HoldError::Zero));
    assert_eq!(queue.downgrade(0, 0, nobody), Err(HoldError::Zero));
    assert_eq!(queue.downgrade(2, 3, nobody), Err(HoldError::WrongWay { from: 2, to: 3 }));
    assert_eq!(queue.downgrade(4, 1, nobody), Err(HoldError::NotHeld { weight: 4, held: 3 }));
    assert_eq!((queue.used(), queue.queued()), (3, 1));
}

#[test]
fn an_upgrade_without_an_upgradable_holder_is_refused() {
    let mut queue = Queue::new(5).unwrap();
    held(&mut queue, 1);
    let error = HoldError::NoUpgradable;
    assert_eq!(queue.upgrade(5, "back", nobody), Err((EnqueueError::Hold(error), "back")));
    assert_eq!(queue.release_upgradable(nobody), Err(error));
    assert_eq!(queue.downgrade_upgradable(1, nobody), Err(error));
    assert_eq!((queue.used(), queue.queued()), (1, 0));
}

#[test]
fn an_upgradable_holder_changes_only_upwards_by_upgrade_and_downwards_by_downgrade() {
    let mut queue = Queue::new(5).unwrap();
    assert_eq!(queue.acquire_upgradable_now(3), Ok(true));
    let error = HoldError::WrongWay { from: 3, to: 2 };
    assert_eq!(queue.upgrade(2, "back", nobody), Err((EnqueueError::Hold(error), "back")));
    let error = HoldError::WrongWay { from: 3, to: 4 };
    assert_eq!(queue.downgrade_upgradable(4, nobody), Err(error));
    assert_eq!(queue.downgrade_upgradable(0, nobody), Err(HoldError::Zero));
    assert_eq!((queue.used(), queue.has_upgradable()), (3, true));
    queue.downgrade_upgradable(2, nobody).unwrap();
    assert_eq!((queue.used(), queue.has_upgradable()), (2, false));
}

#[test]
fn the_rules_alone_refuse_what_the_queue_refuses() {
    let mut permits = Permits::new(3).unwrap();
    assert_eq!(permits.check_weight(0), Err(WeightError::Zero));
    assert_eq!(permits.check_weight(3), Ok(()));
    assert!(permits.check_weight(4).is_err());
    assert_eq!(permits.release(0), Err(HoldError::Zero));
    assert_eq!(permits.release(1), Err(HoldError::NotHeld { weight: 1, held: 0 }));
    assert_eq!(permits.resize(0), Err(CapacityError::Zero));
    assert!(!permits.grant(u32::MAX));
    assert_eq!(permits, Permits::from_parts(3, 0).unwrap());
}

#[test]
fn every_message_says_what_was_asked_and_what_stood_in_the_way() {
    let errors: [(&dyn Error, &str); 9] = [
        (&CapacityError::Zero, "a capacity of 0 lets nobody in"),
        (
            &CapacityError::AboveMax { capacity: u32::MAX },
            "capacity 4294967295 is above the maximum of 2147483647",
        ),
        (&EnqueueError::from(WeightError::Zero), "a weight of 0 asks for nothing"),
        (
            &WeightError::AboveCapacity { weight: 4, capacity: 3 },
            "weight 4 is above the capacity of 3",
        ),
        (&EnqueueError::Full, "every place in the queue is taken"),
        (&HoldError::NotHeld { weight: 2, held: 1 }, "2 permits were named, but 1 are held"),
        (
            &HoldError::WrongWay { from: 1, to: 2 },
            "a hold of 1 permits cannot be changed to 2 this way",
        ),
        (
            &EnqueueError::from(HoldError::UpgradePending),
            "the upgradable holder waits for its upgrade",
        ),
        (&HoldError::NoUpgradable, "there is no upgradable holder"),
    ];
    for (error, message) in errors {
        assert_eq!(error.to_string(), message);
    }
}
