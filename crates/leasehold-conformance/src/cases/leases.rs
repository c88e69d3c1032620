//! TTL, claims and what changes them (rules T2 to T4, L2, L10).
//!
//! Times are counted in the store's steps, and a grant that must be alive has steps in reserve.

use std::{
    pin::Pin,
    task::{Context, Poll, Waker},
    thread,
};

use leasehold_core::{Acquired, Call, Confirmed, Extended, Released, Remaining, Renewed, Ttl};

use crate::{
    Bench,
    bench::{Held, WAKE_BOUND, block::block_on},
    case::theme,
};

theme! {
    Nothing, "T1, acceptance SL6, SL15", t1_without_a_ttl_nothing_runs_out;
    Nothing, "T1, W2, acceptance SL13", t1_the_ttl_of_a_try_counts;
    Nothing, "T2, T4, acceptance SL7", t4_remaining_tells_what_is_left;
    Nothing, "T4, L2", t4_a_grant_says_the_ttl_of_its_renewals;
    Nothing, "L3", l3_a_grant_that_says_when_says_it_by_the_clock_of_its_client;
    Inline, "L3", l3_an_inline_store_answers_at_once_and_says_when;
    NotInline, "L3", l3_a_late_answer_reaches_whoever_asked_last;
    Nothing, "T3, acceptance SL8", t3_an_overdue_grant_is_gone;
    Nothing, "T3, acceptance SL9, NL2", t3_the_next_waiter_gets_it_without_a_call_by_anybody;
    Nothing, "T3, Q2", t3_an_expiry_lets_in_all_that_fit;
    Nothing, "T3, field report 58", t3_one_short_lease_does_not_end_the_others;
    Nothing, "T3", t3_a_chain_of_expiries_runs_by_itself;
    Nothing, "T2, acceptance SL10, field report 27", t2_the_ttl_counts_from_the_grant;
    Nothing, "T6, acceptance SL9", t6_a_late_release_never_touches_the_next_grant;
    Nothing, "T4, acceptance SL11", t4_extend_lengthens_and_a_gone_grant_stays_gone;
    Nothing, "T4", t4_extend_may_shorten;
    Nothing, "T4, acceptance SL12", t4_extend_gives_a_ttl_to_a_grant_without_one;
    Nothing, "T4, acceptance SL16", t4_extend_may_take_the_ttl_away;
    Nothing, "T3, T4", t4_a_shortened_grant_wakes_the_waiter_at_its_new_end;
    Nothing, "L2", l2_renew_starts_the_ttl_again;
    Nothing, "L2", l2_renew_never_shortens_an_extend;
    Nothing, "L2", l2_renew_goes_on_with_what_extend_set;
    Nothing, "L2", l2_renew_of_a_grant_without_ttl_changes_nothing;
    Nothing, "L2, L3", l2_renew_answers_each_in_order;
    Nothing, "T3, L2", l2_renew_never_revives;
    Nothing, "L10", l10_a_claim_that_nobody_confirms_is_passed_on;
    Nothing, "L10", l10_a_claim_is_never_longer_than_the_ttl;
    Nothing, "L10", l10_confirm_gives_the_full_ttl;
    Nothing, "L10", l10_confirm_takes_away_the_end_of_a_grant_without_ttl;
    Nothing, "L10", l10_confirm_may_be_repeated_and_never_shortens;
    Nothing, "L10, T4", l10_extend_counts_on_a_claim;
}

fn t1_without_a_ttl_nothing_runs_out(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.mutex("no-ttl"));
    let held = a.acquire(&lock).held();
    assert_eq!(held.grant().remaining, None);
    assert_eq!(held.remaining(), Remaining::Never);
    bench.pass(8);
    assert_eq!(held.remaining(), Remaining::Never);
    held.release();
    assert_eq!(held.remaining(), Remaining::Gone);
}

fn t1_the_ttl_of_a_try_counts(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.mutex("try"));
    let held = a.acquire(&lock).ttl(bench.steps(2)).try_only().held();
    assert!(matches!(held.remaining(), Remaining::Left(left) if left <= bench.steps(2)));
    let waiter = b.acquire(&lock).queued();
    bench.pass(2);
    waiter.granted().release();
    assert!(!held.is_held());
    a.assert_empty();
}

