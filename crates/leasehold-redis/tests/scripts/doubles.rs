//! Requests that come twice, claims, and fencing tokens.

use std::time::Duration;

use leasehold_core::{Confirmed, Refusal, Released};
use leasehold_redis::script::{AcquireReply, ConfirmReply, Pulse};
use test_servers::Server;

use crate::{
    Test,
    life::mutex,
    store::{Store, attempt, ms, ttl},
};

pub(crate) const TESTS: &[Test] = &[
    ("l7_a_replay_finds_what_there_is", l7_a_replay_finds_what_there_is),
    ("l7_a_copy_after_the_end_comes_to_nothing", l7_a_copy_after_the_end_comes_to_nothing),
    ("l7_a_copy_that_the_client_knows_of_comes_to_nothing", l7_a_copy_that_the_client_knows_of),
    ("l7_an_end_is_remembered_for_as_long_as_copies_may_come", l7_an_end_is_remembered),
    ("l10_a_claim_that_nobody_confirms_passes_on", l10_a_claim_that_nobody_confirms_passes_on),
    ("l8_fences_grow_beyond_a_clock_that_was_ahead", l8_fences_grow_beyond_the_clock),
];

fn l7_a_replay_finds_what_there_is(server: &Server) {
    let mut lock = mutex(server, "replay");
    let holder = lock.wants(1).ttl(ttl(60_000));
    let grant = lock.held(&holder);
    assert_eq!(lock.held(&holder).fencing, grant.fencing);
    let other = holder.clone().with(|ask| ask.request.attempt = attempt(5));
    assert_eq!(lock.refused(&other), Refusal::TokenInUse);
    let waiter = lock.wants(2).ttl(ttl(60_000));
    let behind = lock.wants(3);
    lock.queued(&waiter);
    lock.queued(&behind);
    assert_eq!(lock.queued(&behind).0, 1);
    assert_eq!(lock.queued(&waiter).0, 0);
    let other = waiter.clone().with(|ask| ask.request.attempt = attempt(6));
    assert_eq!(lock.refused(&other), Refusal::TokenInUse);
    lock.release(&holder.token());
    // A replay that finds a claim confirms it.
    assert!(lock.held(&waiter).remaining > Some(ms(50_000)));
    assert_eq!(lock.counts().map(|counts| (counts.used, counts.queued)), Some((1, 1)));
    lock.cancel_all("no more");
    let (_, waiting) = lock.queued(&behind);
    assert!(waiting.times && waiting.next_expiry.is_some());
    let told = lock.confirm(&behind.token());
    assert!(matches!(told, ConfirmReply::Told(Confirmed::Rejected(_))), "{told:?}");
    let now = lock.time();
    let stale = lock.wants(4).with(|ask| ask.sender.not_after = Some(now));
    assert_eq!(lock.refused(&stale), Refusal::Stale);
}

/// However its first copy ended, a later one of the same attempt comes to nothing: within the time of
/// its request, however many of them there were and however they went.
fn l7_a_copy_after_the_end_comes_to_nothing(server: &Server) {
    let mut lock = mutex(server, "copies");
    let (until, mut stamp) = (lock.time().after(Duration::from_secs(60)), lock.time());
    let mut sent = |lock: &mut Store, n| {
        stamp = stamp.after(Duration::from_micros(1));
        lock.wants(n).ttl(ttl(60_000)).with(|ask| {
            (ask.sender.not_after, ask.sender.stamp) = (Some(until), Some(stamp));
        })
    };
    let mut over = Vec::new();
    let [held, left, rejected, lapsed] = [1, 2, 3, 4].map(|n| sent(&mut lock, n));
    lock.held(&held);
    lock.queued(&left);
    lock.release(&left.token());
    lock.queued(&rejected);
    lock.cancel_all("over");
    lock.confirm(&rejected.token());
    lock.release(&held.token());
    lock.held(&lapsed.clone().ttl(ttl(1)));
    // sleep: a TTL of 1 ms on a real clock
    std::thread::sleep(ms(5));
    over.extend([held, left, rejected, lapsed]);
    for n in 0..200 {
        let ask = sent(&mut lock, n);
        lock.held(&ask);
        // Some by the long way, in which others wait.
        let behind = (n % 10 == 0).then(|| sent(&mut lock, n));
        behind.iter().for_each(|behind| _ = lock.queued(behind));
        lock.release(&ask.token());
        behind.iter().for_each(|behind| _ = lock.release(&behind.token()));
        over.extend([ask].into_iter().chain(behind));
    }
    assert_eq!(lock.counts(), None);
    let last = over.last().expect("many").sender.stamp.expect("it has one");
    for ask in &over {
        let answer = lock.acquire(ask);
        let is_none = answer == AcquireReply::Ended || answer == AcquireReply::Overtaken(last);
        assert!(is_none, "{answer:?}");
    }
    assert_eq!(lock.acquire(over.last().expect("many")), AcquireReply::Ended);
    // The same with somebody inside, and with somebody who waits.
    let inside = sent(&mut lock, 1);
    lock.held(&inside);
    let behind = sent(&mut lock, 2);
    for queued in 0..=1 {
        for ask in [&over[0], &over[100]] {
            assert_eq!(lock.acquire(ask), AcquireReply::Overtaken(last));
        }
        assert_eq!(lock.counts().map(|counts| counts.queued), Some(queued));
        if queued == 0 {
            lock.queued(&behind);
        }
    }
    // Who is there is found, whatever has ended since.
    lock.release(&inside.token());
    lock.held(&behind);
    lock.held(&behind);
    lock.release(&behind.token());
    // A request that was slower than all that is sent anew.
    let again = sent(&mut lock, 3);
    let slow = again.clone().with(|ask| ask.sender.stamp = Some(last));
    assert!(matches!(lock.acquire(&slow), AcquireReply::Overtaken(by) if by > last));
    lock.held(&again);
    lock.release(&again.token());
    assert_eq!(lock.counts(), None);
}

