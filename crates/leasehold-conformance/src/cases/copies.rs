//! Requests that come late, or twice, as networks deliver them (rule L7, field reports 35 and 36).

use std::{future::Future as _, pin::Pin, task::Context, task::Waker};

use leasehold_core::{Acquired, Confirmed, Grant, Refusal, Released};

use crate::{
    Bench,
    bench::{Ask, Client, Queued, Wire, block::answer},
    case::theme,
    model,
};

theme! {
    Nothing, "L7, field report 36", l7_a_copy_that_comes_in_the_queue_takes_no_second_place;
    Nothing, "L7, L10, field report 35", l7_a_copy_that_comes_after_the_grant_makes_no_second_one;
    Nothing, "L7", l7_a_copy_that_comes_late_is_stale_and_changes_nothing;
    Nothing, "L7", l7_a_request_that_comes_late_is_stale;
    Nothing, "L7", l7_a_request_that_comes_in_time_is_answered_as_any_other;
    Nothing, "L7, W7, field report 40", l7_a_request_that_comes_after_its_drop_leaves_nothing;
    Nothing, "L7, Q2, Q4", l7_programs_agree_with_the_model_when_every_request_comes_twice;
    Nothing, "L7, T6, L2", l7_a_lease_lives_as_ever_when_every_request_comes_twice;
}

/// A copy of what a waiter sent arrives; it finds the place that there is.
#[track_caller]
fn copy_finds_the_place(wire: &Wire, waiter: &Queued) {
    match wire.copy_arrives(waiter.request(), Some(waiter.place())) {
        Acquired::Queued(_) => {}
        other => panic!("expected the place that there is, the store says {other:?}"),
    }
}

/// A copy of what a holder sent arrives; it finds the grant that there is.
#[track_caller]
fn copy_finds_the_grant(wire: &Wire, ask: &Ask) -> Grant {
    match wire.copy_arrives(ask.request(), None) {
        Acquired::Granted(grant) => grant,
        other => panic!("expected the grant that there is, the store says {other:?}"),
    }
}

#[track_caller]
fn copy_is_stale(wire: &Wire, ask: &Ask) {
    match wire.copy_arrives(ask.request(), None) {
        Acquired::Refused(Refusal::Stale) => {}
        other => panic!("expected a stale copy, the store says {other:?}"),
    }
}

fn l7_a_copy_that_comes_in_the_queue_takes_no_second_place(bench: &Bench) {
    let (a, (b, wire), lock) = (bench.client(), bench.wired_client(), bench.mutex("copies"));
    let held = a.acquire(&lock).held();
    let waiters = [b.acquire(&lock).queued(), a.acquire(&lock).queued(), b.acquire(&lock).queued()];
    let order = a.inspect(&lock).waiters.into_iter().map(|waiter| waiter.short_id);
    let order: Vec<_> = order.collect();
    for waiter in [&waiters[2], &waiters[0], &waiters[2]] {
        copy_finds_the_place(&wire, waiter);
    }
    let after = a.inspect(&lock).waiters.into_iter().map(|waiter| waiter.short_id);
    assert_eq!(order, after.collect::<Vec<_>>(), "nobody has moved or come twice");
    held.release();
    for waiter in &waiters {
        waiter.granted().release();
    }
    a.assert_empty();
}

fn l7_a_copy_that_comes_after_the_grant_makes_no_second_one(bench: &Bench) {
    let (a, (b, wire), lock) = (bench.client(), bench.wired_client(), bench.semaphore("copies", 2));
    let first = a.acquire(&lock).weight(2).held();
    let ask = b.acquire(&lock).ttl(bench.steps(1000));
    let waiter = ask.clone().queued();
    first.release();
    // Granted and not confirmed, then confirmed, then extended: it is one grant.
    waiter.woken();
    let claimed = copy_finds_the_grant(&wire, &ask);
    let held = waiter.granted_by_now();
    assert_eq!(claimed.fencing, held.fencing());
    assert_eq!(copy_finds_the_grant(&wire, &ask).fencing, held.fencing());
    held.extend(Some(bench.steps(2000)));
    assert_eq!(copy_finds_the_grant(&wire, &ask).fencing, held.fencing());
    assert_eq!(a.used_and_queued(&lock), (1, 0));
    held.release();
    a.assert_empty();
}