fn t4_remaining_tells_what_is_left(bench: &Bench) {
    let (a, lock, ttl) = (bench.client(), bench.mutex("left"), bench.steps(20));
    let since = a.stopwatch();
    let held = a.acquire(&lock).ttl(ttl).held();
    assert!(held.grant().remaining.is_some_and(|left| left <= ttl));
    held.assert_left(ttl, &since);
    bench.pass(2);
    held.assert_left(ttl, since);
    let at_most = Some(ttl - bench.steps(2));
    assert!(matches!(held.remaining(), Remaining::Left(left) if Some(left) <= at_most));
    let ttl_left = a.inspect(&lock).holders[0].ttl_left;
    assert!(ttl_left.is_some() && ttl_left <= at_most);
}

fn t4_a_grant_says_the_ttl_of_its_renewals(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.mutex("says"));
    let held = a.acquire(&lock).ttl(bench.steps(20)).held();
    let said = |held: &Held| match held.confirm() {
        Confirmed::Granted(grant) => grant.ttl.map(Ttl::get),
        other => panic!("it is held, the store says {other:?}"),
    };
    assert_eq!(held.grant().ttl.map(Ttl::get), Some(bench.steps(20)));
    assert_eq!(held.extend(Some(bench.steps(30))), Extended::Held);
    assert_eq!(said(&held), Some(bench.steps(30)));
    assert_eq!(held.extend(None), Extended::Held);
    assert_eq!(said(&held), None);
    let waiter = a.acquire(&lock).ttl(bench.steps(40)).queued();
    held.release();
    assert_eq!(waiter.granted().grant().ttl.map(Ttl::get), Some(bench.steps(40)), "not its claim");
}

fn l3_a_grant_that_says_when_says_it_by_the_clock_of_its_client(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.mutex("when"));
    for _ in 0..3 {
        bench.pass(1);
        let before = a.backend().clock().now();
        let held = a.acquire(&lock).held();
        let after = a.backend().clock().now();
        let at = held.grant().at;
        assert!(at.is_none_or(|at| before <= at && at <= after), "{at:?} in {before:?}..{after:?}");
        held.release();
    }
}

fn l3_an_inline_store_answers_at_once_and_says_when(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.mutex("inline"));
    let ask = a.acquire(&lock).ttl(bench.steps(20));
    let Ok(Ok(Acquired::Granted(grant))) = a.backend().acquire(ask.request()).into_ready() else {
        panic!("a free lock is granted at once");
    };
    assert!(grant.at.is_some());
    let token = &ask.request().token;
    let Ok(Ok(Confirmed::Granted(grant))) = a.backend().confirm(&lock.id, token).into_ready()
    else {
        panic!("a grant is confirmed at once");
    };
    assert!(grant.at.is_some());
    assert!(a.backend().release(&lock.id, token).into_ready().is_ok());
}

/// The opposite of an answer at once: whoever drives the call may change while it is on its way, as
/// a future that moves from one task to another.
fn l3_a_late_answer_reaches_whoever_asked_last(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.semaphore("late", 2));
    let (held, ask) = (a.acquire(&lock).held(), a.acquire(&lock));
    let (backend, id) = (a.backend(), &lock.id);
    finishes_elsewhere(backend.acquire(ask.request()));
    finishes_elsewhere(backend.confirm(id, held.token()));
    finishes_elsewhere(backend.remaining(id, held.token()));
    finishes_elsewhere(backend.extend(id, held.token(), None));
    finishes_elsewhere(backend.cancel_all(id, "nobody"));
    finishes_elsewhere(backend.counts(id));
    finishes_elsewhere(backend.inspect(id));
    finishes_elsewhere(backend.survey(None));
    finishes_elsewhere(backend.release(id, held.token()));
    finishes_elsewhere(backend.destroy(id, None, "the end"));
    finishes_elsewhere(backend.close());
}

