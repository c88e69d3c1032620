//! The end of a lock and the beginning of the next of that name (rules N5, U2).

use leasehold_core::{
    Acquired, Confirmed, Destroyed, Extended, Generation, Refusal, Released, Remaining, Renewed,
    Token, WatchFor, Watched,
};

use crate::{
    Bench,
    bench::{WAKE_BOUND, block::answer, client::destroyed},
    case::theme,
};

theme! {
    Nothing, "N5, acceptance G12", n5_destroy_rejects_the_waiters_of_all_clients;
    Nothing, "N5, acceptance SL17", n5_destroy_ends_grants_and_makes_releasers_harmless;
    Nothing, "N5", n5_the_name_is_free_for_a_new_generation;
    Nothing, "N5", n5_handles_of_an_old_generation_learn_of_it;
    Nothing, "N5", n5_an_old_release_never_touches_the_new_generation;
    Nothing, "N5, acceptance G13", n5_destroy_of_a_named_generation_is_idempotent;
    Nothing, "N5", n5_destroy_works_on_an_idle_lock;
    Nothing, "N5, N2", n5_a_new_generation_has_no_capacity_registered;
    Nothing, "N5, T8", n5_destroy_ends_grants_bound_to_tokens_too;
    Nothing, "N5, L10", n5_a_claim_does_not_survive_a_destroy;
    Nothing, "U2, acceptance S19", u2_destroy_completes_the_watchers;
    Nothing, "U2", u2_a_watch_on_a_destroyed_generation_fails;
    Nothing, "U2", u2_a_watcher_of_the_end_waits_for_nothing_else;
}

fn n5_destroy_rejects_the_waiters_of_all_clients(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.rw_lock("destroy", 4));
    let _write = a.acquire(&lock).whole().held();
    let waiters = [a.acquire(&lock).queued(), b.acquire(&lock).whole().queued()];
    a.destroy(&lock, None, "Shutting down");
    for waiter in &waiters {
        assert_eq!(waiter.rejected(), destroyed("Shutting down"));
        assert_eq!(waiter.confirm(), Confirmed::Unknown, "it is told once");
    }
    a.assert_empty();
}

fn n5_destroy_ends_grants_and_makes_releasers_harmless(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.mutex("destroy"));
    let held = a.acquire(&lock).ttl(bench.steps(90)).held();
    b.destroy(&lock, None, "gone");
    assert_eq!(held.remaining(), Remaining::Gone);
    assert_eq!(held.renew(), Renewed::Unknown);
    assert_eq!(held.extend(Some(bench.steps(9))), Extended::Gone);
    assert_eq!(held.confirm(), Confirmed::Unknown);
    assert_eq!(held.try_release(), Released::Unknown);
    a.assert_empty();
}

fn n5_the_name_is_free_for_a_new_generation(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.mutex("again"));
    let old = a.acquire(&lock).held();
    let Destroyed::Now { next } = a.destroy(&lock, Some(old.grant().generation), "again") else {
        panic!("it was alive");
    };
    assert!(next > old.grant().generation);
    let new = b.acquire(&lock).held();
    assert_eq!(new.grant().generation, next);
    assert!(new.fencing() > old.fencing(), "fencing tokens go on across generations");
    new.release();
    let by_handle = b.acquire(&lock).generation(next).held();
    assert!(by_handle.fencing() > new.fencing());
    by_handle.release();
}

fn n5_handles_of_an_old_generation_learn_of_it(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.mutex("old"));
    let old = a.acquire(&lock).held().grant().generation;
    a.destroy(&lock, Some(old), "old");
    assert_eq!(a.acquire(&lock).generation(old).refused(), Refusal::Destroyed);
    assert_eq!(b.acquire(&lock).generation(old).try_only().refused(), Refusal::Destroyed);
    let new = b.acquire(&lock).held();
    assert_eq!(a.acquire(&lock).generation(old).refused(), Refusal::Destroyed);
    assert_eq!(a.used_and_queued(&lock), (1, 0));
    new.release();
    a.assert_empty();
}

