//! The life and death of clients, and what it ends: what is bound to the client, and nothing else
//! (rules T8, N6, N7, L4).

use leasehold_core::{
    Binding, Confirmed, Extended, FaultKind, Released, Remaining, Token, defaults,
};

use crate::{
    Bench,
    bench::{
        DEATH_BOUND, Lock, Queued, WAKE_BOUND,
        block::{eventually, outcome},
    },
    case::theme,
};

theme! {
    Proof, "T8", t8_death_of_a_client_frees_what_is_bound_to_it;
    NoProof, "T8", t8_death_without_proof_frees_by_ttl_only;
    Nothing, "T8, N7", t8_a_grant_bound_to_its_token_survives_its_client;
    Nothing, "T8, L10", t8_a_token_bound_grant_out_of_the_queue_survives_its_client;
    Proof, "N7", n7_death_of_a_client_touches_nothing_of_others;
    Nothing, "L4, field report 12", l4_a_dead_waiter_at_the_head_delays_nobody_for_long;
    Nothing, "L4, field report 11", l4_a_living_waiter_is_never_skipped_however_long_it_waits;
    Nothing, "L4", l4_a_dead_waiter_behind_the_head_is_skipped;
    Nothing, "L10", l10_a_grantee_that_dies_before_it_confirms_passes_the_grant_on;
    Nothing, "L4, field report 12", l4_a_hundred_dead_waiters_delay_nobody_for_long;
    Proof, "Q2, L4", l4_a_dead_heavy_head_lets_its_followers_in;
    Nothing, "T8", t8_rebinding_to_the_token_makes_it_survive;
    Proof, "T8, T9", t8_rebinding_to_a_client_makes_it_end_with_that_client;
    Nothing, "T8", t8_rebinding_starts_the_ttl;
    Nothing, "T8", t8_rebinding_without_a_ttl_leaves_the_expiry;
    Nothing, "T8", t8_a_token_needs_a_ttl;
    Nothing, "T8", t8_a_token_bound_request_needs_a_ttl;
    Nothing, "T8", t8_what_is_gone_cannot_be_bound;
    Nothing, "T8", t8_a_grant_bound_to_its_token_still_expires;
    Nothing, "N6", n6_close_gives_back_what_is_bound_to_the_client;
    Nothing, "N6, N7", n6_close_touches_nothing_of_tokens_and_others;
    Nothing, "N6", n6_after_close_every_request_is_refused;
    Nothing, "N6", n6_close_may_be_repeated;
}

fn t8_death_of_a_client_frees_what_is_bound_to_it(bench: &Bench) {
    let (a, b) = (bench.client(), bench.client());
    let (lock, ttl) = (bench.semaphore("death", 2), bench.semaphore("death-ttl", 2));
    let dead = a.acquire(&lock).weight(2).held();
    let _with_ttl = a.acquire(&ttl).weight(2).ttl(bench.steps(1000)).held();
    let waiters = [b.acquire(&lock).queued(), b.acquire(&lock).queued()];
    let other = b.acquire(&ttl).queued();
    bench.kill(a);
    for waiter in waiters {
        let held = waiter.granted_within(DEATH_BOUND);
        assert!(held.fencing() > dead.fencing());
    }
    other.granted_within(DEATH_BOUND).release();
}

/// Nobody can tell the dead from the silent here, so a grant must outlast its client.
fn t8_death_without_proof_frees_by_ttl_only(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.mutex("silent"));
    let held = a.acquire(&lock).ttl(bench.steps(4)).held();
    let token = held.token().clone();
    let waiter = b.acquire(&lock).queued();
    bench.kill(a);
    waiter.waits();
    assert!(b.restore(&lock, &token).is_held());
    bench.pass(5);
    waiter.granted().release();
}

fn t8_a_grant_bound_to_its_token_survives_its_client(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.semaphore("survives", 2));
    let token = a.acquire(&lock).detached().ttl(bench.steps(1000)).held().token().clone();
    let bound = a.acquire(&lock).ttl(bench.steps(9)).held().token().clone();
    bench.kill(a);
    wait_for_death(bench, &lock, &bound);
    assert_eq!(b.counts(&lock).used, 1);
    let survivor = b.restore(&lock, &token);
    assert!(survivor.is_held());
    survivor.release();
    b.assert_empty();
}