/// One thread begins to wait for the answer and leaves it to another.
#[track_caller]
fn finishes_elsewhere<T: Send>(mut call: Call<T>) {
    let begun = Pin::new(&mut call).poll(&mut Context::from_waker(Waker::noop()));
    let outcome = match begun {
        Poll::Ready(outcome) => Some(outcome),
        Poll::Pending => thread::scope(|scope| {
            let other = scope.spawn(|| block_on(call, WAKE_BOUND));
            other.join().expect("waiting does not panic")
        }),
    };
    let outcome = outcome.expect("the answer reaches the thread that asked last");
    assert!(outcome.is_ok(), "the store failed: {:?}", outcome.err());
}

fn t3_an_overdue_grant_is_gone(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.mutex("overdue"));
    let held = a.acquire(&lock).ttl(bench.steps(1)).held();
    assert!(held.is_held());
    bench.pass(2);
    assert_eq!(held.remaining(), Remaining::Gone);
    assert_eq!(held.renew(), Renewed::Unknown);
    assert_eq!(held.confirm(), Confirmed::Unknown);
    a.acquire(&lock).held().release();
    a.assert_empty();
}

fn t3_the_next_waiter_gets_it_without_a_call_by_anybody(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.mutex("expiry"));
    let held = a.acquire(&lock).ttl(bench.steps(2)).held();
    let waiter = b.acquire(&lock).queued();
    bench.pass(2);
    // Nothing is asked of the store between the expiry and the wake.
    let next = waiter.granted();
    assert!(next.fencing() > held.fencing());
    assert!(!held.is_held());
    next.release();
    a.assert_empty();
}

fn t3_an_expiry_lets_in_all_that_fit(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.rw_lock("expiry", 8));
    let _write = a.acquire(&lock).whole().ttl(bench.steps(2)).held();
    let reads = [b.acquire(&lock).queued(), b.acquire(&lock).queued()];
    let write = b.acquire(&lock).whole().queued();
    bench.pass(2);
    let _reads = reads.map(|read| read.granted());
    write.waits();
}

fn t3_one_short_lease_does_not_end_the_others(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.semaphore("short", 3));
    let forever = a.acquire(&lock).held();
    let long = a.acquire(&lock).ttl(bench.steps(40)).held();
    let short = a.acquire(&lock).ttl(bench.steps(1)).held();
    bench.pass(2);
    assert!(!short.is_held());
    assert!(long.is_held() && forever.is_held());
    assert_eq!(a.counts(&lock).used, 2, "the permit of the short one is back, and only that");
}

fn t3_a_chain_of_expiries_runs_by_itself(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.mutex("chain"));
    let _first = a.acquire(&lock).ttl(bench.steps(1)).held();
    let waiters: Vec<_> = (0..3).map(|_| a.acquire(&lock).ttl(bench.steps(1)).queued()).collect();
    for waiter in &waiters {
        bench.pass(1);
        let _held = waiter.granted();
    }
    bench.pass(2);
    a.assert_empty();
}

fn t2_the_ttl_counts_from_the_grant(bench: &Bench) {
    let (a, lock, ttl) = (bench.client(), bench.mutex("from-grant"), bench.steps(10));
    let held = a.acquire(&lock).held();
    let waiter = a.acquire(&lock).ttl(ttl).queued();
    bench.pass(4);
    held.release();
    let since = a.stopwatch();
    let granted = waiter.granted();
    granted.assert_left(ttl, since);
}

fn t6_a_late_release_never_touches_the_next_grant(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.mutex("late"));
    let late = a.acquire(&lock).ttl(bench.steps(1)).held();
    let waiter = b.acquire(&lock).queued();
    bench.pass(2);
    let next = waiter.granted();
    assert_eq!(late.try_release(), Released::Unknown);
    late.abandon();
    assert!(next.is_held());
    a.acquire(&lock).busy();
    next.release();
    a.assert_empty();
}

fn t4_extend_lengthens_and_a_gone_grant_stays_gone(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.mutex("extend"));
    let held = a.acquire(&lock).ttl(bench.steps(3)).held();
    let since = a.stopwatch();
    assert_eq!(held.extend(Some(bench.steps(8))), Extended::Held);
    held.assert_left(bench.steps(8), since);
    bench.pass(4);
    assert!(held.is_held(), "the first TTL is over, the second is not");
    bench.pass(5);
    assert!(!held.is_held());
    assert_eq!(held.extend(Some(bench.steps(8))), Extended::Gone);
    assert_eq!(held.extend(None), Extended::Gone);
    assert!(!held.is_held(), "a gone grant is never revived");
    a.assert_empty();
}

