//! Stores that are broken on purpose: pushes that are lost, and a wall clock that is stepped
//! (rules L5, L8, T3). A store that cannot be broken so says why, and the case is ignored.

use std::time::Duration;

use leasehold_core::{Confirmed, Released, Remaining, Renewed, WatchFor};

use crate::{
    Bench, Cannot, WallStep,
    bench::{
        Client, Lock, WAKE_BOUND, Watcher,
        client::{cancelled, destroyed},
    },
    case::theme,
};

theme! {
    Nothing, "L5, field report 1", l5_a_push_that_is_lost_delays_by_a_heartbeat_at_most;
    Nothing, "L5, field report 3", l5_a_connection_that_is_lost_before_the_wait_strands_nobody;
    Nothing, "L5, T3, field report 1", l5_an_expiry_whose_push_is_lost_strands_nobody;
    Nothing, "L5, W5, N5", l5_a_rejection_whose_push_is_lost_is_told;
    Nothing, "L5, U1", l5_a_watcher_whose_push_is_lost_is_told;
    Nothing, "L5, L4", l5_a_client_without_pushes_is_not_dead;
    Nothing, "L5, field reports 1 and 9", l5_a_full_pipe_loses_no_wake;
    Nothing, "L5, field report 9", l5_what_fills_a_pipe_is_no_grant;
    Nothing, "L5, W5, U1, field report 9", l5_a_full_pipe_hides_neither_rejections_nor_watchers;
    Nothing, "L8, field report 33", l8_fencing_grows_when_the_wall_clock_is_stepped;
    Nothing, "T3, L1, field report 33", t3_a_stepped_wall_clock_moves_no_expiry;
    Nothing, "T3, L1, L8, field report 33", t3_a_store_that_lives_by_the_wall_clock_is_stepped_with_it;
}

/// Who holds, who waits, and for what.
fn holder_and_waiter(bench: &Bench, name: &str) -> (Client, Client, Lock) {
    (bench.client(), bench.client(), bench.mutex(name))
}

fn l5_a_push_that_is_lost_delays_by_a_heartbeat_at_most(bench: &Bench) -> Result<(), Cannot> {
    let (a, b, lock) = holder_and_waiter(bench, "lost");
    let held = a.acquire(&lock).held();
    let waiters = [b.acquire(&lock).queued(), b.acquire(&lock).queued()];
    bench.disconnect(&b)?;
    held.release();
    for waiter in &waiters {
        bench.pass_a_heartbeat();
        waiter.granted_within(after_a_heartbeat(bench)).release();
    }
    a.assert_empty();
    Ok(())
}

/// What a busy machine may take beyond the heartbeat that has passed.
fn after_a_heartbeat(bench: &Bench) -> Duration {
    WAKE_BOUND.saturating_sub(bench.store().heartbeat()).max(bench.steps(1))
}

fn l5_a_connection_that_is_lost_before_the_wait_strands_nobody(
    bench: &Bench,
) -> Result<(), Cannot> {
    let (a, b, lock) = holder_and_waiter(bench, "before");
    let held = a.acquire(&lock).held();
    bench.disconnect(&b)?;
    let waiter = b.acquire(&lock).queued();
    // Between the answer and the first look at the flag.
    held.release();
    bench.pass_a_heartbeat();
    waiter.granted_within(after_a_heartbeat(bench)).release();
    a.assert_empty();
    Ok(())
}

fn l5_an_expiry_whose_push_is_lost_strands_nobody(bench: &Bench) -> Result<(), Cannot> {
    let (a, b, lock) = holder_and_waiter(bench, "expiry");
    let _held = a.acquire(&lock).ttl(bench.steps(2)).held();
    let waiter = b.acquire(&lock).queued();
    bench.disconnect(&b)?;
    bench.pass(2);
    bench.pass_a_heartbeat();
    waiter.granted_within(after_a_heartbeat(bench)).release();
    a.assert_empty();
    Ok(())
}