/// Also while others wait, and when what else is known of the lock has run out in the server.
fn l7_an_end_is_remembered(server: &Server) {
    const LONG: Duration = Duration::from_secs(600);
    for (name, waiters) in [("alone", 0), ("with-one", 1), ("with-two", 2), ("with-three", 3)] {
        let mut lock = mutex(server, name);
        let until = lock.time().after(LONG);
        let sent = |lock: &mut Store, n| {
            let stamp = lock.time();
            lock.wants(n).ttl(ttl(100)).with(|ask| {
                (ask.sender.not_after, ask.sender.stamp) = (Some(until), Some(stamp));
            })
        };
        let first = sent(&mut lock, 1);
        lock.held(&first);
        let behind: Vec<_> = (0..waiters).map(|n| sent(&mut lock, n + 2)).collect();
        behind.iter().for_each(|ask| _ = lock.queued(ask));
        assert_eq!(lock.release(&first.token()), Released::Holder);
        if let Some(next) = behind.first() {
            lock.granted(&next.token());
        }
        let (state, kept) = lock.keys_there().remove(0);
        assert_eq!(state, "");
        assert!(kept.is_none_or(|kept| kept >= LONG - ms(5_000)), "{name}: only {kept:?}");

        // The other keys run out sooner.
        let others: Vec<_> =
            lock.keys_there().into_iter().skip(1).map(|(suffix, _)| suffix).collect();
        for suffix in others {
            let key = lock.key(&suffix);
            lock.command(&["DEL", &key]);
        }
        // sleep: a TTL of 100 ms on a real clock
        std::thread::sleep(ms(150));
        let answer = lock.acquire(&first);
        let is_none = matches!(answer, AcquireReply::Ended | AcquireReply::Overtaken(_));
        assert!(is_none, "{name}: {answer:?}");
        let next = sent(&mut lock, 9);
        lock.held(&next);
        assert_eq!(lock.release(&next.token()), Released::Holder);
    }
}

/// Where the client knows that there are copies, whatever they are stamped with.
fn l7_a_copy_that_the_client_knows_of(server: &Server) {
    let mut lock = mutex(server, "known-copies");
    let until = lock.time().after(Duration::from_secs(60));
    let asks: Vec<_> = (0..40).map(|n| lock.wants(n).ttl(ttl(60_000))).collect();
    for ask in &asks {
        lock.held(ask);
        assert_eq!(lock.abandon(ask, until), Released::Holder);
    }
    for ask in &asks {
        assert_eq!(lock.acquire(ask), AcquireReply::Ended);
        // The token itself is not spent.
        let again = ask.clone().with(|ask| ask.request.attempt.0 ^= 1);
        lock.held(&again);
        assert_eq!(lock.release(&again.token()), Released::Holder);
    }
    // The drop overtakes the request.
    let unsent = lock.wants(4);
    let until = lock.time().after(Duration::from_secs(60));
    assert_eq!(lock.abandon(&unsent, until), Released::Unknown);
    assert_eq!(lock.acquire(&unsent), AcquireReply::Ended);
    assert_eq!(lock.counts(), None);
}

fn l10_a_claim_that_nobody_confirms_passes_on(server: &Server) {
    let mut lock = mutex(server, "claims");
    let asks: Vec<_> = (0..3).map(|n| lock.wants(n)).collect();
    lock.held(&asks[0]);
    for ask in &asks[1..] {
        lock.queued(&ask.clone().with(|ask| ask.sender.claim = ms(30)));
    }
    lock.release(&asks[0].token());
    // sleep: a claim of 30 ms on a real clock
    std::thread::sleep(ms(40));
    assert!(matches!(lock.beat(&[asks[2].token()], &[]).pulses[..], [Pulse::Look]));
    assert_eq!(lock.granted(&asks[2].token()).remaining, None);
    assert_eq!(lock.confirm(&asks[1].token()), ConfirmReply::Told(Confirmed::Unknown));
    lock.release(&asks[2].token());
}

/// The last fence is ahead of the clock, as it is after the clock was set back.
fn l8_fences_grow_beyond_the_clock(server: &Server) {
    let mut lock = mutex(server, "fences");
    let ask = lock.wants(1);
    let mut last = lock.held(&ask).fencing.0;
    lock.release(&ask.token());
    // An hour ahead, where S keeps it: bytes 10 to 17.
    let state: Vec<u8> =
        redis::cmd("GET").arg(lock.keys.state()).query(&mut lock.connection).expect("it is there");
    let ahead = (last + 3_600_000_000) as f64;
    let state = [&state[..9], &ahead.to_be_bytes(), &state[17..]].concat();
    let set: Result<(), _> =
        redis::cmd("SET").arg(lock.keys.state()).arg(state).query(&mut lock.connection);
    set.expect("it is set");
    last += 3_600_000_000;
    for n in 0..3 {
        let (first, second) = (lock.wants(n), lock.wants(n));
        assert_eq!(lock.held(&first).fencing.0, last + 1);
        lock.queued(&second);
        lock.release(&first.token());
        assert_eq!(lock.granted(&second.token()).fencing.0, last + 2);
        lock.release(&second.token());
        last += 2;
        let kept = lock.keys_there()[0].1.expect("it is idle");
        assert!(kept > Duration::from_secs(3590), "it is kept until the clock is there: {kept:?}");
    }
}