fn t4_extend_may_shorten(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.mutex("shorten"));
    let held = a.acquire(&lock).ttl(bench.steps(100)).held();
    assert_eq!(held.extend(Some(bench.steps(1))), Extended::Held);
    bench.pass(2);
    assert!(!held.is_held());
}

fn t4_extend_gives_a_ttl_to_a_grant_without_one(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.mutex("gives"));
    let held = a.acquire(&lock).held();
    assert_eq!(held.extend(Some(bench.steps(1))), Extended::Held);
    let waiter = a.acquire(&lock).queued();
    bench.pass(2);
    let _next = waiter.granted();
    assert!(!held.is_held());
}

fn t4_extend_may_take_the_ttl_away(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.mutex("takes"));
    let held = a.acquire(&lock).ttl(bench.steps(3)).held();
    assert_eq!(held.extend(None), Extended::Held);
    assert_eq!(held.remaining(), Remaining::Never);
    bench.pass(4);
    assert_eq!(held.remaining(), Remaining::Never);
    assert_eq!(held.renew(), Renewed::Held { remaining: None });
}

fn t4_a_shortened_grant_wakes_the_waiter_at_its_new_end(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.mutex("new-end"));
    let held = a.acquire(&lock).ttl(bench.steps(1000)).held();
    let waiter = b.acquire(&lock).queued();
    assert_eq!(held.extend(Some(bench.steps(1))), Extended::Held);
    bench.pass(1);
    let _next = waiter.granted();
}

fn l2_renew_starts_the_ttl_again(bench: &Bench) {
    let (a, lock, ttl) = (bench.client(), bench.mutex("renew"), bench.steps(6));
    let held = a.acquire(&lock).ttl(ttl).held();
    for _ in 0..3 {
        bench.pass(3);
        let since = a.stopwatch();
        assert!(matches!(held.renew(), Renewed::Held { remaining: Some(left) } if left <= ttl));
        held.assert_left(ttl, since);
    }
    bench.pass(7);
    assert!(!held.is_held(), "nobody renewed any more");
}

fn l2_renew_never_shortens_an_extend(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.mutex("renew"));
    let held = a.acquire(&lock).ttl(bench.steps(4)).held();
    let since = a.stopwatch();
    assert_eq!(held.extend(Some(bench.steps(20))), Extended::Held);
    assert!(matches!(held.renew(), Renewed::Held { remaining: Some(_) }));
    held.assert_left(bench.steps(20), since);
    bench.pass(5);
    assert!(held.is_held());
}

fn l2_renew_goes_on_with_what_extend_set(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.mutex("renew"));
    let held = a.acquire(&lock).ttl(bench.steps(100)).held();
    assert_eq!(held.extend(Some(bench.steps(4))), Extended::Held);
    bench.pass(1);
    let since = a.stopwatch();
    assert!(matches!(held.renew(), Renewed::Held { remaining: Some(_) }));
    held.assert_left(bench.steps(4), since);
}

fn l2_renew_of_a_grant_without_ttl_changes_nothing(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.mutex("renew"));
    let held = a.acquire(&lock).held();
    assert_eq!(held.renew(), Renewed::Held { remaining: None });
    assert_eq!(held.remaining(), Remaining::Never);
}

fn l2_renew_answers_each_in_order(bench: &Bench) {
    let a = bench.client();
    let locks = [bench.mutex("one"), bench.mutex("two"), bench.semaphore("three", 2)];
    let with_ttl = a.acquire(&locks[0]).ttl(bench.steps(50)).held();
    let released = a.acquire(&locks[1]).ttl(bench.steps(50)).held();
    let without = a.acquire(&locks[2]).held();
    released.release();
    let renewed = a.renew_all(&[
        (&locks[2], without.token()),
        (&locks[1], released.token()),
        (&locks[0], with_ttl.token()),
        (&locks[1], with_ttl.token()),
    ]);
    assert_eq!(renewed.len(), 4);
    assert_eq!(renewed[0], Renewed::Held { remaining: None });
    assert_eq!(renewed[1], Renewed::Unknown);
    assert!(matches!(renewed[2], Renewed::Held { remaining: Some(_) }));
    assert_eq!(renewed[3], Renewed::Unknown, "a token belongs to one lock");
    assert!(a.renew_all(&[]).is_empty());
}

