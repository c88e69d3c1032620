//! Watching without acquiring (rules U).

use leasehold_core::{Backend, Token, WatchFor};

use crate::kit::{Ask, Kit, answer, is_set, ms};

/// Rule U1: complete at once when it is true already, also on a name that nobody uses.
#[test]
fn what_is_true_already_is_done_at_once() {
    let kit = Kit::with_capacity(2);
    let client = kit.client();
    for what in [WatchFor::Unlocked, WatchFor::AnyPermit, WatchFor::Readable] {
        assert!(client.is_done(&kit.lock, &Token::random(), what));
    }
    client.granted(&kit.request());
    assert!(client.is_done(&kit.lock, &Token::random(), WatchFor::AnyPermit));
    client.watching(&kit.lock, &Token::random(), WatchFor::Unlocked);
}

/// Acceptance S12 to S14: any permit, then all.
#[test]
fn any_and_all_permits() {
    let kit = Kit::with_capacity(2);
    let client = kit.client();
    let held = [kit.request(), kit.request()];
    for request in &held {
        client.granted(request);
    }
    let (any, all) = (Token::random(), Token::random());
    let any_wake = client.watching(&kit.lock, &any, WatchFor::AnyPermit);
    let all_wake = client.watching(&kit.lock, &all, WatchFor::Unlocked);
    client.gives_back(&held[0]);
    assert!(is_set(&any_wake) && !is_set(&all_wake));
    // It became true, so it stays done although it is false again.
    client.granted(&held[0]);
    assert!(client.is_done(&kit.lock, &any, WatchFor::AnyPermit));
    client.gives_back(&held[0]);
    client.gives_back(&held[1]);
    assert!(is_set(&all_wake));
}

/// Rule U1: a hand-off is not an unlock.
#[test]
fn a_hand_off_is_not_an_unlock() {
    let kit = Kit::mutex();
    let client = kit.client();
    let (first, second) = (kit.request(), kit.request());
    client.granted(&first);
    client.queued(&second);
    let wakes = [WatchFor::Unlocked, WatchFor::AnyPermit, WatchFor::Readable]
        .map(|what| client.watching(&kit.lock, &Token::random(), what));
    client.gives_back(&first);
    assert!(wakes.iter().all(|wake| !is_set(wake)));
    client.confirmed(&second);
    client.gives_back(&second);
    assert!(wakes.iter().all(is_set));
}

/// Rules U1, T3: also by an expiry, with nobody but the watcher there.
#[test]
fn an_expiry_completes_a_watcher() {
    let kit = Kit::mutex();
    let client = kit.client();
    client.granted(&kit.lasting(50));
    let wake = client.watching(&kit.lock, &Token::random(), WatchFor::Unlocked);
    assert_eq!(kit.clock.timers(), 1);
    kit.clock.advance(ms(50));
    assert!(is_set(&wake));
    assert_eq!(kit.clock.timers(), 0);
}

/// A write that waits keeps readers out, so "readable" is more than "a permit is free".
#[test]
fn readable_means_that_a_read_would_get_in() {
    let kit = Kit::with_capacity(8);
    let client = kit.client();
    let (reader, writer) = (kit.request(), kit.whole());
    client.granted(&reader);
    client.queued(&writer);
    assert!(client.is_done(&kit.lock, &Token::random(), WatchFor::AnyPermit));
    let wake = client.watching(&kit.lock, &Token::random(), WatchFor::Readable);
    answer(client.release(&kit.lock, &writer.token));
    assert!(is_set(&wake));
}

/// Rule U2, acceptance S18: `cancel_all` leaves watchers waiting. Asking again finds the same one;
/// one that was taken back leaves no timer.
#[test]
fn cancelling_waiters_leaves_watchers() {
    let kit = Kit::mutex();
    let client = kit.client();
    let holder = kit.lasting(60_000);
    client.granted(&holder);
    let id = Token::random();
    let wake = client.watching(&kit.lock, &id, WatchFor::Unlocked);
    client.queued(&kit.request());
    assert_eq!(answer(client.cancel_all(&kit.lock, "stop")), 1);
    assert!(!is_set(&wake));
    let again = client.watching(&kit.lock, &id, WatchFor::Unlocked);
    assert_eq!(kit.clock.timers(), 1);
    client.gives_back(&holder);
    assert!(is_set(&again));
    client.unwatch(&kit.lock, &id);
    client.granted(&holder);
    client.watching(&kit.lock, &id, WatchFor::Unlocked);
    client.unwatch(&kit.lock, &id);
    assert_eq!(kit.clock.timers(), 0);
}