fn n5_an_old_release_never_touches_the_new_generation(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.semaphore("old", 1));
    let token = Token::new("same-token").expect("a valid token");
    let old = a.acquire(&lock).held();
    let old_waiter = a.acquire(&lock).queued();
    a.destroy(&lock, None, "old");
    let new = b.acquire(&lock).token(&token).held();
    let waiter = b.acquire(&lock).queued();
    assert_eq!(old.try_release(), Released::Unknown);
    old.abandon();
    let _ = old_waiter.try_leave();
    assert!(new.is_held());
    waiter.waits();
    new.release();
    waiter.granted().release();
    a.eventually_unused(&lock, WAKE_BOUND);
}

fn n5_destroy_of_a_named_generation_is_idempotent(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.mutex("twice"));
    let old = a.acquire(&lock).held().grant().generation;
    let Destroyed::Now { next } = a.destroy(&lock, Some(old), "first") else {
        panic!("it was alive");
    };
    assert_eq!(b.destroy(&lock, Some(old), "second"), Destroyed::Before);
    let new = b.acquire(&lock).held();
    assert_eq!(new.grant().generation, next, "the second destroy did nothing");
    assert_eq!(a.destroy(&lock, Some(old), "third"), Destroyed::Before);
    assert!(new.is_held(), "a destroy of the old generation never touches the new one");
    new.release();
}

fn n5_destroy_works_on_an_idle_lock(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.mutex("idle"));
    let held = a.acquire(&lock).held();
    held.release();
    let destroyed = a.destroy(&lock, Some(held.grant().generation), "idle");
    assert!(matches!(destroyed, Destroyed::Now { .. }), "{destroyed:?}");
    let refusal = a.acquire(&lock).generation(held.grant().generation).refused();
    assert_eq!(refusal, Refusal::Destroyed);
    a.assert_empty();
}

fn n5_a_new_generation_has_no_capacity_registered(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.semaphore("capacity", 2));
    let _held = a.acquire(&lock).held();
    a.destroy(&lock, None, "resized");
    a.acquire(&lock.claiming(5)).weight(5).held().release();
    a.assert_empty();
}

fn n5_destroy_ends_grants_bound_to_tokens_too(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.mutex("token"));
    let held = a.acquire(&lock).detached().ttl(bench.steps(500)).held();
    b.destroy(&lock, None, "operator");
    assert!(!held.is_held());
    assert_eq!(held.try_release(), Released::Unknown);
    a.assert_empty();
}

fn n5_a_claim_does_not_survive_a_destroy(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.mutex("claim"));
    let held = a.acquire(&lock).held();
    let waiter = b.acquire(&lock).queued();
    held.release();
    a.destroy(&lock, None, "between");
    match waiter.confirm() {
        Confirmed::Unknown => {}
        Confirmed::Rejected(rejection) => assert_eq!(rejection, destroyed("between")),
        other => panic!("the lock it was granted is destroyed, the store says {other:?}"),
    }
    a.assert_empty();
}

fn u2_destroy_completes_the_watchers(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.semaphore("watched", 5));
    let _held = a.acquire(&lock).weight(5).held();
    let watchers = [WatchFor::AnyPermit, WatchFor::Unlocked, WatchFor::Readable]
        .map(|what| b.watches(&lock, what));
    let waiter = b.acquire(&lock).queued();
    a.destroy(&lock, None, "gone");
    for watcher in watchers {
        watcher.done();
    }
    assert_eq!(waiter.rejected(), destroyed("gone"));
    a.assert_empty();
}

fn u2_a_watch_on_a_destroyed_generation_fails(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.mutex("watched"));
    let old = a.acquire(&lock).held().grant().generation;
    let Destroyed::Now { next } = a.destroy(&lock, Some(old), "gone") else {
        panic!("it was alive");
    };
    let ask = |generation: Generation| {
        let id = Token::random();
        answer(a.backend().watch(&lock.id, Some(generation), &id, WatchFor::Unlocked))
    };
    assert!(matches!(ask(old), Watched::Destroyed));
    assert!(matches!(ask(next), Watched::Done));
    let held = a.acquire(&lock).answer();
    assert!(matches!(held, Acquired::Granted(_)));
    assert!(matches!(ask(old), Watched::Destroyed));
}

fn u2_a_watcher_of_the_end_waits_for_nothing_else(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.mutex("end"));
    let held = a.acquire(&lock).held();
    let mut watcher = b.watches(&lock, WatchFor::Destroyed);
    let waiter = b.acquire(&lock).queued();
    held.release();
    let last = waiter.granted();
    watcher.waits();
    last.release();
    watcher.waits();
    a.destroy(&lock, None, "end");
    watcher.done();
}
