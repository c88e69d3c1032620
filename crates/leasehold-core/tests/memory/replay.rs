//! Retries and delayed duplicates make neither an orphan nor a second grant (rule L7).

use leasehold_core::{Acquired, AttemptId, Backend, Confirmed, Refusal, Rejection, StoreTime};

use crate::kit::{Ask, Kit, answer, is_set, ms};

/// Field reports 35, 36: the same attempt again finds the grant that it made.
#[test]
fn a_repeated_attempt_gets_the_grant_it_has() {
    let kit = Kit::with_capacity(5);
    let client = kit.client();
    let request = kit.lasting(100);
    let first = client.granted(&request);
    kit.clock.advance(ms(30));
    let again = client.granted(&request);
    assert_eq!(again.fencing, first.fencing);
    assert_eq!(again.remaining, Some(ms(70)));
    assert_eq!(kit.used(), 1);
}

#[test]
fn a_repeated_attempt_gets_the_place_it_has() {
    let kit = Kit::mutex();
    let client = kit.client();
    let (holder, waiter) = (kit.request(), kit.request());
    client.granted(&holder);
    let first = client.queued(&waiter);
    client.queued(&kit.request());
    let again = client.queued(&waiter);
    assert_eq!(again.obstacle.ahead, Some(0));
    assert_eq!(answer(client.counts(&kit.lock)).unwrap().queued, 2);
    client.gives_back(&holder);
    // One flag, whichever answer arrived.
    assert!(is_set(&again.wake));
    assert!(!is_set(&first.wake));
}

/// Rule L10: the answer to a repeat is taken for the grant, so it is no claim any more.
#[test]
fn a_repeat_after_the_hand_off_confirms() {
    let kit = Kit::mutex();
    let client = kit.client();
    let (holder, waiter) = (kit.request(), kit.lasting(60_000));
    client.granted(&holder);
    client.queued(&waiter);
    client.gives_back(&holder);
    assert_eq!(client.granted(&waiter).remaining, Some(ms(60_000)));
    let state = answer(client.inspect(&kit.lock)).unwrap();
    assert!(!state.holders[0].claimed);
}

/// Rule T5, acceptance SL4: another attempt is a second use, also of a token that only waits.
#[test]
fn another_attempt_with_the_token_is_refused() {
    let kit = Kit::with_capacity(1);
    let (one, two) = (kit.client(), kit.client());
    let (holder, waiter) = (kit.request(), kit.request());
    one.granted(&holder);
    one.queued(&waiter);
    for mut request in [holder.clone(), waiter] {
        request.attempt = AttemptId::random();
        assert_eq!(two.refused(&request), Refusal::TokenInUse);
    }
    // Before anything else that could be wrong with it.
    let mut wrong = holder;
    wrong.attempt = AttemptId::random();
    wrong.capacity =
        leasehold_core::CapacityClaim::Exactly(leasehold_core::Capacity::new(9).unwrap());
    assert_eq!(two.refused(&wrong), Refusal::TokenInUse);
}

/// A delayed duplicate has no effect, not even when the lock is free by then.
#[test]
fn a_late_copy_is_stale() {
    let kit = Kit::mutex();
    let client = kit.client();
    let now = client.store_time(client.clock().now());
    let mut request = kit.request();
    request.not_after = Some(now.after(ms(5)));
    client.granted(&request);
    client.gives_back(&request);
    kit.clock.advance(ms(5));
    assert_eq!(client.refused(&request), Refusal::Stale);
    assert_eq!(kit.used(), 0);
    request.not_after = Some(StoreTime::MAX);
    client.granted(&request);
}

/// A copy that arrives after the rejection does not queue again; the waiter is told, once.
#[test]
fn a_copy_after_a_rejection_does_not_queue_again() {
    let kit = Kit::mutex();
    let client = kit.client();
    let waiter = kit.request();
    client.granted(&kit.request());
    client.queued(&waiter);
    assert_eq!(answer(client.cancel_all(&kit.lock, "stop")), 1);
    let place = client.queued(&waiter);
    assert!(is_set(&place.wake));
    assert_eq!(answer(client.counts(&kit.lock)).unwrap().queued, 0);
    let told = answer(client.confirm(&kit.lock, &waiter.token));
    let reason = "stop".to_owned();
    assert_eq!(told, Confirmed::Rejected(Rejection::Cancelled { reason }));
    assert_eq!(answer(client.confirm(&kit.lock, &waiter.token)), Confirmed::Unknown);
    assert!(matches!(answer(client.acquire(&waiter)), Acquired::Queued(_)));
}

/// A confirmation is repeated without harm: it never shortens what an extension gave (rule L2).
#[test]
fn confirming_twice_is_confirming_once() {
    let kit = Kit::mutex();
    let client = kit.client();
    let request = kit.lasting(100);
    let first = client.granted(&request);
    answer(client.extend(&kit.lock, &request.token, crate::kit::ttl(500)));
    kit.clock.advance(ms(10));
    let again = client.confirmed(&request);
    assert_eq!((again.fencing, again.remaining), (first.fencing, Some(ms(500))));
}
