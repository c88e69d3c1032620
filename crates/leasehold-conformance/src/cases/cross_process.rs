//! The same store from several processes, some of which are killed or stopped (rules L4, T8, N7).
//!
//! Where a process plays a part, the holder program does ([`crate::holder`]).

use std::time::Duration;

use leasehold_core::{Acquired, LockKind, Token, defaults};

use crate::{
    Bench,
    bench::{
        Client, DEATH_BOUND, Lock, WAKE_BOUND,
        block::{answer, block_on},
        client::cancelled,
    },
    case::theme,
    holder::{Event, Happened, HolderProcess, Order, Wish},
};

theme! {
    Processes, "L4", l4_a_store_for_processes_has_a_holder_program;
    NoProcesses, "L4", l4_a_store_of_one_process_has_no_holder_program;
    Processes, "Q1, L4", l4_processes_exclude_each_other;
    Processes, "Q2, L4", l4_one_queue_runs_across_processes;
    Processes, "T9", t9_a_token_works_in_another_process;
    Processes, "T3, L5", t3_an_expiry_wakes_a_waiter_of_another_process;
    Processes, "W5", w5_cancel_all_reaches_other_processes;
    Processes, "N5", n5_destroy_reaches_other_processes;
    Processes, "N6", n6_close_in_one_process_lets_another_in;
    Processes, "W9, acceptance P1, P2, P3", w9_nothing_keeps_a_process_alive;
    ProcessesAndProof, "T8", t8_kill_9_while_holding_frees_at_once;
    ProcessesAndProof, "L4, field report 12", l4_kill_9_while_queued_delays_nobody;
    ProcessesAndProof, "L10", l10_kill_9_between_grant_and_confirmation_delays_nobody;
    Processes, "T8, N7", t8_a_token_bound_grant_survives_kill_9;
    Processes, "L4, L10", l4_a_stopped_waiter_is_skipped_after_its_claim;
    Processes, "N7", n7_a_stopped_holder_keeps_its_grant;
}

/// A store that nobody stands in the way of answers in this time.
const ANSWERS_BOUND: Duration = Duration::from_secs(1);

fn process(bench: &Bench) -> HolderProcess {
    HolderProcess::start(bench.store().holder().expect("a store for several processes"))
}

fn l4_a_store_for_processes_has_a_holder_program(bench: &Bench) {
    let (mut holder, lock) = (process(bench), bench.mutex("holder"));
    holder.holds(Wish::new("one", &lock));
    let a = bench.client();
    a.acquire(&lock).busy();
    let pids: Vec<_> = a.inspect(&lock).holders.iter().map(|held| held.info.pid()).collect();
    assert_eq!(pids, [holder.pid()]);
    holder.releases("one");
    a.acquire(&lock).held().release();
}

/// The opposite of all other cases here: a store that says so must not be reachable.
fn l4_a_store_of_one_process_has_no_holder_program(bench: &Bench) {
    assert!(bench.store().holder().is_none(), "the capability and the fixture contradict");
}

fn l4_processes_exclude_each_other(bench: &Bench) {
    const SECTIONS: u32 = 40;
    let lock = bench.mutex("exclude");
    let mut holders = [process(bench), process(bench), process(bench)];
    for holder in &mut holders {
        let wish = Wish::new("section", &lock);
        holder.order(&Order::Sections { wish, count: SECTIONS, hold_us: 500 });
    }
    let mut inside = Vec::new();
    for holder in &mut holders {
        for _ in 0..SECTIONS {
            let begin = holder.expect("section", Happened::Held);
            let end = holder.expect("section", Happened::Leaving);
            holder.expect("section", Happened::Released);
            inside.push((begin, end));
        }
        holder.expect("section", Happened::Done);
    }
    assert_alone(inside);
    bench.client().assert_empty();
}

/// No section begins before the one with the next smaller fencing token has ended.
#[track_caller]
fn assert_alone(mut inside: Vec<(Event, Event)>) {
    inside.sort_by_key(|(begin, _)| begin.fencing);
    for pair in inside.windows(2) {
        let [(_, end), (begin, _)] = pair else { unreachable!("windows of two") };
        assert!(end.at_us <= begin.at_us, "{begin:?} began before {end:?}");
    }
}

