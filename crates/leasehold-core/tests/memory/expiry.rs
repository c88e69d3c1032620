//! A TTL counts from the grant, is decided by the clock, and passes the lock on by itself.

use std::{sync::Arc, task::Waker};

use leasehold_core::{
    Backend, Clock, Confirmed, LocalTime, ManualClock, MemoryStore, Released, Remaining, Token,
    WatchFor, clock::TimerId, defaults,
};

use crate::kit::{Ask, Kit, answer, is_set, ms};

/// Rule T3, acceptance SL8: overdue is gone at its very time.
#[test]
fn a_grant_is_over_at_its_time_and_not_before() {
    let kit = Kit::mutex();
    let client = kit.client();
    let request = kit.lasting(50);
    client.granted(&request);
    kit.clock.advance(ms(49));
    assert_eq!(client.left(&request), Remaining::Left(ms(1)));
    assert_eq!(kit.used(), 1);
    kit.clock.advance(ms(1));
    assert_eq!(client.left(&request), Remaining::Gone);
    assert_eq!(kit.used(), 0);
    client.granted(&kit.request());
}

/// Rules T3, T6, W9, acceptance SL9, NL2: the waiter is woken by the expiry alone, with a manual
/// clock and nobody who calls; the late release then touches nothing.
#[test]
fn a_waiter_gets_an_expired_grant_without_a_call_by_anybody() {
    let kit = Kit::mutex();
    let (one, two) = (kit.client(), kit.client());
    let (first, second) = (kit.lasting(50), kit.lasting(100));
    one.granted(&first);
    let place = two.queued(&second);
    kit.clock.advance(ms(49));
    assert!(!is_set(&place.wake));
    kit.clock.advance(ms(1));
    assert!(is_set(&place.wake));
    two.confirmed(&second);
    assert_eq!(answer(one.release(&kit.lock, &first.token)), Released::Unknown);
    assert_eq!(kit.used(), 1);
    two.gives_back(&second);
    assert_eq!(kit.used(), 0);
}

/// Rule T2, acceptance SL10: counted from the grant, not from the call.
#[test]
fn a_waiters_ttl_counts_from_its_grant() {
    let kit = Kit::mutex();
    let client = kit.client();
    let (first, second) = (kit.request(), kit.lasting(100));
    client.granted(&first);
    client.queued(&second);
    kit.clock.advance(ms(80));
    client.gives_back(&first);
    let grant = client.confirmed(&second);
    assert_eq!(grant.remaining, Some(ms(100)));
}

/// Rule L10: a claim, then the full TTL; the claim is no longer than the TTL.
#[test]
fn a_grant_to_a_waiter_is_a_short_claim_until_it_is_confirmed() {
    let kit = Kit::mutex();
    let client = kit.client();
    let claim = u64::try_from(defaults::CLAIM.as_millis()).unwrap();
    for (asked, claimed) in [(Some(60_000), claim), (Some(500), 500), (None, claim)] {
        let holder = kit.request();
        let waiter = asked.map_or_else(|| kit.request(), |asked| kit.lasting(asked));
        client.granted(&holder);
        client.queued(&waiter);
        client.gives_back(&holder);
        assert_eq!(client.left(&waiter), Remaining::Left(ms(claimed)));
        kit.clock.advance(ms(claimed - 1));
        assert_eq!(client.confirmed(&waiter).remaining, asked.map(ms));
        kit.clock.advance(ms(asked.unwrap_or(1_000_000) - 1));
        assert_ne!(client.left(&waiter), Remaining::Gone);
        client.gives_back(&waiter);
    }
}

/// Rule L10, field report 30: nobody confirms, so the permit passes on, and the late confirmation
/// is told.
#[test]
fn an_unconfirmed_claim_passes_on() {
    let kit = Kit::mutex();
    let client = kit.client();
    let (holder, silent, next) = (kit.request(), kit.request(), kit.lasting(60_000));
    client.granted(&holder);
    client.queued(&silent);
    let place = client.queued(&next);
    client.gives_back(&holder);
    assert!(!is_set(&place.wake));
    kit.clock.advance(defaults::CLAIM);
    assert!(is_set(&place.wake));
    assert_eq!(answer(client.confirm(&kit.lock, &silent.token)), Confirmed::Unknown);
    client.confirmed(&next);
}

/// A chain of silent claims moves on by timers alone, in order.
#[test]
fn a_row_of_silent_claims_lapses_one_after_the_other() {
    let kit = Kit::mutex();
    let client = kit.client();
    client.granted(&kit.lasting(10));
    let silent: Vec<_> = (0..20).map(|_| client.queued(&kit.request()).wake).collect();
    let last = kit.request();
    let place = client.queued(&last);
    kit.clock.advance(ms(10));
    for (n, wake) in silent.iter().enumerate() {
        assert!(is_set(wake), "{n}");
        assert!(!is_set(&place.wake), "{n}");
        kit.clock.advance(defaults::CLAIM);
    }
    assert!(is_set(&place.wake));
    client.confirmed(&last);
}