/// In every state that the original may have reached by then.
fn l7_a_copy_that_comes_late_is_stale_and_changes_nothing(bench: &Bench) {
    let (a, (b, wire), lock) = (bench.client(), bench.wired_client(), bench.semaphore("copies", 2));
    let not_after = a.store_time().after(bench.steps(8));
    let ask = |weight| b.acquire(&lock).weight(weight).not_after(not_after);
    let (released, holds, left, waits) = (ask(2), ask(1), ask(2), ask(2));
    released.clone().held().release();
    let held = holds.clone().held();
    let leaver = left.clone().queued();
    let waiter = waits.clone().queued();
    leaver.leave();
    bench.pass(9);
    for late in [&released, &holds, &left, &waits] {
        copy_is_stale(&wire, late);
        assert_eq!(a.used_and_queued(&lock), (1, 1));
    }
    assert!(held.is_held());
    held.release();
    waiter.granted().release();
    for late in [&released, &holds, &left, &waits] {
        copy_is_stale(&wire, late);
    }
    a.assert_empty();
}

fn l7_a_request_that_comes_late_is_stale(bench: &Bench) {
    let (a, (b, wire), lock) = (bench.client(), bench.wired_client(), bench.mutex("late"));
    for free in [true, false] {
        let held = (!free).then(|| a.acquire(&lock).held());
        wire.hold_back();
        let ask = b.acquire(&lock).not_after(a.store_time().after(bench.steps(1)));
        let call = b.backend().acquire(ask.request());
        assert_eq!(a.used_and_queued(&lock), (u32::from(!free), 0), "it is on its way");
        bench.pass(2);
        wire.deliver();
        assert!(matches!(answer(call), Acquired::Refused(Refusal::Stale)));
        assert_eq!(a.used_and_queued(&lock), (u32::from(!free), 0), "it came to nothing");
        held.iter().for_each(crate::bench::Held::release);
    }
    a.assert_empty();
}

fn l7_a_request_that_comes_in_time_is_answered_as_any_other(bench: &Bench) {
    let (a, (b, wire), lock) = (bench.client(), bench.wired_client(), bench.mutex("in-time"));
    wire.hold_back();
    let not_after = a.store_time().after(bench.steps(1000));
    let asks = [(); 2].map(|()| b.acquire(&lock).not_after(not_after));
    let calls = asks.each_ref().map(|ask| b.backend().acquire(ask.request()));
    bench.pass(1);
    wire.deliver();
    let [first, second] = calls.map(answer);
    assert!(matches!(first, Acquired::Granted(_)), "the first that comes: {first:?}");
    let Acquired::Queued(place) = second else { panic!("behind it, the store says {second:?}") };
    let [first, second] = asks;
    b.restore(&lock, &first.request().token).release();
    Queued::resume(second, place).granted().release();
    a.assert_empty();
}

/// The drop overtakes the request that it takes back.
fn l7_a_request_that_comes_after_its_drop_leaves_nothing(bench: &Bench) {
    let (a, (b, wire), lock) = (bench.client(), bench.wired_client(), bench.mutex("overtaken"));
    wire.hold_back();
    let ask = b.acquire(&lock).not_after(a.store_time().after(bench.steps(1)));
    let mut call = b.backend().acquire(ask.request());
    assert!(Pin::new(&mut call).poll(&mut Context::from_waker(Waker::noop())).is_pending());
    drop(call);
    b.backend().abandon(&lock.id, &ask.request().token);
    bench.pass(2);
    wire.deliver();
    a.acquire(&lock).held().release();
    a.assert_empty();
}

/// A client whose requests all arrive twice.
fn doubled_client(bench: &Bench) -> Client {
    let (client, wire) = bench.wired_client();
    wire.double();
    client
}

fn l7_programs_agree_with_the_model_when_every_request_comes_twice(bench: &Bench) {
    let clients = [doubled_client(bench), doubled_client(bench)];
    for seed in 21..=22 {
        let lock = bench.semaphore(&format!("program-{seed}"), 5);
        model::compare_by(&clients, &lock, 5, seed);
    }
    clients[0].assert_empty();
}

fn l7_a_lease_lives_as_ever_when_every_request_comes_twice(bench: &Bench) {
    let (a, b, lock) = (doubled_client(bench), doubled_client(bench), bench.mutex("twice"));
    let held = a.acquire(&lock).ttl(bench.steps(6)).held();
    let waiters = [b.acquire(&lock).queued(), a.acquire(&lock).queued(), b.acquire(&lock).queued()];
    bench.pass(3);
    let since = a.stopwatch();
    held.renew();
    held.assert_left(bench.steps(6), since);
    held.release();
    assert_eq!(held.try_release(), Released::Unknown);
    let second = waiters[0].granted();
    assert!(second.fencing() > held.fencing());
    second.abandon();
    let third = waiters[1].granted();
    assert_eq!(a.cancel_all(&lock, "twice"), 1);
    assert_eq!(waiters[2].rejected(), crate::bench::client::cancelled("twice"));
    assert_eq!(waiters[2].confirm(), Confirmed::Unknown);
    third.release();
    a.assert_empty();
}
