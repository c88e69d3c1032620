//! What a store tells about its locks, and that it forgets what nobody uses (rules N4, L4, K3's
//! sense for names).

use leasehold_core::{Binding, Refusal, Share, Weight};

use crate::{
    Bench,
    bench::{Held, Lock, capacity_of},
    case::theme,
};

theme! {
    Nothing, "N4", n4_inspect_tells_holders_in_the_order_of_their_grants;
    Nothing, "N4", n4_inspect_tells_waiters_in_the_order_of_the_queue;
    Nothing, "N4, L10", n4_inspect_tells_claims_from_grants;
    Nothing, "N4, acceptance G10", n4_counts_agree_with_inspect;
    Nothing, "N4", n4_survey_lists_by_namespace_name_and_kind;
    Nothing, "N4, T3", n4_reports_count_nothing_that_is_overdue;
    Nothing, "N4", n4_nobody_uses_a_lock_that_was_never_used;
    Nothing, "L7, T5, N2, N5, Q5", l7_refusals_come_in_one_order;
    Nothing, "L1", l1_clients_have_distinct_ids_and_one_clock;
    Nothing, "Q6", q6_a_thousand_names_leave_nothing;
    Nothing, "L4", l4_clients_come_and_go;
}

fn n4_inspect_tells_holders_in_the_order_of_their_grants(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.semaphore("holders", 9));
    let first = a.acquire(&lock).weight(3).label("first").held();
    let second = b.acquire(&lock).detached().ttl(bench.steps(90)).label("second").held();
    let third = a.acquire(&lock).held();
    let state = b.inspect(&lock);
    assert_eq!((&state.lock, state.used, state.free()), (&*lock.id, 5, 4));
    let ids: Vec<_> = state.holders.iter().map(|holder| holder.short_id.clone()).collect();
    assert_eq!(ids, [&first, &second, &third].map(|held| held.token().short_id()));
    let labels: Vec<_> = state.holders.iter().map(|holder| holder.info.label()).collect();
    assert_eq!(labels, [Some("first"), Some("second"), None]);
    assert_eq!(state.holders[0].share, Share::Permits(Weight::new(3).expect("valid")));
    assert_eq!(state.holders[0].fencing, first.fencing());
    let bindings: Vec<_> = state.holders.iter().map(|holder| holder.binding).collect();
    assert_eq!(bindings, [Binding::Client, Binding::Token, Binding::Client]);
    assert!(state.holders[1].ttl_left.is_some_and(|left| left <= bench.steps(90)));
    assert_eq!(state.holders[2].ttl_left, None);
}

fn n4_inspect_tells_waiters_in_the_order_of_the_queue(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.rw_lock("waiters", 9));
    let _held = a.acquire(&lock).whole().held();
    let waiters = [
        b.acquire(&lock).label("read").queued(),
        a.acquire(&lock).whole().label("write").queued(),
        b.acquire(&lock).queued(),
    ];
    bench.pass(2);
    let state = a.inspect(&lock);
    assert_eq!(state.holders[0].share, Share::Whole);
    assert!(state.holders[0].held_for >= bench.steps(2));
    let ids: Vec<_> = state.waiters.iter().map(|waiter| waiter.short_id.clone()).collect();
    assert_eq!(ids, waiters.map(|waiter| waiter.token().short_id()));
    let shares: Vec<_> = state.waiters.iter().map(|waiter| waiter.share).collect();
    assert_eq!(shares, [Share::ONE, Share::Whole, Share::ONE]);
    assert_eq!(state.waiters[1].info.label(), Some("write"));
    assert!(state.waiters.iter().all(|waiter| waiter.waited_for >= bench.steps(2)));
}

fn n4_inspect_tells_claims_from_grants(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.mutex("claims"));
    let held = a.acquire(&lock).held();
    assert!(!a.inspect(&lock).holders[0].claimed, "granted on arrival");
    let waiter = a.acquire(&lock).queued();
    held.release();
    assert!(a.inspect(&lock).holders[0].claimed, "granted after a wait, not confirmed");
    let _held = waiter.granted();
    assert!(!a.inspect(&lock).holders[0].claimed);
}

fn n4_counts_agree_with_inspect(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.rw_lock("counts", 6));
    let _reads = [a.acquire(&lock).held(), b.acquire(&lock).held()];
    let _waiters = [a.acquire(&lock).whole().queued(), b.acquire(&lock).queued()];
    for client in [&a, &b] {
        let (counts, state) = (client.counts(&lock), client.inspect(&lock));
        assert_eq!(counts.capacity, state.capacity);
        assert_eq!(counts.used, state.used);
        assert_eq!(counts.queued, state.waiters.len() as u64);
        assert_eq!(counts.generation, state.generation);
        assert_eq!((counts.used, counts.queued, counts.whole), (2, 2, false));
    }
}

