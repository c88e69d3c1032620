//! Who has the token has the grant: restoring, releasing twice, using twice, and secrecy (rules T5,
//! T6, T9, L7).

use leasehold_core::{
    Acquired, AttemptId, Confirmed, Extended, Grant, Refusal, Released, Remaining, Renewed, Token,
};

use crate::{
    Bench,
    bench::{Ask, Client, Lock, capacity_of},
    case::theme,
};

theme! {
    Nothing, "T9, acceptance SL1", t9_a_grant_is_restored_from_its_token_by_another_client;
    Nothing, "T6, acceptance SL2, S15, R18", t6_several_releasers_give_back_one_permit;
    Nothing, "T6", t6_concurrent_releasers_give_back_one_permit;
    Nothing, "T6, acceptance S5", t6_a_repeated_release_never_frees_another_grant;
    Nothing, "T9, acceptance SL3", t9_an_unknown_token_holds_nothing;
    Nothing, "T9, acceptance SL5", t9_a_queued_token_becomes_held_on_its_grant;
    Nothing, "T5, acceptance SL4", t5_a_token_that_holds_is_refused;
    Nothing, "T5", t5_a_token_that_waits_is_refused;
    Nothing, "T5", t5_a_token_is_free_again_after_its_grant;
    Nothing, "T5, acceptance S20, S21", t5_a_given_token_is_kept_through_the_queue;
    Nothing, "T5", t5_the_same_token_may_serve_two_locks;
    Nothing, "L7, field reports 35 and 36", l7_a_replay_of_a_grant_is_the_same_grant;
    Nothing, "L7, field report 36", l7_a_replay_of_a_place_is_the_same_place;
    Nothing, "L7", l7_a_replay_is_answered_before_anything_else_is_checked;
    Nothing, "L7", l7_a_replay_after_the_grant_out_of_the_queue_is_that_grant;
    Nothing, "L7", l7_after_its_time_a_request_has_no_effect;
    Nothing, "L7", l7_a_late_copy_makes_no_second_grant;
    Nothing, "L7", l7_in_its_time_a_request_is_as_any_other;
    Nothing, "T5", t5_no_reply_shows_a_token_in_its_debug_form;
}

fn t9_a_grant_is_restored_from_its_token_by_another_client(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.mutex("restore"));
    let held = a.acquire(&lock).ttl(bench.steps(40)).held();
    let restored = b.restore(&lock, held.token());
    assert!(restored.is_held());
    assert!(matches!(restored.renew(), Renewed::Held { remaining: Some(_) }));
    assert_eq!(restored.extend(Some(bench.steps(60))), Extended::Held);
    restored.release();
    assert!(!held.is_held());
    assert_eq!(held.try_release(), Released::Unknown);
    a.assert_empty();
}

fn t6_several_releasers_give_back_one_permit(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.semaphore("once", 2));
    let (held, _other) = (a.acquire(&lock).held(), a.acquire(&lock).held());
    let releasers = [held.clone(), b.restore(&lock, held.token()), a.restore(&lock, held.token())];
    releasers[0].release();
    for releaser in &releasers {
        assert_eq!(releaser.try_release(), Released::Unknown);
    }
    assert_eq!(a.counts(&lock).used, 1);
    let _again = a.acquire(&lock).held();
    a.acquire(&lock).busy();
}

fn t6_concurrent_releasers_give_back_one_permit(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.semaphore("once", 2));
    let _other = a.acquire(&lock).held();
    for _ in 0..30 {
        let held = a.acquire(&lock).held();
        let found = std::thread::scope(|scope| {
            let [first, second] = [&a, &b].map(|client| {
                let releaser = client.restore(&lock, held.token());
                scope.spawn(move || releaser.try_release())
            });
            [first, second].map(|thread| thread.join().expect("a release does not panic"))
        });
        assert!(found.contains(&Released::Holder) && found.contains(&Released::Unknown));
        assert_eq!(a.counts(&lock).used, 1);
    }
}

fn t6_a_repeated_release_never_frees_another_grant(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.mutex("repeat"));
    let held = a.acquire(&lock).held();
    let waiter = b.acquire(&lock).queued();
    held.release();
    let next = waiter.granted();
    assert_eq!(held.try_release(), Released::Unknown);
    held.abandon();
    assert!(next.is_held());
    a.acquire(&lock).busy();
    next.release();
    a.assert_empty();
}

