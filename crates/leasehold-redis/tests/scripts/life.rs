//! The life of grants, waiters and watchers through the scripts (rules Q, T, U, L, N5).

use std::time::Duration;

use leasehold_core::{
    Binding, Capacity, CapacityClaim, Confirmed, Destroyed, Extended, Generation, LockKind,
    Refusal, Rejection, Released, Remaining, Renewed, Share, Token, WatchFor,
};
use leasehold_redis::script::{AcquireReply, ConfirmReply, Extension, RebindReply, WatchReply};
use test_servers::Server;

use crate::{
    Test,
    store::{Store, client, ms, ttl},
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
    ("w5_a_rejection_is_told_once", w5_a_rejection_is_told_once),
    ("n5_destroy_ends_a_generation", n5_destroy_ends_a_generation),
    ("n2_another_capacity_is_refused_in_use", n2_another_capacity_is_refused_in_use),
];

pub(crate) fn mutex(server: &Server, name: &str) -> Store {
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