fn l2_renew_never_revives(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.mutex("revive"));
    let held = a.acquire(&lock).ttl(bench.steps(1)).held();
    bench.pass(2);
    assert_eq!(held.renew(), Renewed::Unknown);
    assert!(!held.is_held());
    a.assert_empty();
}

/// The waiter was woken, and then nothing more was heard of it.
fn l10_a_claim_that_nobody_confirms_is_passed_on(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.mutex("claim"));
    let held = a.acquire(&lock).held();
    let (silent, next) = (a.acquire(&lock).queued(), b.acquire(&lock).queued());
    held.release();
    silent.woken();
    bench.pass_a_claim();
    let next = next.granted();
    assert_eq!(silent.confirm(), Confirmed::Unknown, "its claim is over");
    assert_eq!(silent.try_leave(), Released::Unknown);
    next.release();
    a.assert_empty();
}

fn l10_a_claim_is_never_longer_than_the_ttl(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.mutex("claim"));
    // The TTL is shorter than a claim by default, whatever a step is.
    let ttl = bench.steps(2).min(leasehold_core::defaults::CLAIM / 4);
    let held = a.acquire(&lock).held();
    let silent = a.acquire(&lock).ttl(ttl).queued();
    let next = a.acquire(&lock).queued();
    held.release();
    bench.store().advance(ttl);
    let next = next.granted_within(leasehold_core::defaults::CLAIM / 2);
    assert_eq!(silent.confirm(), Confirmed::Unknown);
    next.release();
}

fn l10_confirm_gives_the_full_ttl(bench: &Bench) {
    let (a, lock, ttl) = (bench.client(), bench.mutex("claim"), bench.steps(60));
    let held = a.acquire(&lock).held();
    let waiter = a.acquire(&lock).ttl(ttl).queued();
    held.release();
    waiter.woken();
    // Part of the claim has passed, the waiter is in time.
    bench.store().advance(leasehold_core::defaults::CLAIM / 4);
    let since = a.stopwatch();
    let Confirmed::Granted(grant) = waiter.confirm() else { panic!("it was granted") };
    assert!(grant.remaining.is_some_and(|left| left <= ttl));
    a.restore(&lock, waiter.token()).assert_left(ttl, since);
    assert!(!a.inspect(&lock).holders[0].claimed);
}

fn l10_confirm_takes_away_the_end_of_a_grant_without_ttl(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.mutex("claim"));
    let held = a.acquire(&lock).held();
    let waiter = a.acquire(&lock).queued();
    held.release();
    let next = waiter.granted();
    assert_eq!(next.grant().remaining, None);
    assert_eq!(next.remaining(), Remaining::Never);
    bench.pass_a_claim();
    assert_eq!(next.remaining(), Remaining::Never);
}

fn l10_confirm_may_be_repeated_and_never_shortens(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.mutex("repeat"));
    let held = a.acquire(&lock).ttl(bench.steps(4)).held();
    let Confirmed::Granted(again) = held.confirm() else { panic!("it is held") };
    assert_eq!(again.fencing, held.fencing());
    let since = a.stopwatch();
    assert_eq!(held.extend(Some(bench.steps(30))), Extended::Held);
    assert!(matches!(held.confirm(), Confirmed::Granted(_)));
    held.assert_left(bench.steps(30), since);
    assert_eq!(a.used_and_queued(&lock), (1, 0));
}

fn l10_extend_counts_on_a_claim(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.mutex("claim"));
    let held = a.acquire(&lock).held();
    let waiter = a.acquire(&lock).queued();
    held.release();
    waiter.woken();
    let claim = a.restore(&lock, waiter.token());
    assert_eq!(claim.extend(Some(bench.steps(40))), Extended::Held);
    assert!(matches!(waiter.confirm(), Confirmed::Granted(_)));
    assert!(claim.is_held());
    claim.release();
    a.assert_empty();
}