fn t9_an_unknown_token_holds_nothing(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.mutex("unknown"));
    for in_use in [false, true] {
        let held = in_use.then(|| a.acquire(&lock).held());
        let unknown = a.restore(&lock, &Token::random());
        assert_eq!(unknown.remaining(), Remaining::Gone);
        assert_eq!(unknown.try_release(), Released::Unknown);
        assert_eq!(unknown.extend(Some(bench.steps(9))), Extended::Gone);
        assert_eq!(unknown.extend(None), Extended::Gone);
        assert_eq!(unknown.renew(), Renewed::Unknown);
        assert_eq!(unknown.confirm(), Confirmed::Unknown);
        assert_eq!(a.used_and_queued(&lock), (u32::from(in_use), 0));
        held.iter().for_each(crate::bench::Held::release);
    }
    a.assert_empty();
}

fn t9_a_queued_token_becomes_held_on_its_grant(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.mutex("queued"));
    let token = Token::new("job-4711").expect("a valid token");
    let held = a.acquire(&lock).held();
    let waiter = a.acquire(&lock).token(&token).queued();
    let restored = b.restore(&lock, &token);
    assert!(!restored.is_held());
    assert_eq!(restored.extend(Some(bench.steps(9))), Extended::Gone);
    assert_eq!(restored.renew(), Renewed::Unknown);
    waiter.waits();
    held.release();
    let _held = waiter.granted();
    assert!(restored.is_held());
    restored.release();
    a.assert_empty();
}

fn t5_a_token_that_holds_is_refused(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.semaphore("in-use", 3));
    let held = a.acquire(&lock).held();
    assert_eq!(a.acquire(&lock).token(held.token()).refused(), Refusal::TokenInUse);
    let tried = b.acquire(&lock).token(held.token()).try_only().refused();
    assert_eq!(tried, Refusal::TokenInUse);
    assert_eq!(a.used_and_queued(&lock), (1, 0), "no permit is taken");
    assert!(held.is_held());
    held.release();
    a.assert_empty();
}

fn t5_a_token_that_waits_is_refused(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.mutex("in-use"));
    let held = a.acquire(&lock).held();
    let waiter = a.acquire(&lock).queued();
    assert_eq!(b.acquire(&lock).token(waiter.token()).refused(), Refusal::TokenInUse);
    assert_eq!(a.used_and_queued(&lock), (1, 1));
    held.release();
    waiter.granted().release();
    a.assert_empty();
}

fn t5_a_token_is_free_again_after_its_grant(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.mutex("again"));
    let token = Token::new("nightly").expect("a valid token");
    let first = a.acquire(&lock).token(&token).held();
    first.release();
    let second = a.acquire(&lock).token(&token).held();
    assert!(second.fencing() > first.fencing());
    second.release();
    a.assert_empty();
}

fn t5_a_given_token_is_kept_through_the_queue(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.mutex("kept"));
    let longest = Token::new("~".repeat(128)).expect("a valid token");
    let given = Token::new("a{b}:c/d\"e'f%00\\").expect("a valid token");
    let held = a.acquire(&lock).token(&longest).held();
    let waiter = a.acquire(&lock).token(&given).queued();
    let state = a.inspect(&lock);
    assert_eq!(state.holders[0].short_id, longest.short_id());
    assert_eq!(state.waiters[0].short_id, given.short_id());
    held.release();
    let _granted = waiter.granted();
    a.restore(&lock, &given).release();
    a.assert_empty();
}

fn t5_the_same_token_may_serve_two_locks(bench: &Bench) {
    let (a, one, two) = (bench.client(), bench.mutex("one"), bench.mutex("two"));
    let first = a.acquire(&one).held();
    let second = a.acquire(&two).token(first.token()).held();
    first.release();
    assert!(second.is_held());
    second.release();
    a.assert_empty();
}

/// Sends the request once more and expects a grant.
#[track_caller]
fn replayed(ask: &Ask) -> Grant {
    match ask.clone().answer() {
        Acquired::Granted(grant) => grant,
        other => panic!("expected the grant that there is, the store says {other:?}"),
    }
}

fn l7_a_replay_of_a_grant_is_the_same_grant(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.semaphore("replay", 3));
    let ask = a.acquire(&lock);
    let held = ask.clone().held();
    for _ in 0..3 {
        assert_eq!(replayed(&ask).fencing, held.fencing());
    }
    assert_eq!(a.used_and_queued(&lock), (1, 0));
    held.release();
    a.assert_empty();
}