fn l4_one_queue_runs_across_processes(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.mutex("queue"));
    let (mut one, mut two) = (process(bench), process(bench));
    let held = a.acquire(&lock).held();
    one.waits(Wish::new("first", &lock));
    two.waits(Wish::new("second", &lock));
    let third = a.acquire(&lock).queued();
    one.waits(Wish::new("fourth", &lock));
    held.release();
    let mut order = vec![one.expect("first", Happened::Held)];
    one.releases("first");
    order.push(two.expect("second", Happened::Held));
    third.waits();
    two.releases("second");
    let third = third.granted();
    third.release();
    order.push(one.expect("fourth", Happened::Held));
    assert!(order.is_sorted_by(|one, next| one.fencing < next.fencing));
    one.releases("fourth");
    a.assert_empty();
}

fn t9_a_token_works_in_another_process(bench: &Bench) {
    let (a, mut holder) = (bench.client(), process(bench));
    let (lock, token) = (bench.mutex("token"), Token::random());
    holder.holds(Wish { token: Some(token.clone()), ..Wish::new("one", &lock) });
    a.restore(&lock, &token).release();
    holder.order(&Order::Release { id: "one".into() });
    holder.expect("one", Happened::Unknown);
    a.assert_empty();
}

fn t3_an_expiry_wakes_a_waiter_of_another_process(bench: &Bench) {
    let (a, mut holder, lock) = (bench.client(), process(bench), bench.mutex("expiry"));
    let _held = a.acquire(&lock).ttl(bench.steps(4)).held();
    holder.waits(Wish::new("next", &lock));
    bench.pass(4);
    holder.expect("next", Happened::Held);
    holder.releases("next");
    a.assert_empty();
}

fn w5_cancel_all_reaches_other_processes(bench: &Bench) {
    let (a, mut holder, lock) = (bench.client(), process(bench), bench.mutex("cancel"));
    let held = a.acquire(&lock).held();
    let own = a.acquire(&lock).queued();
    holder.waits(Wish::new("other", &lock));
    assert_eq!(a.cancel_all(&lock, "draining"), 2);
    let told = holder.expect("other", Happened::Rejected);
    assert!(told.detail.is_some_and(|detail| detail.contains("draining")));
    assert_eq!(own.rejected(), cancelled("draining"));
    held.release();
    a.assert_empty();
}

fn n5_destroy_reaches_other_processes(bench: &Bench) {
    let (a, mut holder, lock) = (bench.client(), process(bench), bench.semaphore("destroy", 2));
    holder.holds(Wish::new("held", &lock));
    holder.waits(Wish { weight: None, ..Wish::new("queued", &lock) });
    a.destroy(&lock, None, "gone");
    holder.expect("queued", Happened::Rejected);
    holder.order(&Order::Release { id: "held".into() });
    holder.expect("held", Happened::Unknown);
    a.assert_empty();
}

fn n6_close_in_one_process_lets_another_in(bench: &Bench) {
    let (a, mut holder, lock) = (bench.client(), process(bench), bench.mutex("close"));
    holder.holds(Wish::new("held", &lock));
    let waiter = a.acquire(&lock).queued();
    holder.order(&Order::Close);
    waiter.granted().release();
    holder.expect("", Happened::Closed);
}

/// Neither a grant, nor a TTL that runs, nor a waiter.
fn w9_nothing_keeps_a_process_alive(bench: &Bench) {
    let (a, mut holder) = (bench.client(), process(bench));
    let (lock, catalog) = (bench.semaphore("alive", 1), bench.rw_lock("alive", 8));
    let others = a.acquire(&catalog).held();
    holder.holds(Wish { ttl_ms: Some(600_000), ..Wish::new("ten-minutes", &lock) });
    holder.waits(Wish::new("permit", &lock));
    holder.waits(Wish { weight: None, ..Wish::new("write", &catalog) });
    holder.end();
    others.release();
    if bench.capabilities().proves_death {
        a.eventually_unused(&lock, DEATH_BOUND);
    }
}

fn t8_kill_9_while_holding_frees_at_once(bench: &Bench) {
    let (a, mut holder, mut other) = (bench.client(), process(bench), process(bench));
    let (lock, ttl) = (bench.mutex("kill"), bench.mutex("kill-ttl"));
    let dead = holder.holds(Wish::new("forever", &lock));
    holder.holds(Wish { ttl_ms: Some(600_000), ..Wish::new("ten-minutes", &ttl) });
    let waiter = a.acquire(&lock).queued();
    other.waits(Wish::new("other", &ttl));
    let since = a.stopwatch();
    holder.kill9();
    let held = waiter.granted_within(DEATH_BOUND);
    assert!(Some(held.fencing().get()) > dead.fencing);
    other.expect("other", Happened::Held);
    assert!(since() < DEATH_BOUND, "the waiter of the other process waited {:?}", since());
}

