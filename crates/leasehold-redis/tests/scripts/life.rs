//! The life of grants, waiters and watchers through the scripts (rules Q, T, U, L, N5).

use std::time::Duration;

use leasehold_core::{
    Binding, Capacity, CapacityClaim, Confirmed, Destroyed, Extended, Generation, LockKind,
    Refusal, Rejection, Released, Remaining, Renewed, Share, Token, WatchFor,
};
use leasehold_redis::script::{
    AcquireReply, ConfirmReply, Extension, Pulse, Push, RebindReply, WakeId, WatchReply,
};
use test_servers::Server;

use crate::{
    Test,
    store::{Store, attempt, client, ms, ttl},
};

pub(crate) const TESTS: &[Test] = &[
    ("q2_a_free_lock_is_granted_and_given_back", q2_a_free_lock_is_granted_and_given_back),
    ("q3_a_release_hands_over_in_the_same_step", q3_a_release_hands_over_in_the_same_step),
    ("q2_a_write_waits_for_the_reads_before_it", q2_a_write_waits_for_the_reads_before_it),
    ("q4_a_waiter_that_leaves_lets_in_whom_it_blocked", q4_a_waiter_that_leaves),
    ("q5_the_queue_has_a_limit", q5_the_queue_has_a_limit),
    ("t3_what_is_overdue_is_gone", t3_what_is_overdue_is_gone),
    ("q4_what_ends_together_loses_no_permit", q4_what_ends_together_loses_no_permit),
    ("t4_extend_shortens_and_revives_nothing", t4_extend_shortens_and_revives_nothing),
    ("t8_rebind_changes_client_and_ttl", t8_rebind_changes_client_and_ttl),
    ("l7_a_replay_finds_what_there_is", l7_a_replay_finds_what_there_is),
    ("l7_a_copy_after_the_end_comes_to_nothing", l7_a_copy_after_the_end_comes_to_nothing),
    ("l7_a_copy_that_the_client_knows_of_comes_to_nothing", l7_a_copy_that_the_client_knows_of),
    ("l10_a_claim_that_nobody_confirms_passes_on", l10_a_claim_that_nobody_confirms_passes_on),
    ("l8_fences_grow_beyond_a_clock_that_was_ahead", l8_fences_grow_beyond_the_clock),
    ("w5_a_rejection_is_told_once", w5_a_rejection_is_told_once),
    ("n5_destroy_ends_a_generation", n5_destroy_ends_a_generation),
    ("n2_another_capacity_is_refused_in_use", n2_another_capacity_is_refused_in_use),
    ("u1_watchers_complete_and_stay_done", u1_watchers_complete_and_stay_done),
    ("l5_pushes_name_the_one_concerned", l5_pushes_name_the_one_concerned),
    ("l5_who_times_the_expiry_is_told", l5_who_times_the_expiry_is_told),
    ("l4_the_beat_says_who_should_look", l4_the_beat_says_who_should_look),
    ("n4_inspect_shows_holders_and_waiters", n4_inspect_shows_holders_and_waiters),
    ("l5_everybody_is_forgotten_by_a_flush", l5_everybody_is_forgotten_by_a_flush),
];

fn mutex(server: &Server, name: &str) -> Store {
    Store::new(server, LockKind::Mutex, name, 1)
}

