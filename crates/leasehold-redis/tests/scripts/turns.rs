//! Turns of those who wait in line, which the scripts have short ways for: a sole holder with a TTL,
//! nobody who watches, nothing that has run out.

use leasehold_core::{
    Capacity, CapacityClaim, Generation, LockKind, Refusal, Released, Share, StoreTime,
};
use leasehold_redis::script::{AcquireReply, Push};
use test_servers::{Flavor, Server};

use crate::{
    Own, Test,
    life::mutex,
    store::{Ask, Store, ms, ttl},
};

pub(crate) const TESTS: &[Test] = &[
    ("q2_all_that_fit_enter_with_one_release", q2_all_that_fit_enter_with_one_release),
    ("l7_a_copy_of_a_turn_that_is_over_is_none", l7_a_copy_of_a_turn_that_is_over_is_none),
    ("q5_who_does_not_match_a_line_does_not_join_it", q5_who_does_not_match_a_line),
    ("l10_the_keys_of_a_line_live_as_long_as_its_grants", l10_the_keys_of_a_line_live),
];

/// Where the clock can be stepped.
pub(crate) const TESTS_OF_TIME: &[Own] = &[
    ("l4_a_line_passes_over_who_is_silent", l4_a_line_passes_over_who_is_silent),
    ("l4_who_joins_a_line_after_a_gap_ends_no_wait", l4_who_joins_a_line_after_a_gap_ends_no_wait),
];

fn line(lock: &mut Store, clients: std::ops::Range<u64>) -> Vec<Ask> {
    let asks: Vec<Ask> = clients.map(|n| lock.wants(n).ttl(ttl(60_000))).collect();
    asks.iter().for_each(|ask| _ = lock.queued(ask));
    asks
}

fn q2_all_that_fit_enter_with_one_release(server: &Server) {
    let mut lock = Store::new(server, LockKind::Semaphore, "turns", 3);
    let whole = lock.wants(60).ttl(ttl(60_000)).with(|ask| ask.request.share = Share::Whole);
    lock.held(&whole);
    let asks = line(&mut lock, 61..65);
    let mut channels: Vec<_> = (61..65).map(|n| lock.subscribe(server, n)).collect();
    assert_eq!(lock.release(&whole.token()), Released::Holder);
    for (channel, ask) in channels.iter_mut().zip(&asks[..3]) {
        assert_eq!(channel.next(), Push::Look(vec![ask.sender.wake]));
    }
    assert!(matches!(channels[3].next(), Push::LookIn(_, wakes) if wakes == [asks[3].sender.wake]));
    for ask in &asks[..3] {
        lock.granted(&ask.token());
    }
    for ask in &asks {
        lock.release(&ask.token());
    }
    assert_eq!(lock.counts(), None);
}

fn l7_a_copy_of_a_turn_that_is_over_is_none(server: &Server) {
    let mut lock = mutex(server, "copies-of-turns");
    let now = lock.time();
    let asks: Vec<Ask> = (0..5)
        .map(|n| {
            lock.wants(n).ttl(ttl(60_000)).with(|ask| {
                ask.sender.not_after = Some(now.after(ms(20_000)));
                ask.sender.stamp = Some(StoreTime(now.0 + n));
            })
        })
        .collect();
    lock.held(&asks[0]);
    asks[1..4].iter().for_each(|ask| _ = lock.queued(ask));
    lock.release(&asks[0].token());
    lock.granted(&asks[1].token());
    assert_eq!(lock.acquire(&asks[0]), AcquireReply::Ended);
    lock.release(&asks[1].token());
    lock.granted(&asks[2].token());
    assert_eq!(lock.acquire(&asks[1]), AcquireReply::Ended);
    assert!(matches!(lock.acquire(&asks[0]), AcquireReply::Overtaken(_)));
    assert_eq!(lock.queued(&asks[4]).0, 1, "sent later than all that are over");
    for ask in &asks[2..] {
        assert_eq!(lock.release(&ask.token()), Released::Holder);
    }
    assert_eq!(lock.counts(), None);
}

