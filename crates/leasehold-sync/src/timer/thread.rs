//! Timers on a thread of this crate's own.
//!
//! The thread is started by the first wait with a timeout, and ends when there was none for a
//! while (rule W9); it keeps no process alive. Most waits end before their deadline, often at
//! once, so a wait that begins or ends costs O(1) and wakes nobody: it is noted in the shard of
//! its thread, and the thread is told only if it would sleep beyond the deadline.
//!
//! Invariant: a wait that is noted is seen by the thread at its deadline or before. A wait is
//! noted first and [`WAKE_AT`] is read then; the thread sets `WAKE_AT` to "never" first and looks
//! at the shards then, one after the other, each under its mutex. So if a look came too early for
//! a wait, that wait finds "never", or what was set after the look, and tells the thread if that is
//! beyond its deadline.

use std::{
    cell::Cell,
    sync::{
        Condvar, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    task::{Context, Poll, Waker},
    thread,
    time::Duration,
};

use parking_lot::Mutex;

use super::{
    clock::{deadline_after, now},
    shard::Shard,
};

/// How long the thread waits for another timer before it ends.
const LINGER: Duration = Duration::from_secs(5);
/// Threads share them in turn, so that tasks of a few threads do not meet.
const SHARDS: usize = 8;
const NEVER: u64 = u64::MAX;

static TIMERS: [Aligned; SHARDS] = [const { Aligned(Mutex::new(Shard::new())) }; SHARDS];
/// When the thread looks next; only changed with [`CONTROL`] held.
static WAKE_AT: AtomicU64 = AtomicU64::new(NEVER);
/// Whether the thread runs.
static CONTROL: std::sync::Mutex<bool> = std::sync::Mutex::new(false);
static CHANGED: Condvar = Condvar::new();

/// On cache lines of its own.
#[repr(align(128))]
struct Aligned(Mutex<Shard>);

/// Ready once its time has come.
pub(crate) enum ThreadTimer {
    /// Started, and not waited for yet.
    New { deadline: u64 },
    /// Noted in a shard.
    Set { shard: u8, number: u32 },
}

impl ThreadTimer {
    /// Starts now. `None`: no clock goes that far.
    #[inline]
    pub(crate) fn start(timeout: Duration) -> Option<Self> {
        Some(Self::New { deadline: deadline_after(timeout)? })
    }

    /// As [`Self::start`], for a century at most.
    #[cfg(feature = "tokio")]
    pub(super) fn start_within(timeout: Duration) -> Self {
        let century = Duration::from_secs(100 * 366 * 24 * 3600);
        Self::start(timeout.min(century)).expect("the clock goes that far")
    }

    #[inline]
    pub(crate) fn poll(&mut self, cx: &Context<'_>) -> Poll<()> {
        let waker = cx.waker().clone();
        match *self {
            Self::New { deadline } => {
                let shard = shard_here();
                let number = TIMERS[usize::from(shard)].0.lock().add(deadline, waker);
                *self = Self::Set { shard, number };
                look_by(deadline, cx);
                Poll::Pending
            }
            Self::Set { shard, number } => renew(shard, number, waker, cx),
        }
    }
}

impl Drop for ThreadTimer {
    #[inline]
    fn drop(&mut self) {
        if let Self::Set { shard, number } = *self {
            let waker = TIMERS[usize::from(shard)].0.lock().remove(number);
            // Foreign code, so not under the lock.
            drop(waker);
        }
    }
}

#[cold]
fn renew(shard: u8, number: u32, waker: Waker, cx: &Context<'_>) -> Poll<()> {
    let now = now();
    let mut locked = TIMERS[usize::from(shard)].0.lock();
    let renewed = locked.renew(number, waker, now);
    drop(locked);
    match renewed {
        Ok((deadline, old)) => {
            drop(old);
            look_by(deadline, cx);
            Poll::Pending
        }
        Err(_unused) => Poll::Ready(()),
    }
}

fn shard_here() -> u8 {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static SHARD: Cell<Option<u8>> = const { Cell::new(None) };
    }
    // While a thread ends, its values may be gone; any shard will do.
    let known = SHARD.try_with(Cell::get).ok().flatten();
    known.unwrap_or_else(|| {
        let next = NEXT.fetch_add(1, Ordering::Relaxed) % SHARDS;
        let shard = u8::try_from(next).unwrap_or(0);
        let _ = SHARD.try_with(|known| known.set(Some(shard)));
        shard
    })
}

/// Makes sure that the thread looks no later than that.
#[inline]
fn look_by(deadline: u64, cx: &Context<'_>) {
    if WAKE_AT.load(Ordering::Relaxed) > deadline {
        tell_thread(deadline, cx);
    }
}

#[cold]
fn tell_thread(deadline: u64, cx: &Context<'_>) {
    let mut runs = control();
    *runs = *runs || start_thread();
    let started = *runs;
    if started && WAKE_AT.load(Ordering::Relaxed) > deadline {
        WAKE_AT.store(deadline, Ordering::Relaxed);
        CHANGED.notify_one();
    }
    drop(runs);
    if !started {
        // Out of threads: the wait looks at the clock itself, again and again.
        cx.waker().wake_by_ref();
    }
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
    loop {
        if !sleep() {
            return;
        }
        let next = look(&mut due);
        let running = control();
        WAKE_AT.fetch_min(next, Ordering::Relaxed);
        drop(running);
    }
}

/// Sleeps until the next look is due. False: there was nothing to wait for, and the thread ends.
fn sleep() -> bool {
    let mut running = control();
    loop {
        let (wake_at, now) = (WAKE_AT.load(Ordering::Relaxed), now());
        if wake_at <= now {
            WAKE_AT.store(NEVER, Ordering::Relaxed);
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

/// Wakes who is due, and says when the next is.
fn look(due: &mut Vec<Waker>) -> u64 {
    let mut next = NEVER;
    for shard in &TIMERS {
        let first = shard.0.lock().look(now(), due);
        next = next.min(first.unwrap_or(NEVER));
        for waker in due.drain(..) {
            // A waker that panics must not end the timers of everybody else.
            let woken = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| waker.wake()));
            // Nor may what it panics with: its drop is foreign code too.
            let _ = woken.map_err(std::mem::forget);
        }
    }
    next
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_timer_leaves_nothing_behind() {
        let cx = Context::from_waker(Waker::noop());
        let mut timers: Vec<ThreadTimer> = (0..100)
            .map(|_| ThreadTimer::start(Duration::from_secs(3600)).expect("within the clock"))
            .collect();
        let here = &TIMERS[usize::from(shard_here())].0;
        for timer in &mut timers {
            assert!(timer.poll(&cx).is_pending());
            assert!(timer.poll(&cx).is_pending());
        }
        let held = here.lock().len();
        assert!(held >= 100);
        drop(timers);
        assert!(here.lock().len() <= held - 100);
    }

    #[test]
    fn a_time_beyond_the_clock_makes_no_timer() {
        assert!(ThreadTimer::start(Duration::MAX).is_none());
    }
}