fn q2_a_free_lock_is_granted_and_given_back(server: &Server) {
    let mut lock = mutex(server, "free");
    assert_eq!(lock.counts(), None);
    assert!(lock.keys_there().is_empty(), "asking makes nothing");
    let ask = lock.wants(1).ttl(ttl(60_000));
    let grant = lock.held(&ask);
    assert_eq!(grant.remaining, Some(Duration::from_secs(60)));
    assert_eq!((grant.ttl, grant.generation), (Some(ttl(60_000)), Generation(0)));
    let other = lock.wants(2).try_only();
    let AcquireReply::Busy(obstacle) = lock.acquire(&other) else { panic!("it is held") };
    assert_eq!(obstacle.ahead, Some(0));
    assert_eq!(obstacle.holder.expect("it is known").0.label(), Some("label"));
    assert!(matches!(lock.renew(&ask.token()), Renewed::Held { remaining: Some(_) }));
    assert_eq!(lock.renew(&other.token()), Renewed::Unknown);
    assert_eq!(lock.release(&ask.token()), Released::Holder);
    assert_eq!(lock.release(&ask.token()), Released::Unknown);
    assert_eq!(lock.counts(), None);
    assert!(lock.held(&other).fencing > grant.fencing);
    assert_eq!(lock.remaining(&other.token()), Remaining::Never);
    assert_eq!(lock.release(&other.token()), Released::Holder);
}

fn q3_a_release_hands_over_in_the_same_step(server: &Server) {
    let mut lock = mutex(server, "hand-over");
    let asks: Vec<_> = (0..4).map(|n| lock.wants(n).ttl(ttl(60_000))).collect();
    let first = lock.held(&asks[0]);
    for (n, ask) in asks[1..].iter().enumerate() {
        let (ahead, waiting) = lock.queued(ask);
        assert_eq!((ahead, waiting.times), (n as u64, n == 0));
        assert!(waiting.next_expiry.is_some_and(|at| at > Duration::from_secs(50)));
    }
    let mut last = first.fencing;
    for pair in asks.windows(2) {
        assert_eq!(lock.release(&pair[0].token()), Released::Holder);
        let barging = lock.wants(9).try_only();
        assert!(matches!(lock.acquire(&barging), AcquireReply::Busy(_)));
        let claimed = lock.inspect().expect("in use").holders.remove(0);
        assert!(claimed.claimed && claimed.ttl_left <= Some(ms(2000)));
        let grant = lock.granted(&pair[1].token());
        assert!(grant.fencing > last && grant.remaining == Some(Duration::from_secs(60)));
        last = grant.fencing;
    }
    assert_eq!(lock.release(&asks[3].token()), Released::Holder);
    assert_eq!(lock.counts(), None);
}

fn q2_a_write_waits_for_the_reads_before_it(server: &Server) {
    let mut lock = Store::new(server, LockKind::RwLock, "reads", 1 << 29);
    let reads: Vec<_> = (0..3).map(|n| lock.wants(n)).collect();
    for read in &reads {
        lock.held(read);
    }
    let write = lock.wants(7).with(|ask| ask.request.share = Share::Whole);
    lock.queued(&write);
    let later: Vec<_> = (0..3).map(|n| lock.wants(n)).collect();
    for read in &later {
        lock.queued(read);
    }
    for read in &reads {
        lock.waits(&write.token());
        assert_eq!(lock.release(&read.token()), Released::Holder);
    }
    lock.granted(&write.token());
    assert!(lock.counts().expect("in use").whole);
    for read in &later {
        lock.waits(&read.token());
    }
    assert_eq!(lock.release(&write.token()), Released::Holder);
    for read in &later {
        lock.granted(&read.token());
    }
    assert_eq!(lock.counts().expect("in use").used, 3);
    later.iter().for_each(|read| assert_eq!(lock.release(&read.token()), Released::Holder));
    assert_eq!(lock.counts(), None);
}

fn q4_a_waiter_that_leaves(server: &Server) {
    let mut lock = Store::new(server, LockKind::Semaphore, "leaves", 3);
    let held = lock.wants(1).weight(2);
    lock.held(&held);
    let heavy = lock.wants(2).weight(3);
    lock.queued(&heavy);
    let light = lock.wants(3);
    assert_eq!(lock.queued(&light).0, 1);
    let Released::Waiter(Some(obstacle)) = lock.release(&heavy.token()) else {
        panic!("it waited")
    };
    assert_eq!(obstacle.ahead, Some(0));
    lock.granted(&light.token());
    assert_eq!(lock.confirm(&heavy.token()), ConfirmReply::Told(Confirmed::Unknown));
    let counts = lock.counts().expect("in use");
    assert_eq!((counts.used, counts.queued), (3, 0));
    for ask in [held, light] {
        assert_eq!(lock.release(&ask.token()), Released::Holder);
    }
    assert_eq!(lock.counts(), None);
}