fn l4_kill_9_while_queued_delays_nobody(bench: &Bench) {
    let (a, mut holder, lock) = (bench.client(), process(bench), bench.semaphore("kill", 2));
    let held = a.acquire(&lock).weight(2).held();
    for id in ["one", "two", "three"] {
        holder.waits(Wish { weight: Some(2), ..Wish::new(id, &lock) });
    }
    let next = a.acquire(&lock).queued();
    holder.kill9();
    held.release();
    next.granted_within(DEATH_BOUND).release();
    a.eventually_unused(&lock, WAKE_BOUND);
}

fn l10_kill_9_between_grant_and_confirmation_delays_nobody(bench: &Bench) {
    let (a, mut holder, lock) = (bench.client(), process(bench), bench.mutex("kill"));
    let held = a.acquire(&lock).held();
    holder.waits(Wish { claim_only: true, ..Wish::new("dies", &lock) });
    let next = a.acquire(&lock).queued();
    held.release();
    holder.expect("dies", Happened::Claimed);
    holder.kill9();
    next.granted_within(DEATH_BOUND).release();
    a.assert_empty();
}

fn t8_a_token_bound_grant_survives_kill_9(bench: &Bench) {
    let (a, mut holder) = (bench.client(), process(bench));
    let (lock, token) = (bench.mutex("survives"), Token::random());
    holder.holds(Wish {
        token: Some(token.clone()),
        ttl_ms: Some(600_000),
        detached: true,
        ..Wish::new("detached", &lock)
    });
    let waiter = a.acquire(&lock).queued();
    holder.kill9();
    // By then a death would have been noticed.
    bench.store().advance(DEATH_BOUND);
    waiter.waits();
    a.restore(&lock, &token).release();
    waiter.granted().release();
}

/// Stops a holder, but not in the middle of one of its steps in the store: that may make all others
/// wait, and is no case of the kit. Whether it is in one shows in the store's answers.
#[track_caller]
fn stop_outside_of_steps(client: &Client, holder: &HolderProcess) {
    const TRIES: usize = 20;
    let elsewhere = Lock::new("elsewhere", LockKind::Mutex, "elsewhere", 1);
    for _ in 0..TRIES {
        holder.stop();
        let ask = client.acquire(&elsewhere);
        let mut granted = client.backend().acquire(ask.request());
        if let Some(outcome) = block_on(&mut granted, ANSWERS_BOUND) {
            assert!(matches!(outcome, Ok(Acquired::Granted(_))), "{outcome:?}");
            client.release(&elsewhere, &ask.request().token);
            return;
        }
        holder.go_on();
        assert!(matches!(answer(granted), Acquired::Granted(_)));
        client.release(&elsewhere, &ask.request().token);
    }
    panic!("the store was stopped in the middle of a step {TRIES} times on end");
}

fn l4_a_stopped_waiter_is_skipped_after_its_claim(bench: &Bench) {
    let (a, mut holder, lock) = (bench.client(), process(bench), bench.mutex("stopped"));
    let held = a.acquire(&lock).held();
    holder.waits(Wish::new("stopped", &lock));
    let next = a.acquire(&lock).queued();
    stop_outside_of_steps(&a, &holder);
    held.release();
    let next = next.granted_within(defaults::CLAIM + WAKE_BOUND);
    holder.go_on();
    holder.expect("stopped", Happened::Unknown);
    assert!(next.is_held(), "the one that was stopped learns of it and takes nothing");
    next.release();
    a.assert_empty();
}

fn n7_a_stopped_holder_keeps_its_grant(bench: &Bench) {
    let (a, mut holder, lock) = (bench.client(), process(bench), bench.mutex("stopped"));
    holder.holds(Wish::new("held", &lock));
    let waiter = a.acquire(&lock).queued();
    stop_outside_of_steps(&a, &holder);
    // By then a death would have been noticed; this is none.
    bench.store().advance(DEATH_BOUND);
    waiter.waits();
    holder.go_on();
    holder.releases("held");
    waiter.granted().release();
}