fn l7_a_replay_of_a_place_is_the_same_place(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.mutex("replay"));
    let held = a.acquire(&lock).held();
    let ask = a.acquire(&lock);
    let first = ask.clone().queued();
    let second = b.acquire(&lock).queued();
    let again = ask.queued();
    assert_eq!(a.used_and_queued(&lock), (1, 2));
    held.release();
    // The flag that the last answer told is the one that must work.
    again.granted().release();
    assert_eq!(first.confirm(), Confirmed::Unknown);
    second.granted().release();
    a.assert_empty();
}

fn l7_a_replay_is_answered_before_anything_else_is_checked(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.semaphore("first", 3));
    let ask = a.acquire(&lock).weight(2).queue_limit(1);
    let held = ask.clone().held();
    let _queued = a.acquire(&lock).weight(2).queue_limit(1).queued();
    // The lock is busy and the queue is full by now; neither concerns a replay.
    assert_eq!(replayed(&ask).fencing, held.fencing());
    assert_eq!(a.used_and_queued(&lock), (2, 1));
}

fn l7_a_replay_after_the_grant_out_of_the_queue_is_that_grant(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.mutex("replay"));
    let held = a.acquire(&lock).held();
    let ask = a.acquire(&lock);
    let waiter = ask.clone().queued();
    held.release();
    let granted = waiter.granted();
    assert_eq!(replayed(&ask).fencing, granted.fencing());
    granted.release();
    a.assert_empty();
}

fn l7_after_its_time_a_request_has_no_effect(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.mutex("stale"));
    let ask = a.acquire(&lock).not_after(a.store_time().after(bench.steps(1)));
    bench.pass(2);
    assert_eq!(ask.clone().refused(), Refusal::Stale);
    assert_eq!(ask.clone().try_only().refused(), Refusal::Stale);
    a.assert_empty();
    let held = a.acquire(&lock).held();
    assert_eq!(ask.refused(), Refusal::Stale, "nothing is queued either");
    assert_eq!(a.used_and_queued(&lock), (1, 0));
    held.release();
}

fn l7_a_late_copy_makes_no_second_grant(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.mutex("late-copy"));
    let ask = a.acquire(&lock).not_after(a.store_time().after(bench.steps(6)));
    let held = ask.clone().held();
    held.release();
    bench.pass(7);
    assert_eq!(ask.refused(), Refusal::Stale);
    a.assert_empty();
}

fn l7_in_its_time_a_request_is_as_any_other(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.mutex("in-time"));
    let not_after = a.store_time().after(bench.steps(100));
    let held = a.acquire(&lock).not_after(not_after).held();
    let waiter = a.acquire(&lock).not_after(not_after).queued();
    held.release();
    waiter.granted().release();
    a.assert_empty();
}

/// Everything that a store says, printed for a log.
fn t5_no_reply_shows_a_token_in_its_debug_form(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.semaphore("secret", 2));
    let given = Token::new("hunter2-hunter2").expect("a valid token");
    let drawn = Token::random();
    let said = [replies(&a, &lock, &given), replies(&a, &lock.claiming(2), &drawn)].concat();
    for secret in [given.to_string(), drawn.to_string()] {
        assert!(!said.contains(&secret), "a reply shows a token: {said}");
    }
}

fn replies(client: &Client, lock: &Lock, token: &Token) -> String {
    let backend = client.backend();
    let id = &lock.id;
    let ask = client.acquire(lock).token(token);
    let other = AttemptId::random();
    let mut said = vec![
        format!("{:?}", ask.clone().answer()),
        format!("{:?}", ask.clone().answer()),
        format!("{:?}", ask.clone().attempt(other).answer()),
        format!("{:?}", client.acquire(lock).weight(2).try_only().answer()),
        format!("{:?}", client.confirm(lock, token)),
        format!("{:?}", client.remaining(lock, token)),
        format!("{:?}", client.renew_all(&[(lock, token)])),
        format!("{:?}", client.restore(lock, token).extend(None)),
        format!("{:?} {:?}", client.inspect(lock), client.survey(None)),
        format!("{:?} {:?}", client.counts(lock), backend),
        format!("{:?}", backend.confirm(id, token)),
    ];
    assert_eq!(client.inspect(lock).capacity, capacity_of(2));
    said.push(format!("{:?}", client.release(lock, token)));
    let holder = client.acquire(lock).weight(2).held();
    let waiter = ask.attempt(AttemptId::random()).queued();
    said.push(format!("{:?} {:?}", waiter.place(), client.inspect(lock)));
    said.push(format!("{:?}", waiter.try_leave()));
    holder.release();
    said.join("\n")
}