fn q5_the_queue_has_a_limit(server: &Server) {
    let mut lock = mutex(server, "limit");
    let held = lock.wants(1);
    lock.held(&held);
    let mut limited = || lock.wants(2).with(|ask| ask.request.queue_limit = 2);
    let asks = [limited(), limited(), limited()];
    lock.queued(&asks[0]);
    lock.queued(&asks[1]);
    assert_eq!(lock.refused(&asks[2]), Refusal::QueueFull { limit: 2 });
    let heavy = lock.wants(3).weight(2);
    assert_eq!(lock.refused(&heavy), Refusal::TooHeavy { capacity: Capacity::ONE });
    lock.release(&asks[0].token());
    lock.queued(&asks[2]);
}

fn t3_what_is_overdue_is_gone(server: &Server) {
    let mut lock = Store::new(server, LockKind::Semaphore, "overdue", 3);
    let short: Vec<_> = (0..3).map(|n| lock.wants(n).ttl(ttl(30))).collect();
    for ask in &short {
        lock.held(ask);
    }
    let waiter = lock.wants(5).weight(3).ttl(ttl(60_000));
    let (_, waiting) = lock.queued(&waiter);
    // sleep: the TTL of real grants on a real clock
    std::thread::sleep(waiting.next_expiry.expect("they have a TTL") + ms(35));
    assert_eq!(lock.release(&short[0].token()), Released::Unknown);
    assert_eq!(lock.renew(&short[1].token()), Renewed::Unknown);
    assert_eq!(lock.remaining(&short[2].token()), Remaining::Gone);
    lock.granted(&waiter.token());
    assert_eq!(lock.release(&waiter.token()), Released::Holder);
    // And alone.
    let alone = lock.wants(1).weight(2).ttl(ttl(5));
    lock.held(&alone);
    // sleep: the TTL of a real grant on a real clock
    std::thread::sleep(ms(10));
    assert_eq!(lock.extend(&alone.token(), Some(ttl(60_000))), Extended::Gone);
    assert_eq!(lock.counts(), None);
    let next = lock.wants(2).weight(3);
    lock.held(&next);
    lock.release(&next.token());
}

/// A grant that stands alone and a tombstone beside it run out before anybody looks: whoever is let in by
/// the end of the one is not forgotten over that of the other.
fn q4_what_ends_together_loses_no_permit(server: &Server) {
    let mut lock = Store::new(server, LockKind::Semaphore, "together", 2);
    let whole = lock.wants(1).weight(2).ttl(ttl(900));
    lock.held(&whole);
    let waiters = [lock.wants(2).ttl(ttl(60_000)), lock.wants(3).ttl(ttl(60_000))];
    for waiter in &waiters {
        lock.queued(waiter);
    }
    let (unsent, until) = (lock.wants(4), lock.time().after(ms(50)));
    assert_eq!(lock.abandon(&unsent, until), Released::Unknown);
    // sleep: the TTL of a real grant on a real clock; tombstones go second by second.
    std::thread::sleep(ms(1_200));
    for waiter in &waiters {
        lock.granted(&waiter.token());
    }
    for waiter in &waiters {
        assert_eq!(lock.release(&waiter.token()), Released::Holder);
    }
    let next = lock.wants(5).weight(2);
    lock.held(&next);
    assert_eq!(lock.release(&next.token()), Released::Holder);
    assert_eq!(lock.counts(), None);
}