fn l5_a_rejection_whose_push_is_lost_is_told(bench: &Bench) -> Result<(), Cannot> {
    let (a, b, lock) = holder_and_waiter(bench, "rejected");
    let held = a.acquire(&lock).held();
    bench.disconnect(&b)?;
    let waiter = b.acquire(&lock).queued();
    assert_eq!(a.cancel_all(&lock, "draining"), 1);
    bench.pass_a_heartbeat();
    assert_eq!(waiter.rejected(), cancelled("draining"));
    let waiter = b.acquire(&lock).queued();
    a.destroy(&lock, None, "gone");
    bench.pass_a_heartbeat();
    assert_eq!(waiter.rejected(), destroyed("gone"));
    assert!(!held.is_held());
    a.assert_empty();
    Ok(())
}

fn l5_a_watcher_whose_push_is_lost_is_told(bench: &Bench) -> Result<(), Cannot> {
    let (a, b, lock) = holder_and_waiter(bench, "watched");
    let held = a.acquire(&lock).held();
    let watchers = [WatchFor::Unlocked, WatchFor::Readable].map(|what| b.watches(&lock, what));
    bench.disconnect(&b)?;
    held.release();
    bench.pass_a_heartbeat();
    watchers.into_iter().for_each(Watcher::done);
    a.assert_empty();
    Ok(())
}

/// Pushes that do not arrive are no proof of a death (rule N7).
fn l5_a_client_without_pushes_is_not_dead(bench: &Bench) -> Result<(), Cannot> {
    let (a, b, lock) = holder_and_waiter(bench, "alive");
    let held = b.acquire(&lock).held();
    let waiter = a.acquire(&lock).queued();
    bench.disconnect(&b)?;
    bench.pass_a_heartbeat();
    waiter.waits();
    assert!(held.is_held());
    held.release();
    waiter.granted().release();
    b.assert_empty();
    Ok(())
}

fn l5_a_full_pipe_loses_no_wake(bench: &Bench) -> Result<(), Cannot> {
    let (a, b, lock) = holder_and_waiter(bench, "full");
    let held = a.acquire(&lock).held();
    let waiter = b.acquire(&lock).queued();
    let next = bench.while_full(&b, || {
        held.release();
        bench.pass_a_heartbeat();
        waiter.granted_within(after_a_heartbeat(bench))
    })?;
    next.release();
    a.assert_empty();
    Ok(())
}

fn l5_what_fills_a_pipe_is_no_grant(bench: &Bench) -> Result<(), Cannot> {
    let (a, b, lock) = holder_and_waiter(bench, "stale");
    let held = a.acquire(&lock).held();
    let waiter = b.acquire(&lock).queued();
    bench.while_full(&b, || {
        assert_eq!(waiter.confirm(), Confirmed::Waiting);
        bench.pass(1);
        assert_eq!(waiter.confirm(), Confirmed::Waiting);
        assert!(held.is_held());
        // Nor does it keep the client from what it is asked for.
        b.acquire(&bench.mutex("other")).held().release();
    })?;
    waiter.leave();
    held.release();
    // What is left in the pipe is older than this wait.
    let held = a.acquire(&lock).held();
    let later = b.acquire(&lock).queued();
    bench.pass_a_heartbeat();
    later.waits();
    held.release();
    later.granted().release();
    a.assert_empty();
    Ok(())
}

fn l5_a_full_pipe_hides_neither_rejections_nor_watchers(bench: &Bench) -> Result<(), Cannot> {
    let (a, b, lock) = holder_and_waiter(bench, "hidden");
    let held = a.acquire(&lock).held();
    let (waiter, watcher) = (b.acquire(&lock).queued(), b.watches(&lock, WatchFor::Unlocked));
    bench.while_full(&b, || {
        assert_eq!(a.cancel_all(&lock, "draining"), 1);
        held.release();
        bench.pass_a_heartbeat();
        assert_eq!(waiter.rejected(), cancelled("draining"));
        watcher.done();
    })?;
    a.assert_empty();
    Ok(())
}