fn t8_a_token_bound_grant_out_of_the_queue_survives_its_client(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.mutex("queue"));
    let marker = bench.mutex("marker");
    let held = b.acquire(&lock).held();
    let waiter = a.acquire(&lock).detached().ttl(bench.steps(1000)).queued();
    let marked = a.acquire(&marker).ttl(bench.steps(9)).held().token().clone();
    held.release();
    let token = waiter.granted().token().clone();
    bench.kill(a);
    wait_for_death(bench, &marker, &marked);
    let survivor = b.restore(&lock, &token);
    assert!(survivor.is_held());
    survivor.release();
    b.assert_empty();
}

fn n7_death_of_a_client_touches_nothing_of_others(bench: &Bench) {
    let (a, b, c) = (bench.client(), bench.client(), bench.client());
    let lock = bench.semaphore("others", 3);
    let others = b.acquire(&lock).weight(2).held();
    let _dies = a.acquire(&lock).held();
    let waiter = b.acquire(&lock).weight(3).queued();
    let behind = c.acquire(&lock).weight(3).queued();
    bench.kill(a);
    eventually("the dead one's permit is back", DEATH_BOUND, || b.counts(&lock).used == 2);
    assert!(others.is_held());
    waiter.waits();
    behind.waits();
    others.release();
    waiter.granted().release();
    behind.granted().release();
    b.assert_empty();
}

/// How the next waiter gets in when one before it is dead: at once where death is proven, else
/// after the claim that the dead one got.
#[track_caller]
fn gets_in(bench: &Bench, waiter: &Queued) {
    if bench.capabilities().proves_death {
        waiter.granted_within(DEATH_BOUND).release();
    } else {
        bench.pass_a_claim();
        waiter.granted().release();
    }
}

fn l4_a_dead_waiter_at_the_head_delays_nobody_for_long(bench: &Bench) {
    let (a, b, c) = (bench.client(), bench.client(), bench.client());
    let lock = bench.mutex("head");
    let held = a.acquire(&lock).held();
    let _dead = b.acquire(&lock).queued();
    let next = c.acquire(&lock).queued();
    bench.kill(b);
    held.release();
    gets_in(bench, &next);
    a.assert_empty();
}

fn l4_a_living_waiter_is_never_skipped_however_long_it_waits(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.mutex("patient"));
    let held = a.acquire(&lock).held();
    let (patient, next) = (b.acquire(&lock).queued(), a.acquire(&lock).queued());
    bench.store().advance(defaults::LIVENESS_LIMIT + bench.steps(1));
    patient.waits();
    held.release();
    patient.granted().release();
    next.granted().release();
    a.assert_empty();
}

fn l4_a_dead_waiter_behind_the_head_is_skipped(bench: &Bench) {
    let (a, b, c) = (bench.client(), bench.client(), bench.client());
    let lock = bench.mutex("middle");
    let held = a.acquire(&lock).held();
    let head = c.acquire(&lock).queued();
    let _dead = b.acquire(&lock).queued();
    let next = c.acquire(&lock).queued();
    bench.kill(b);
    held.release();
    head.granted().release();
    gets_in(bench, &next);
    a.assert_empty();
}

fn l10_a_grantee_that_dies_before_it_confirms_passes_the_grant_on(bench: &Bench) {
    let (a, b, c) = (bench.client(), bench.client(), bench.client());
    let lock = bench.mutex("claimed");
    let held = a.acquire(&lock).held();
    let dies = b.acquire(&lock).queued();
    let next = c.acquire(&lock).queued();
    held.release();
    dies.woken();
    bench.kill(b);
    gets_in(bench, &next);
    a.assert_empty();
}

fn l4_a_hundred_dead_waiters_delay_nobody_for_long(bench: &Bench) {
    let (a, b, c) = (bench.client(), bench.client(), bench.client());
    let lock = bench.semaphore("hundred", 100);
    let held = a.acquire(&lock).weight(100).held();
    for _ in 0..100 {
        let _dead = b.acquire(&lock).queued();
    }
    let next = c.acquire(&lock).queued();
    bench.kill(b);
    held.release();
    gets_in(bench, &next);
    a.eventually_unused(&lock, WAKE_BOUND);
}