fn t4_extend_shortens_and_revives_nothing(server: &Server) {
    let mut lock = mutex(server, "extend");
    let ask = lock.wants(1);
    lock.held(&ask);
    assert_eq!(lock.extend(&ask.token(), Some(ttl(60_000))), Extended::Held);
    let Remaining::Left(left) = lock.remaining(&ask.token()) else { panic!("it has a TTL now") };
    assert!(left > ms(50_000));
    assert_eq!(lock.extend(&ask.token(), Some(ttl(20_000))), Extended::Held);
    let Renewed::Held { remaining: Some(left) } = lock.renew(&ask.token()) else {
        panic!("it is held")
    };
    assert!(left <= ms(20_000), "later renewals use what was set");
    assert_eq!(lock.extend(&ask.token(), None), Extended::Held);
    assert_eq!(lock.remaining(&ask.token()), Remaining::Never);
    lock.release(&ask.token());
    assert_eq!(lock.extend(&ask.token(), None), Extended::Gone);
}

fn t8_rebind_changes_client_and_ttl(server: &Server) {
    let mut lock = mutex(server, "rebind");
    let ask = lock.wants(1);
    let grant = lock.held(&ask);
    let to = |binding, ttl| Extension { binding, client: client(2), ttl };
    assert_eq!(lock.rebind(&ask.token(), to(Binding::Token, None)), RebindReply::NeedsTtl);
    let bound = lock.rebind(&ask.token(), to(Binding::Token, Some(ttl(9_000))));
    let RebindReply::Bound(bound) = bound else { panic!("it is held: {bound:?}") };
    assert_eq!((bound.fencing, bound.ttl), (grant.fencing, Some(ttl(9_000))));
    assert_eq!(lock.extend(&ask.token(), None), Extended::NeedsTtl);
    assert_eq!(lock.inspect().expect("in use").holders[0].binding, Binding::Token);
    assert!(matches!(
        lock.rebind(&ask.token(), to(Binding::Client, None)),
        RebindReply::Bound(grant) if grant.ttl == Some(ttl(9_000))
    ));
    assert_eq!(lock.inspect().expect("in use").holders[0].binding, Binding::Client);
    lock.release(&ask.token());
    assert_eq!(lock.rebind(&ask.token(), to(Binding::Client, None)), RebindReply::Gone);
}

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

fn w5_a_rejection_is_told_once(server: &Server) {
    let mut lock = mutex(server, "rejected");
    assert_eq!(lock.cancel_all("nobody"), 0);
    let held = lock.wants(1);
    lock.held(&held);
    let asks: Vec<_> = (0..5).map(|n| lock.wants(n)).collect();
    for ask in &asks {
        lock.queued(ask);
    }
    assert_eq!(lock.cancel_all("draining\n"), 5);
    assert_eq!(lock.counts().map(|counts| (counts.used, counts.queued)), Some((1, 0)));
    let reason = "draining\n".to_owned();
    for ask in &asks {
        let told = ConfirmReply::Told(Confirmed::Rejected(Rejection::Cancelled {
            reason: reason.clone(),
        }));
        assert_eq!(lock.confirm(&ask.token()), told);
        assert_eq!(lock.confirm(&ask.token()), ConfirmReply::Told(Confirmed::Unknown));
    }
    lock.release(&held.token());
    let next = lock.wants(2);
    lock.held(&next);
    lock.release(&next.token());
}