/// Each grant has its own expiry: a short lease does not end the long ones.
#[test]
fn expiries_are_per_grant() {
    let kit = Kit::with_capacity(40);
    let client = kit.client();
    let requests: Vec<_> = (0..40).map(|n| kit.lasting(100 + n * 10)).collect();
    for request in &requests {
        client.granted(request);
    }
    for n in 0..40 {
        kit.clock.advance(ms(if n == 0 { 100 } else { 10 }));
        assert_eq!(kit.used(), 39 - n);
    }
    assert_eq!(client.left(&requests[39]), Remaining::Gone);
}

/// Rule W9: a timer only while somebody waits for an expiry; nothing is left behind.
#[test]
fn no_timer_is_set_unless_somebody_waits_for_an_expiry() {
    let kit = Kit::mutex();
    let client = kit.client();
    let (holder, waiter) = (kit.lasting(1000), kit.lasting(1000));
    client.granted(&holder);
    assert_eq!(kit.clock.timers(), 0);
    client.queued(&waiter);
    assert_eq!(kit.clock.timers(), 1);
    // The waiter gives up.
    client.abandon(&kit.lock, &waiter.token);
    assert_eq!(kit.clock.timers(), 0);
    // A crowd needs no more than one.
    for _ in 0..100 {
        client.queued(&kit.lasting(1000));
    }
    assert_eq!(kit.clock.timers(), 1);
    answer(client.cancel_all(&kit.lock, "enough"));
    assert_eq!(kit.clock.timers(), 0);
    // A hand-off may leave one, which rings for nobody and is not set again.
    client.queued(&kit.lasting(1000));
    client.gives_back(&holder);
    kit.clock.advance(ms(1000));
    kit.clock.advance(defaults::CLAIM);
    assert_eq!(kit.clock.timers(), 0);
    assert_eq!(kit.used(), 0);
    // A holder without a TTL cannot expire.
    client.granted(&kit.request());
    client.queued(&kit.request());
    assert_eq!(kit.clock.timers(), 0);
}

/// The timer follows an expiry that is made earlier, and one that is made later costs a look.
#[test]
fn a_shortened_ttl_is_noticed_by_those_who_wait() {
    let kit = Kit::mutex();
    let client = kit.client();
    let (holder, waiter) = (kit.lasting(10_000), kit.lasting(10_000));
    client.granted(&holder);
    let place = client.queued(&waiter);
    answer(client.extend(&kit.lock, &holder.token, crate::kit::ttl(5)));
    kit.clock.advance(ms(4));
    answer(client.extend(&kit.lock, &holder.token, crate::kit::ttl(7)));
    kit.clock.advance(ms(6));
    assert!(!is_set(&place.wake));
    kit.clock.advance(ms(1));
    assert!(is_set(&place.wake));
}

/// A clock whose timers never fire.
#[derive(Debug)]
struct Deaf(ManualClock);

impl Clock for Deaf {
    fn now(&self) -> LocalTime {
        self.0.now()
    }

    fn set_timer(&self, at: LocalTime, waker: Waker) -> TimerId {
        let timer = self.0.set_timer(at, waker);
        self.0.clear_timer(timer);
        timer
    }

    fn clear_timer(&self, _: TimerId) {}
}

/// Rule T3: the clock decides, not a timer. Whoever comes by finds the overdue grant gone, and what
/// it made true for watchers and waiters has happened before what the caller wants.
#[test]
fn without_any_timer_the_next_step_does_it_all() {
    let mut kit = Kit::mutex();
    kit.store = MemoryStore::with_clock(Arc::new(Deaf(kit.clock.clone())));
    let client = kit.client();
    client.granted(&kit.lasting(50));
    let watcher = client.watching(&kit.lock, &Token::random(), WatchFor::Unlocked);
    kit.clock.advance(ms(50));
    let next = kit.lasting(50);
    client.granted(&next);
    assert!(is_set(&watcher), "it was free, if only until the same step took it");
    let place = client.queued(&kit.lasting(50));
    kit.clock.advance(ms(50));
    assert_eq!(client.left(&next), Remaining::Gone);
    assert!(is_set(&place.wake));
}

/// Rule L8: the store's time in microseconds, and one more than the last where that stands still.
#[test]
fn fencing_tokens_follow_the_stores_time() {
    let kit = Kit::with_capacity(9);
    let client = kit.client();
    let start = client.store_time(client.clock().now()).0;
    assert_eq!(client.granted(&kit.request()).fencing.get(), start);
    assert_eq!(client.granted(&kit.request()).fencing.get(), start + 1);
    kit.clock.advance(ms(3));
    assert_eq!(client.granted(&kit.request()).fencing.get(), start + 3_000);
}