fn l4_a_dead_heavy_head_lets_its_followers_in(bench: &Bench) {
    let (a, b, c) = (bench.client(), bench.client(), bench.client());
    let lock = bench.semaphore("heavy", 2);
    let _held = a.acquire(&lock).held();
    let _dead = b.acquire(&lock).weight(2).queued();
    let follower = c.acquire(&lock).queued();
    bench.kill(b);
    // Nobody releases: the death itself lets the follower in.
    let _follower = follower.granted_within(DEATH_BOUND);
}

fn t8_rebinding_to_the_token_makes_it_survive(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.mutex("to-token"));
    let held = a.acquire(&lock).held();
    let marker = a.acquire(&bench.mutex("marker")).ttl(bench.steps(9)).held();
    let grant = held.rebind(Binding::Token, Some(bench.steps(1000))).expect("a TTL is given");
    assert_eq!(grant.map(|grant| grant.fencing), Some(held.fencing()));
    assert_eq!(b.inspect(&lock).holders[0].binding, Binding::Token);
    let (token, marker) = (held.token().clone(), marker.token().clone());
    bench.kill(a);
    wait_for_death(bench, &bench.mutex("marker"), &marker);
    let survivor = b.restore(&lock, &token);
    assert!(survivor.is_held());
    survivor.release();
}

/// Waits until a dead client's grant, with a TTL of nine steps at most, is gone.
#[track_caller]
fn wait_for_death(bench: &Bench, lock: &Lock, token: &Token) {
    let client = bench.client();
    if !bench.capabilities().proves_death {
        bench.pass(10);
    }
    eventually("the dead client's grant is gone", DEATH_BOUND, || {
        client.remaining(lock, token) == Remaining::Gone
    });
}

fn t8_rebinding_to_a_client_makes_it_end_with_that_client(bench: &Bench) {
    let (a, b, c) = (bench.client(), bench.client(), bench.client());
    let (lock, marker) = (bench.mutex("adopt"), bench.mutex("marker"));
    let token = a.acquire(&lock).detached().ttl(bench.steps(1000)).held().token().clone();
    let marked = a.acquire(&marker).held().token().clone();
    let adopted = b.restore(&lock, &token);
    assert!(adopted.rebind(Binding::Client, None).expect("it is held").is_some());
    assert_eq!(c.inspect(&lock).holders[0].binding, Binding::Client);
    bench.kill(a);
    wait_for_death(bench, &marker, &marked);
    assert!(adopted.is_held(), "it is bound to another client now");
    bench.kill(b);
    c.eventually_unused(&lock, DEATH_BOUND);
}

fn t8_rebinding_starts_the_ttl(bench: &Bench) {
    let (a, lock, ttl) = (bench.client(), bench.mutex("starts"), bench.steps(50));
    let held = a.acquire(&lock).ttl(bench.steps(9)).held();
    bench.pass(2);
    let since = a.stopwatch();
    let grant = held.rebind(Binding::Token, Some(ttl)).expect("a TTL is given").expect("held");
    assert!(grant.remaining.is_some_and(|left| left <= ttl));
    held.assert_left(ttl, since);
    bench.pass(8);
    assert!(held.is_held(), "the first TTL no longer counts");
}

fn t8_rebinding_without_a_ttl_leaves_the_expiry(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.mutex("leaves"));
    let since = a.stopwatch();
    let held = a.acquire(&lock).ttl(bench.steps(40)).held();
    bench.pass(2);
    let grant = held.rebind(Binding::Token, None).expect("the grant has a TTL").expect("held");
    assert!(grant.remaining.is_some_and(|left| left <= bench.steps(38)));
    held.assert_left(bench.steps(40), since);
    b.restore(&lock, held.token()).release();
}

fn t8_a_token_needs_a_ttl(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.mutex("needs"));
    let held = a.acquire(&lock).held();
    let fault = held.rebind(Binding::Token, None).expect_err("there is no TTL");
    assert_eq!(fault.kind(), FaultKind::Unsupported);
    assert_eq!(a.inspect(&lock).holders[0].binding, Binding::Client, "nothing changed");
    let bound = held.rebind(Binding::Token, Some(bench.steps(90))).expect("a TTL is given");
    assert!(bound.is_some());
    assert_eq!(held.extend(None), Extended::NeedsTtl);
    assert!(matches!(held.remaining(), Remaining::Left(_)), "nothing changed");
    assert_eq!(held.extend(Some(bench.steps(95))), Extended::Held);
}