fn n5_destroy_ends_a_generation(server: &Server) {
    let mut lock = Store::new(server, LockKind::Semaphore, "destroyed", 2);
    let asks: Vec<_> = (0..4).map(|n| lock.wants(n)).collect();
    let old = lock.held(&asks[0]);
    lock.held(&asks[1]);
    lock.queued(&asks[2]);
    lock.queued(&asks[3]);
    lock.release(&asks[0].token());
    let id = Token::random();
    assert!(matches!(lock.watch(&id, WatchFor::Destroyed, None), WatchReply::Waiting(_)));
    assert_eq!(lock.destroy(None, "gone"), Destroyed::Now { next: Generation(1) });
    assert_eq!(lock.destroy(Some(Generation(0)), "again"), Destroyed::Before);
    assert_eq!(lock.watch(&id, WatchFor::Destroyed, None), WatchReply::Done);
    let old_watch = lock.watch(&Token::random(), WatchFor::Unlocked, Some(Generation(0)));
    assert_eq!(old_watch, WatchReply::Destroyed);
    for (n, ask) in asks.iter().enumerate() {
        assert_eq!(lock.renew(&ask.token()), Renewed::Unknown);
        match lock.confirm(&ask.token()) {
            ConfirmReply::Told(Confirmed::Unknown) if n < 2 => {}
            ConfirmReply::Told(Confirmed::Rejected(Rejection::Destroyed { reason })) if n >= 2 => {
                assert_eq!(reason, "gone");
            }
            other => panic!("waiter {n} is told {other:?}"),
        }
    }
    assert_eq!(lock.counts(), None);
    let of_old = lock.wants(1).with(|ask| ask.request.generation = Some(Generation(0)));
    assert_eq!(lock.refused(&of_old), Refusal::Destroyed);
    let kept = lock.keys_there();
    assert!(kept[0].1.is_some_and(|left| left > Duration::from_secs(590)), "{kept:?}");
    assert!(kept[1..].iter().all(|(_, left)| left.is_some_and(|left| left < ms(60_000))));
    lock.capacity = 5;
    let new = lock.wants(1).weight(5);
    let grant = lock.held(&new);
    assert!(grant.fencing > old.fencing && grant.generation == Generation(1));
    assert_eq!(lock.refused(&of_old), Refusal::Destroyed);
    assert_eq!(lock.destroy(Some(Generation(1)), "x"), Destroyed::Now { next: Generation(2) });
}

fn n2_another_capacity_is_refused_in_use(server: &Server) {
    let mut lock = Store::new(server, LockKind::Semaphore, "capacity", 4);
    let registered = Capacity::new(4).expect("a capacity");
    let held = lock.wants(1);
    lock.held(&held);
    let three = Capacity::new(3).expect("a capacity");
    let other = |ask: &mut crate::store::Ask| {
        ask.request.capacity = CapacityClaim::Exactly(three);
    };
    let exact = lock.wants(2).with(other);
    assert_eq!(lock.refused(&exact), Refusal::ConfigMismatch { registered });
    let busy = exact.clone().try_only().weight(3);
    assert_eq!(lock.refused(&busy), Refusal::ConfigMismatch { registered });
    let any = lock.wants(3).with(|ask| {
        ask.request.capacity = CapacityClaim::Registered { otherwise: three };
        ask.request.share = Share::Whole;
    });
    lock.queued(&any);
    lock.release(&held.token());
    assert_eq!(lock.granted(&any.token()).capacity, registered);
    assert_eq!(lock.inspect().expect("in use").used, 4);
    lock.release(&any.token());
    assert_eq!(lock.held(&exact).capacity, three);
    lock.release(&exact.token());
}

fn u1_watchers_complete_and_stay_done(server: &Server) {
    let mut lock = Store::new(server, LockKind::Semaphore, "watched", 2);
    let ids: Vec<_> = (0..4).map(|_| Token::random()).collect();
    let kinds = [WatchFor::Unlocked, WatchFor::AnyPermit, WatchFor::Readable, WatchFor::Destroyed];
    assert_eq!(lock.watch(&ids[0], WatchFor::Unlocked, None), WatchReply::Done);
    let held = [lock.wants(1), lock.wants(2)];
    for ask in &held {
        lock.held(ask);
    }
    let waits = |store: &mut Store, n: usize| {
        matches!(store.watch(&ids[n], kinds[n], None), WatchReply::Waiting(_))
    };
    (0..4).for_each(|n| assert!(waits(&mut lock, n)));
    let heavy = lock.wants(3).weight(2);
    lock.queued(&heavy);
    lock.release(&held[0].token());
    // A permit is free, but somebody is queued and somebody holds.
    assert_eq!([0, 1, 2, 3].map(|n| waits(&mut lock, n)), [true, false, true, true]);
    lock.release(&held[1].token());
    // A hand-over makes nothing free.
    lock.granted(&heavy.token());
    assert_eq!([0, 2, 3].map(|n| waits(&mut lock, n)), [true, true, true]);
    lock.release(&heavy.token());
    let next = lock.wants(4).weight(2);
    lock.held(&next);
    assert_eq!([0, 2, 3].map(|n| waits(&mut lock, n)), [false, false, true]);
    lock.unwatch(&ids[3]);
    lock.release(&next.token());
    assert_eq!(lock.counts(), None);
}

