//! What is refused, and that a refusal leaves nothing behind (rules Q5, N2).

use leasehold_core::{Acquire, Acquired, Backend, Capacity, CapacityClaim, Refusal};

use crate::kit::{Ask, Kit, answer};

fn claiming(kit: &Kit, claim: CapacityClaim) -> Acquire {
    Acquire { capacity: claim, ..kit.request() }
}

/// Acceptance G6, field report 56: the capacity in effect stays while anybody uses the lock.
#[test]
fn another_capacity_is_a_mismatch_while_the_lock_is_in_use() {
    let kit = Kit::with_capacity(2);
    let client = kit.client();
    let (two, five) = (Capacity::new(2).unwrap(), Capacity::new(5).unwrap());
    let held = kit.request();
    client.granted(&held);
    let other = claiming(&kit, CapacityClaim::Exactly(five));
    assert_eq!(client.refused(&other), Refusal::ConfigMismatch { registered: two });
    // Who has no opinion takes what is there.
    let any = claiming(&kit, CapacityClaim::Registered { otherwise: five });
    assert_eq!(client.granted(&any).capacity, two);
    client.gives_back(&any);
    client.gives_back(&held);
    assert!(answer(client.counts(&kit.lock)).is_none());
    assert_eq!(client.granted(&other).capacity, five);
}

/// Rules Q5, W6: also when the lock is busy, and before it is queued.
#[test]
fn what_can_never_fit_is_refused_at_once() {
    let kit = Kit::with_capacity(3);
    let client = kit.client();
    let refusal = Refusal::TooHeavy { capacity: kit.capacity };
    assert_eq!(client.refused(&kit.weighing(4)), refusal);
    client.granted(&kit.whole());
    assert_eq!(client.refused(&kit.weighing(4)), refusal);
    assert_eq!(answer(client.counts(&kit.lock)).unwrap().queued, 0);
}

#[test]
fn the_queue_has_a_limit() {
    let kit = Kit::mutex();
    let client = kit.client();
    client.granted(&kit.request());
    let limited = || Acquire { queue_limit: 2, ..kit.request() };
    let waiter = limited();
    client.queued(&waiter);
    client.queued(&limited());
    assert_eq!(client.refused(&limited()), Refusal::QueueFull { limit: 2 });
    client.abandon(&kit.lock, &waiter.token);
    client.queued(&limited());
}

/// Rule W2, acceptance ST2: one attempt leaves nothing queued; a free lock is always granted.
#[test]
fn one_attempt_that_fails_leaves_nothing() {
    let kit = Kit::mutex();
    let client = kit.client();
    let held = kit.request();
    client.granted(&held);
    let attempt = Acquire { wait: false, ..kit.request() };
    let Acquired::Busy(obstacle) = answer(client.acquire(&attempt)) else { panic!("not busy") };
    assert_eq!(obstacle.ahead, Some(0));
    assert_eq!(obstacle.holder.unwrap().0.pid(), 7);
    client.gives_back(&held);
    assert!(answer(client.counts(&kit.lock)).is_none());
    client.granted(&attempt);
}