fn n4_survey_lists_by_namespace_name_and_kind(bench: &Bench) {
    use leasehold_core::LockKind::{Mutex, RwLock, Semaphore};
    let (a, b) = (bench.client(), bench.client());
    let places = [
        ("b", "a", Mutex),
        ("a", "b", RwLock),
        ("a", "b", Mutex),
        ("a", "a", Semaphore),
        ("a", "b", Semaphore),
    ];
    let locks = places.map(|(space, name, kind)| Lock::new(space, kind, name, 1));
    let held: Vec<_> = locks.iter().map(|lock| a.acquire(lock).held()).collect();
    let _waiter = b.acquire(&locks[0]).queued();
    let survey = b.survey(None);
    let order: Vec<_> = survey.iter().map(|state| &state.lock).collect();
    assert_eq!(order, [3, 2, 4, 1, 0].map(|place: usize| &*locks[place].id));
    assert_eq!(survey[4].waiters.len(), 1);
    assert_eq!(b.survey(Some("a")).len(), 4);
    held[3].release();
    assert_eq!(b.survey(Some("a")).len(), 3);
}

fn n4_reports_count_nothing_that_is_overdue(bench: &Bench) {
    let (a, lock, other) = (bench.client(), bench.mutex("overdue"), bench.mutex("other"));
    let _held = [&lock, &other].map(|lock| a.acquire(lock).ttl(bench.steps(1)).held());
    bench.pass(2);
    assert!(a.survey(None).is_empty(), "an overdue grant is gone, whether or not a timer fired");
    assert_eq!(a.counts_if_used(&lock), None);
    assert_eq!(a.used_and_queued(&other), (0, 0));
}

fn n4_nobody_uses_a_lock_that_was_never_used(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.mutex("never"));
    assert_eq!(a.counts_if_used(&lock), None);
    a.assert_empty();
    assert_eq!(a.cancel_all(&lock, "nobody"), 0);
    a.assert_empty();
}

/// What is wrong first is told first, so that all stores say the same.
fn l7_refusals_come_in_one_order(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.semaphore("order", 2));
    let old = a.acquire(&lock).held().grant().generation;
    a.destroy(&lock, Some(old), "next");
    let held = a.acquire(&lock).weight(2).held();
    // Wrong in every way; one thing after the other is put right.
    let past = a.store_time();
    bench.pass(1);
    let wrong = a.acquire(&lock.claiming(3)).weight(4).queue_limit(0);
    let used = wrong.clone().token(held.token()).generation(old);
    assert_eq!(used.clone().not_after(past).refused(), Refusal::Stale);
    assert_eq!(used.refused(), Refusal::TokenInUse);
    assert_eq!(wrong.clone().generation(old).refused(), Refusal::Destroyed);
    let registered = capacity_of(2);
    assert_eq!(wrong.refused(), Refusal::ConfigMismatch { registered });
    let heavy = a.acquire(&lock).weight(4).queue_limit(0);
    assert_eq!(heavy.refused(), Refusal::TooHeavy { capacity: registered });
    a.acquire(&lock).queue_limit(0).busy();
    assert_eq!(a.acquire(&lock).queue_limit(0).refused(), Refusal::QueueFull { limit: 0 });
    assert_eq!(a.used_and_queued(&lock), (2, 0));
    held.release();
    a.assert_empty();
}

fn l1_clients_have_distinct_ids_and_one_clock(bench: &Bench) {
    let (a, b) = (bench.client(), bench.client());
    assert_ne!(a.id(), b.id());
    assert_eq!(a.id(), a.backend().client(), "an id is for life");
    assert_eq!(a.backend().store(), b.backend().store());
    let (before, other, after) = (a.store_time(), b.store_time(), a.store_time());
    let off = other.since(after).max(before.since(other));
    assert!(off <= bench.steps(1), "two clients differ by {off:?} about the store's time");
}

fn q6_a_thousand_names_leave_nothing(bench: &Bench) {
    let a = bench.client();
    let locks: Vec<_> = (0..1000).map(|n| bench.mutex(&format!("name-{n}"))).collect();
    let held: Vec<_> = locks.iter().map(|lock| a.acquire(lock).held()).collect();
    assert_eq!(a.survey(None).len(), 1000);
    held.iter().for_each(Held::release);
    a.assert_empty();
}

fn l4_clients_come_and_go(bench: &Bench) {
    let (watcher, lock) = (bench.client(), bench.mutex("come-and-go"));
    for _ in 0..20 {
        let client = bench.client();
        client.acquire(&lock).held().release();
        client.close();
    }
    watcher.assert_empty();
    watcher.acquire(&lock).held().release();
}
