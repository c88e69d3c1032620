//! A destroy ends one generation for everybody and never touches the next (rule N5).

use leasehold_core::{
    Backend, Capacity, CapacityClaim, Confirmed, Destroyed, Generation, Refusal, Rejection,
    Released, Remaining, Renewal, Renewed, Token, WatchFor, Watched, defaults,
};

use crate::kit::{Ask, Kit, answer, is_set};

#[test]
fn a_destroy_ends_holders_waiters_and_watchers() {
    let kit = Kit::mutex();
    let (one, two) = (kit.client(), kit.client());
    let (holder, waiter, id) = (kit.lasting(60_000), kit.request(), Token::random());
    one.granted(&holder);
    let place = two.queued(&waiter);
    let watcher = two.watching(&kit.lock, &id, WatchFor::Destroyed);

    let next = Generation(1);
    assert_eq!(answer(one.destroy(&kit.lock, None, "moved")), Destroyed::Now { next });
    assert!(is_set(&place.wake) && is_set(&watcher));
    let reason = "moved".to_owned();
    let told = answer(two.confirm(&kit.lock, &waiter.token));
    assert_eq!(told, Confirmed::Rejected(Rejection::Destroyed { reason }));
    assert!(two.is_done(&kit.lock, &id, WatchFor::Destroyed));
    assert_eq!(one.left(&holder), Remaining::Gone);
    let lease = Renewal { lock: kit.lock.clone(), token: holder.token.clone() };
    assert_eq!(answer(one.renew(vec![lease])), [Renewed::Unknown]);
    assert_eq!(kit.clock.timers(), 0);
    assert!(answer(one.inspect(&kit.lock)).is_none());
}

/// Acceptance G12: the name is free for a new generation, with any capacity, and counts on.
#[test]
fn the_next_generation_starts_afresh_but_its_fencing_goes_on() {
    let kit = Kit::mutex();
    let client = kit.client();
    let old = kit.request();
    let before = client.granted(&old);
    answer(client.destroy(&kit.lock, Some(before.generation), "again"));
    let mut new = kit.weighing(3);
    new.capacity = CapacityClaim::Exactly(Capacity::new(3).unwrap());
    new.generation = Some(Generation(1));
    let after = client.granted(&new);
    assert!(after.fencing > before.fencing);
    assert_eq!((after.generation, after.capacity.get()), (Generation(1), 3));
    // A release from the old generation touches nothing.
    assert_eq!(answer(client.release(&kit.lock, &old.token)), Released::Unknown);
    assert_eq!(kit.used(), 3);
}

/// Rule U2: old handles are told, by acquisitions and by new watchers, for as long as documented.
#[test]
fn old_handles_learn_of_the_destroy() {
    let kit = Kit::mutex();
    let client = kit.client();
    answer(client.destroy(&kit.lock, None, "gone"));
    kit.clock.advance(defaults::DESTROYED_RETENTION - crate::kit::ms(1));
    let mut old = kit.request();
    old.generation = Some(Generation(0));
    assert_eq!(client.refused(&old), Refusal::Destroyed);
    let watched =
        client.watch(&kit.lock, Some(Generation(0)), &Token::random(), WatchFor::Unlocked);
    assert!(matches!(answer(watched), Watched::Destroyed));
    // A handle that knows no generation yet is not old.
    client.granted(&kit.request());
}

/// Acceptance G13: a second destroy of the same generation does nothing to the next.
#[test]
fn destroying_twice_is_destroying_once() {
    let kit = Kit::mutex();
    let client = kit.client();
    let first = Some(Generation(0));
    assert!(matches!(answer(client.destroy(&kit.lock, first, "a")), Destroyed::Now { .. }));
    let new = kit.request();
    client.granted(&new);
    assert_eq!(answer(client.destroy(&kit.lock, first, "b")), Destroyed::Before);
    assert_eq!(client.left(&new), Remaining::Never);
}