fn l5_pushes_name_the_one_concerned(server: &Server) {
    let mut lock = mutex(server, "pushes");
    let (mut one, mut two) = (lock.subscribe(server, 41), lock.subscribe(server, 42));
    let held = lock.wants(40);
    lock.held(&held);
    let asks = [lock.wants(41), lock.wants(42), lock.wants(42), lock.wants(41)];
    for ask in &asks {
        lock.queued(ask);
    }
    lock.release(&held.token());
    assert_eq!(one.next(), Push::Look(vec![asks[0].sender.wake]));
    // The new head is to time the claim.
    assert!(matches!(two.next(), Push::LookIn(at, wakes)
        if at <= ms(2000) && wakes == [asks[1].sender.wake]));
    lock.cancel_all("all");
    assert_eq!(two.next(), Push::Look(vec![asks[1].sender.wake, asks[2].sender.wake]));
    assert_eq!(one.next(), Push::Look(vec![asks[3].sender.wake]));
    // Whoever is released by its token elsewhere still waits here.
    let waiter = lock.wants(41);
    lock.queued(&waiter);
    assert!(matches!(lock.release(&waiter.token()), Released::Waiter(_)));
    assert_eq!(one.next(), Push::Look(vec![waiter.sender.wake]));
    let id = Token::random();
    assert!(matches!(lock.watch(&id, WatchFor::Unlocked, None), WatchReply::Waiting(_)));
    let mut nine = lock.subscribe(server, 9);
    lock.granted(&asks[0].token());
    lock.release(&asks[0].token());
    assert!(matches!(nine.next(), Push::Look(wakes) if wakes.len() == 1 && wakes[0] > WakeId(5)));
}

fn l5_who_times_the_expiry_is_told(server: &Server) {
    let mut lock = mutex(server, "timed");
    let mut channel = lock.subscribe(server, 51);
    let held = lock.wants(50).ttl(ttl(60_000));
    lock.held(&held);
    let (head, behind) = (lock.wants(51), lock.wants(51));
    assert!(lock.queued(&head).1.times);
    assert!(!lock.queued(&behind).1.times);
    // Sooner than the head was told.
    lock.extend(&held.token(), Some(ttl(9_000)));
    assert!(matches!(channel.next(), Push::LookIn(at, wakes)
        if at > ms(5000) && at <= ms(9000) && wakes == [head.sender.wake]));
    // Later: it looks at the old time and is told the new one.
    lock.extend(&held.token(), Some(ttl(90_000)));
    let waiting = lock.beat(&[behind.token(), head.token()], &[]).waiting;
    assert!(waiting.times && waiting.next_expiry > Some(ms(80_000)));
    assert!(!lock.beat(&[behind.token()], &[]).waiting.times);
    // Another head.
    lock.release(&head.token());
    assert_eq!(channel.next(), Push::Look(vec![head.sender.wake]));
    assert!(matches!(channel.next(), Push::LookIn(at, wakes)
        if at > ms(80_000) && wakes == [behind.sender.wake]));
    assert!(lock.waits(&behind.token()).times);
    lock.release(&behind.token());
    lock.release(&held.token());
}

