//! Timers on a thread of this crate's own.
//!
//! The thread is started by the first wait with a timeout, and ends when there was none for a
//! while (rule W9); it keeps no process alive. Most waits end before their deadline, often at
//! once, so a wait that begins or ends costs O(1) and wakes nobody: it is noted in the shard of
//! its thread, and the thread is told only if it would look too late.
//!
//! A wait with a timeout of [`LONG`] or more does not look at the clock: its timeout begins when the
//! thread looks, which it does within [`SOON`]. So it is late by that at most, and never early.
//!
//! Invariant: the thread sees a noted wait at its deadline or before, or within `SOON`. A wait
//! is noted first and [`WAKE_AT`] or [`LOOKS_SOON`] is read then; the thread sets these to "never" and "no"
//! first and looks at the shards then, one after the other, each under its gate. So if a look came
//! too early for a wait, that wait finds "never" or "no", or what was set after the look, and tells the
//! thread if that is not enough.

use std::{
    sync::{
        Condvar, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
    thread,
    time::Duration,
};

use super::{
    clock::now,
    shard::Seen,
    shards::SHARDS,
    slots::{self, Renewed, Slot, SlotId},
};

/// How long the thread waits for another timer before it ends.
const LINGER: Duration = Duration::from_secs(5);
/// From here on, in nanoseconds, a timeout may be late by [`SOON`], half a percent.
const LONG: u64 = 1_000_000_000;
/// Within this the thread looks at waits that have not looked at the clock.
const SOON: u64 = 5_000_000;
const NEVER: u64 = u64::MAX;

/// When the thread looks next; only changed with [`CONTROL`] held.
static WAKE_AT: AtomicU64 = AtomicU64::new(NEVER);
/// Whether that is within [`SOON`]; only changed with [`CONTROL`] held.
static LOOKS_SOON: AtomicBool = AtomicBool::new(false);
/// Whether the thread runs.
static CONTROL: std::sync::Mutex<bool> = std::sync::Mutex::new(false);
static CHANGED: Condvar = Condvar::new();

/// Begins a wait, of that many nanoseconds.
#[inline]
pub(super) fn begin(timeout: u64, cx: &Context<'_>) -> Slot {
    if timeout < LONG {
        return begin_now(timeout, cx);
    }
    let slot = Slot::fresh(timeout, cx.waker().clone());
    if !LOOKS_SOON.load(Ordering::Relaxed) {
        look_soon(cx);
    }
    slot
}

#[inline(never)]
fn begin_now(timeout: u64, cx: &Context<'_>) -> Slot {
    let deadline = now() + timeout;
    let slot = Slot::far(deadline, cx.waker().clone());
    look_by(deadline, cx);
    slot
}

/// Lets a wait wake this task, if `waits` still says that it waits.
#[cold]
pub(super) fn renew(slot: SlotId, cx: &Context<'_>, waits: impl FnOnce() -> bool) -> Poll<()> {
    let renewed = slot.renew(cx.waker().clone(), now(), waits);
    match renewed {
        Renewed::Waits(deadline) => {
            look_by(deadline, cx);
            Poll::Pending
        }
        Renewed::Due | Renewed::Over => Poll::Ready(()),
    }
}

/// Makes sure that the thread looks no later than that.
#[inline]
fn look_by(deadline: u64, cx: &Context<'_>) {
    if WAKE_AT.load(Ordering::Relaxed) > deadline {
        tell_thread(deadline, false, cx);
    }
}

#[cold]
fn look_soon(cx: &Context<'_>) {
    tell_thread(now() + SOON, true, cx);
}

#[cold]
fn tell_thread(deadline: u64, soon: bool, cx: &Context<'_>) {
    let mut runs = control();
    *runs = *runs || start_thread();
    let started = *runs;
    if started && look_no_later(&runs, deadline, soon) {
        CHANGED.notify_one();
    }
    drop(runs);
    if !started {
        // Out of threads: the wait looks at the clock itself, again and again.
        cx.waker().wake_by_ref();
    }
}

/// Says whether that is sooner than the thread would have looked.
fn look_no_later(_control: &MutexGuard<'_, bool>, deadline: u64, soon: bool) -> bool {
    if soon {
        LOOKS_SOON.store(true, Ordering::Relaxed);
    }
    WAKE_AT.fetch_min(deadline, Ordering::Relaxed) > deadline
}

fn control() -> MutexGuard<'static, bool> {
    CONTROL.lock().unwrap_or_else(PoisonError::into_inner)
}

fn start_thread() -> bool {
    let small = 128 * 1024;
    let named = thread::Builder::new().name("leasehold-timer".into()).stack_size(small);
    named.spawn(run).is_ok()
}

fn run() {
    let mut due = Vec::new();
    while sleep() {
        let seen = look(&mut due);
        let running = control();
        look_no_later(&running, seen.next.unwrap_or(NEVER), false);
        if seen.fresh {
            // Where waits begin there will be more, and none of them has to tell.
            look_no_later(&running, now() + SOON, true);
        }
    }
}

/// Sleeps until the next look is due. False: there was nothing to wait for, and the thread ends.
fn sleep() -> bool {
    let mut running = control();
    loop {
        let (wake_at, now) = (WAKE_AT.load(Ordering::Relaxed), now());
        if wake_at <= now {
            WAKE_AT.store(NEVER, Ordering::Relaxed);
            LOOKS_SOON.store(false, Ordering::Relaxed);
            return true;
        }
        let long = if wake_at == NEVER { LINGER } else { Duration::from_nanos(wake_at - now) };
        let (held, waited) =
            CHANGED.wait_timeout(running, long).unwrap_or_else(PoisonError::into_inner);
        running = held;
        if waited.timed_out() && WAKE_AT.load(Ordering::Relaxed) == NEVER {
            *running = false;
            return false;
        }
    }
}

/// Wakes who is due, and says when the next is and whether waits were begun since the last look.
fn look(due: &mut Vec<Waker>) -> Seen {
    let mut all = Seen { next: None, fresh: false };
    for shard in 0..SHARDS {
        let seen = slots::look(shard, now, due);
        all.next = all.next.into_iter().chain(seen.next).min();
        all.fresh |= seen.fresh;
        for waker in due.drain(..) {
            // A waker that panics must not end the timers of everybody else.
            let woken = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| waker.wake()));
            // Nor may what it panics with: its drop is foreign code too.
            let _ = woken.map_err(std::mem::forget);
        }
    }
    all
}