fn t8_a_token_bound_request_needs_a_ttl(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.mutex("needs"));
    for in_use in [false, true] {
        let held = in_use.then(|| a.acquire(&lock).held());
        let ask = a.acquire(&lock).detached();
        let fault = outcome(a.backend().acquire(ask.request())).expect_err("there is no TTL");
        assert_eq!(fault.kind(), FaultKind::Unsupported);
        assert_eq!(a.used_and_queued(&lock), (u32::from(in_use), 0), "nothing is held or queued");
        held.iter().for_each(crate::bench::Held::release);
    }
    a.assert_empty();
}

fn t8_what_is_gone_cannot_be_bound(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.mutex("gone"));
    let held = a.acquire(&lock).held();
    held.release();
    for binding in [Binding::Client, Binding::Token] {
        let bound = held.rebind(binding, Some(bench.steps(9))).expect("no fault of the store");
        assert_eq!(bound, None);
    }
    a.assert_empty();
}

fn t8_a_grant_bound_to_its_token_still_expires(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.mutex("expires"));
    let _held = a.acquire(&lock).detached().ttl(bench.steps(2)).held();
    let waiter = b.acquire(&lock).queued();
    bench.kill(a);
    bench.pass(2);
    waiter.granted().release();
}

fn n6_close_gives_back_what_is_bound_to_the_client(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.semaphore("close", 2));
    let held = a.acquire(&lock).weight(2).held();
    let waits = a.acquire(&lock).weight(2).queued();
    let next = b.acquire(&lock).weight(2).queued();
    a.close();
    let next = next.granted();
    assert_eq!(b.used_and_queued(&lock), (2, 0), "its grants and its waiters are gone");
    for token in [held.token(), waits.token()] {
        assert_eq!(b.release(&lock, token), Released::Unknown);
    }
    next.release();
    b.assert_empty();
}

fn n6_close_touches_nothing_of_tokens_and_others(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.semaphore("close", 4));
    let detached = a.acquire(&lock).detached().ttl(bench.steps(1000)).held();
    let (others, _own) = (b.acquire(&lock).held(), a.acquire(&lock).weight(2).held());
    let waiter = b.acquire(&lock).weight(3).queued();
    a.close();
    assert_eq!(b.remaining(&lock, others.token()), Remaining::Never);
    assert!(b.restore(&lock, detached.token()).is_held());
    waiter.waits();
    others.release();
    let waiter = waiter.granted();
    assert_eq!(b.counts(&lock).used, 4);
    waiter.release();
    b.restore(&lock, detached.token()).release();
    b.assert_empty();
}

fn n6_after_close_every_request_is_refused(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.mutex("closed"));
    let held = a.acquire(&lock).held();
    a.close();
    let backend = a.backend();
    let (id, token) = (&lock.id, held.token());
    let faults = [
        outcome(backend.acquire(a.acquire(&lock).request())).map(drop),
        outcome(backend.confirm(id, token)).map(drop),
        outcome(backend.extend(id, token, None)).map(drop),
        outcome(backend.release(id, token)).map(drop),
        outcome(backend.remaining(id, token)).map(drop),
        outcome(backend.cancel_all(id, "closed")).map(drop),
        outcome(backend.destroy(id, None, "closed")).map(drop),
        outcome(backend.survey(None)).map(drop),
    ];
    for (n, fault) in faults.into_iter().enumerate() {
        let fault = fault.expect_err("the client is closed");
        assert_eq!(fault.kind(), FaultKind::Closed, "request {n}");
    }
    b.assert_empty();
}

fn n6_close_may_be_repeated(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.mutex("twice"));
    let _held = a.acquire(&lock).held();
    a.close();
    let others = b.acquire(&lock).held();
    a.close();
    assert!(others.is_held());
    let Confirmed::Granted(grant) = others.confirm() else { panic!("it is held") };
    assert_eq!(grant.fencing, others.fencing());
}