fn l4_the_beat_says_who_should_look(server: &Server) {
    let mut lock = mutex(server, "beats");
    let held = lock.wants(1);
    lock.held(&held);
    let asks = [lock.wants(2), lock.wants(3)];
    for ask in &asks {
        lock.queued(ask);
    }
    let (id, unknown) = (Token::random(), Token::random());
    assert!(matches!(lock.watch(&id, WatchFor::Unlocked, None), WatchReply::Waiting(_)));
    let tokens = [asks[0].token(), asks[1].token(), unknown.clone(), held.token()];
    let beat = lock.beat(&tokens, &[id.clone(), unknown.clone()]);
    use Pulse::{Look, Waits};
    assert_eq!(beat.pulses, [Waits, Waits, Look, Look, Waits, Look]);
    assert!(beat.waiting.pushed && beat.waiting.times);
    lock.release(&held.token());
    assert_eq!(lock.beat(&tokens, &[]).pulses, [Look, Waits, Look, Look]);
    lock.cancel_all("beats");
    lock.release(&asks[0].token());
    assert_eq!(lock.beat(&tokens, &[id]).pulses, [Look; 5]);
}

fn n4_inspect_shows_holders_and_waiters(server: &Server) {
    let mut lock = Store::new(server, LockKind::RwLock, "{inspect}/🔒\n", 8);
    assert!(lock.inspect().is_none());
    let reads: Vec<_> = (0..3).map(|n| lock.wants(n).ttl(ttl(50_000 - n * 1000))).collect();
    for read in &reads {
        lock.held(read);
    }
    let write = lock.wants(4).with(|ask| ask.request.share = Share::Whole);
    lock.queued(&write);
    let read = lock.wants(5).weight(2);
    lock.queued(&read);
    let state = lock.inspect().expect("in use");
    assert_eq!(state.lock, *lock.id);
    assert_eq!((state.capacity.get(), state.used, state.free()), (8, 3, 5));
    let ids = |asks: &[crate::store::Ask]| {
        asks.iter().map(|ask| ask.token().short_id()).collect::<Vec<_>>()
    };
    let holders: Vec<_> = state.holders.iter().map(|holder| holder.short_id.clone()).collect();
    assert_eq!(holders, ids(&reads), "in the order of their grants");
    assert!(state.holders.iter().all(|holder| holder.ttl_left > Some(ms(40_000))
        && holder.info.pid() == 7
        && holder.info.host() == "host"
        && !holder.claimed));
    let waiters: Vec<_> = state.waiters.iter().map(|waiter| waiter.short_id.clone()).collect();
    assert_eq!(waiters, ids(&[write.clone(), read.clone()]));
    assert_eq!(state.waiters[0].share, Share::Whole);
    assert!(matches!(state.waiters[1].share, Share::Permits(weight) if weight.get() == 2));
}

fn l5_everybody_is_forgotten_by_a_flush(server: &Server) {
    let mut lock = mutex(server, "flushed");
    let asks = [lock.wants(1), lock.wants(2), lock.wants(3)];
    lock.held(&asks[0]);
    for ask in &asks[1..] {
        lock.queued(ask);
    }
    for key in lock.keys.all().map(str::to_owned).collect::<Vec<_>>() {
        lock.command(&["DEL", &key]);
    }
    assert_eq!(lock.beat(&[asks[1].token()], &[]).pulses, [Pulse::Look]);
    for ask in &asks {
        assert_eq!(lock.confirm(&ask.token()), ConfirmReply::Told(Confirmed::Unknown));
        assert_eq!(lock.renew(&ask.token()), Renewed::Unknown);
        assert_eq!(lock.release(&ask.token()), Released::Unknown);
    }
    assert!(lock.keys_there().is_empty());
    // Half of it was lost: what is left of the old life is not mixed with the new one.
    lock.held(&asks[0]);
    for ask in &asks[1..] {
        lock.queued(ask);
    }
    let state = lock.keys.state().to_owned();
    lock.command(&["DEL", &state]);
    let again = [lock.wants(1), lock.wants(2)];
    lock.held(&again[0]);
    assert_eq!(lock.queued(&again[1]).0, 0);
    lock.release(&again[0].token());
    lock.granted(&again[1].token());
    lock.release(&again[1].token());
    assert_eq!(lock.counts(), None);
}