const HOUR: Duration = Duration::from_secs(3600);

/// While the store has state of the lock: held, handed over, or idle for a moment.
fn l8_fencing_grows_when_the_wall_clock_is_stepped(bench: &Bench) -> Result<(), Cannot> {
    let (a, b, lock) = holder_and_waiter(bench, "stepped");
    let mut last = a.acquire(&lock).held();
    for step in [WallStep::Back(HOUR), WallStep::Forward(HOUR * 3), WallStep::Back(HOUR * 2)] {
        let mut waiter = b.acquire(&lock).queued();
        bench.store().step_wall_clock(step)?;
        if bench.store().lives_by_the_wall_clock() && matches!(step, WallStep::Forward(_)) {
            // Whoever waited has been silent for hours (rule L4), and asks anew.
            waiter = b.acquire(&lock).queued();
        }
        last.release();
        let next = waiter.granted();
        assert!(next.fencing() > last.fencing(), "after a step, handed over: {step:?}");
        next.release();
        bench.store().step_wall_clock(step)?;
        last = a.acquire(&lock).held();
        assert!(last.fencing() > next.fencing(), "after a step, from idle: {step:?}");
    }
    last.release();
    a.assert_empty();
    Ok(())
}

fn t3_a_stepped_wall_clock_moves_no_expiry(bench: &Bench) -> Result<(), Cannot> {
    if bench.store().lives_by_the_wall_clock() {
        return Err(Cannot::new("this store lives by the wall clock, for which there is a case"));
    }
    let (a, b, lock) = holder_and_waiter(bench, "stepped");
    let ttl = bench.steps(20);
    let since = a.stopwatch();
    let held = a.acquire(&lock).ttl(ttl).held();
    let waiter = b.acquire(&lock).queued();
    for step in [WallStep::Forward(HOUR), WallStep::Back(HOUR * 2), WallStep::Forward(HOUR)] {
        bench.store().step_wall_clock(step)?;
        held.assert_left(ttl, &since);
        waiter.waits();
    }
    bench.pass(20);
    waiter.granted().release();
    a.assert_empty();
    Ok(())
}

/// The opposite of the case before: a step back ends nothing, a step ahead ends what it passes, and
/// that is over for everybody.
fn t3_a_store_that_lives_by_the_wall_clock_is_stepped_with_it(bench: &Bench) -> Result<(), Cannot> {
    if !bench.store().lives_by_the_wall_clock() {
        return Err(Cannot::new("time is no wall clock here, for which there is a case"));
    }
    let (a, b, lock) = holder_and_waiter(bench, "lives-by-it");
    let ttl = bench.steps(80);
    let first = a.acquire(&lock).ttl(ttl).held();
    let waiter = b.acquire(&lock).ttl(ttl).queued();
    bench.store().step_wall_clock(WallStep::Back(HOUR))?;
    waiter.waits();
    assert!(matches!(first.renew(), Renewed::Held { .. }));
    let Remaining::Left(left) = first.remaining() else { panic!("a step back ended it") };
    assert!(left > ttl, "{left:?} are left: the clock was not stepped");
    let since = b.stopwatch();
    first.release();
    let second = waiter.granted();
    second.assert_left(ttl, since);

    bench.store().step_wall_clock(WallStep::Forward(HOUR))?;
    assert_eq!(second.remaining(), Remaining::Gone);
    assert_eq!(second.renew(), Renewed::Unknown);
    let third = a.acquire(&lock).ttl(ttl).held();
    assert!(third.fencing() > second.fencing() && second.fencing() > first.fencing());
    assert_eq!(second.try_release(), Released::Unknown, "it was over");
    assert!(third.is_held(), "who was late ended another's grant");
    third.release();
    a.assert_empty();
    Ok(())
}