fn q5_who_does_not_match_a_line(server: &Server) {
    let mut lock = Store::new(server, LockKind::Semaphore, "no-match", 2);
    lock.destroy(None, "so that there is an older generation");
    let whole = lock.wants(1).ttl(ttl(60_000)).with(|ask| ask.request.share = Share::Whole);
    lock.held(&whole);
    let asks = line(&mut lock, 2..4);
    let other = Capacity::new(1).expect("a capacity");
    let ask = lock.wants(5).with(|ask| ask.request.capacity = CapacityClaim::Exactly(other));
    assert!(matches!(lock.refused(&ask), Refusal::ConfigMismatch { .. }));
    let ask = lock.wants(5).with(|ask| ask.request.generation = Some(Generation(0)));
    assert_eq!(lock.refused(&ask), Refusal::Destroyed);
    let ask = lock.wants(5).with(|ask| ask.request.queue_limit = 2);
    assert_eq!(lock.refused(&ask), Refusal::QueueFull { limit: 2 });
    let ask = lock.wants(5).weight(3);
    assert!(matches!(lock.refused(&ask), Refusal::TooHeavy { .. }));
    let ask = lock.wants(5).with(|ask| ask.request.token = asks[0].token());
    assert_eq!(lock.refused(&ask), Refusal::TokenInUse);
    let ask = lock.wants(5).with(|ask| ask.request.token = whole.token());
    assert_eq!(lock.refused(&ask), Refusal::TokenInUse);
    assert_eq!(lock.counts().map(|counts| counts.queued), Some(2));
    for ask in [&whole].into_iter().chain(&asks) {
        assert_eq!(lock.release(&ask.token()), Released::Holder);
    }
}

fn l10_the_keys_of_a_line_live(server: &Server) {
    let mut lock = mutex(server, "keys-of-turns");
    let held = lock.wants(1).ttl(ttl(5_000));
    lock.held(&held);
    let asks = line(&mut lock, 2..5);
    let mut before = held;
    for ask in asks {
        lock.release(&before.token());
        lock.granted(&ask.token());
        let there = lock.keys_there();
        assert!(there.iter().all(|(_, left)| *left > Some(ms(60_000))), "{there:?}");
        before = ask;
    }
    lock.release(&before.token());
    assert_eq!(lock.counts(), None);
}

fn l4_a_line_passes_over_who_is_silent(flavor: Flavor) {
    let server = Server::builder(flavor).fake_clock().start().expect("it is installed");
    let mut lock = mutex(&server, "silent-turns");
    let held = lock.wants(1).ttl(ttl(60_000));
    lock.held(&held);
    // The first and the fourth are silent for longer than they may be.
    let asks = line(&mut lock, 2..7);
    let live = [&asks[1], &asks[2], &asks[4]];
    for now in [6, 12, 18] {
        server.step_clock(now);
        live.iter().for_each(|ask| _ = lock.beat(&[ask.token()], &[]));
    }
    let mut channels: Vec<_> = [3, 4, 6].map(|n| lock.subscribe(&server, n)).into();
    let mut before = &held;
    for (at, ask) in live.iter().enumerate() {
        lock.release(&before.token());
        assert_eq!(channels[at].next(), Push::Look(vec![ask.sender.wake]));
        if let Some(behind) = live.get(at + 1) {
            let push = channels[at + 1].next();
            assert!(matches!(push, Push::LookIn(_, wakes) if wakes == [behind.sender.wake]));
        }
        lock.granted(&ask.token());
        before = ask;
    }
    lock.release(&before.token());
    assert_eq!(lock.counts(), None);
}

/// Nobody could beat, for all that the server knows.
fn l4_who_joins_a_line_after_a_gap_ends_no_wait(flavor: Flavor) {
    let server = Server::builder(flavor).fake_clock().start().expect("it is installed");
    let mut lock = mutex(&server, "gap-in-turns");
    let held = lock.wants(1).ttl(ttl(60_000));
    lock.held(&held);
    let asks = line(&mut lock, 2..4);
    server.step_clock(15);
    let last = lock.wants(5).ttl(ttl(60_000));
    assert_eq!(lock.queued(&last).0, 2);
    let mut before = &held;
    for ask in asks.iter().chain([&last]) {
        lock.release(&before.token());
        lock.granted(&ask.token());
        before = ask;
    }
    lock.release(&before.token());
    assert_eq!(lock.counts(), None);
}
