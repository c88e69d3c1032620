//! Timers on a thread of this crate's own, for waits outside of a Tokio runtime with time.
//!
//! The thread is started by the first wait with a timeout, sleeps until the earliest deadline,
//! and ends when there was none for a while (rule W9): it wakes up for nothing else, and it keeps
//! no process alive.

use std::{
    collections::BTreeMap,
    mem,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    thread,
    time::{Duration, Instant},
};

/// How long the thread waits for another timer before it ends.
const LINGER: Duration = Duration::from_secs(5);

static TIMERS: Mutex<Timers> =
    Mutex::new(Timers { waiting: BTreeMap::new(), serial: 0, thread_runs: false });
static CHANGED: Condvar = Condvar::new();

/// When, and a number that tells timers of one moment apart.
type Key = (Instant, u64);

/// Ready once its time has come. The clock decides, the thread only wakes.
pub(crate) struct ThreadTimer {
    deadline: Instant,
    set: Option<Key>,
}

struct Timers {
    waiting: BTreeMap<Key, Waker>,
    serial: u64,
    thread_runs: bool,
}

impl ThreadTimer {
    /// Starts now. `None`: no clock goes that far.
    pub(crate) fn start(timeout: Duration) -> Option<Self> {
        Some(Self { deadline: Instant::now().checked_add(timeout)?, set: None })
    }

    pub(crate) fn poll(&mut self, cx: &Context<'_>) -> Poll<()> {
        if self.set.is_some() && Instant::now() >= self.deadline {
            self.clear();
            return Poll::Ready(());
        }
        let waker = cx.waker().clone();
        let mut timers = lock();
        let old = match self.set.and_then(|key| timers.waiting.get_mut(&key)) {
            Some(known) => Some(mem::replace(known, waker)),
            None => {
                timers.serial += 1;
                let key = (self.deadline, timers.serial);
                self.set = Some(key);
                let earliest = timers.waiting.first_key_value().is_none_or(|(&at, _)| key < at);
                timers.waiting.insert(key, waker);
                if earliest {
                    CHANGED.notify_one();
                }
                None
            }
        };
        let started = timers.thread_runs || start_thread();
        timers.thread_runs = started;
        drop(timers);
        // Foreign code, so not under the lock.
        drop(old);
        if !started {
            // Out of threads: the wait looks at the clock itself, again and again.
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }

    fn clear(&mut self) {
        if let Some(key) = self.set.take() {
            let waker = lock().waiting.remove(&key);
            drop(waker);
        }
    }
}

impl Drop for ThreadTimer {
    fn drop(&mut self) {
        self.clear();
    }
}

fn lock() -> MutexGuard<'static, Timers> {
    // Every step leaves the timers whole, whatever a waker does afterwards.
    TIMERS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn start_thread() -> bool {
    let small = 128 * 1024;
    let named = thread::Builder::new().name("leasehold-timer".into()).stack_size(small);
    named.spawn(run).is_ok()
}

fn run() {
    let mut timers = lock();
    loop {
        let now = Instant::now();
        let Some(first) = timers.waiting.first_entry() else {
            let (held, waited) =
                CHANGED.wait_timeout(timers, LINGER).unwrap_or_else(PoisonError::into_inner);
            timers = held;
            if waited.timed_out() && timers.waiting.is_empty() {
                timers.thread_runs = false;
                return;
            }
            continue;
        };
        let deadline = first.key().0;
        if deadline > now {
            timers = CHANGED
                .wait_timeout(timers, deadline - now)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
            continue;
        }
        let waker = first.remove();
        drop(timers);
        // A waker that panics must not end the timers of everybody else.
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| waker.wake()));
        timers = lock();
    }
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
        for timer in &mut timers {
            assert!(timer.poll(&cx).is_pending());
            assert!(timer.poll(&cx).is_pending());
        }
        let keys: Vec<Key> = timers.iter().filter_map(|timer| timer.set).collect();
        assert_eq!(keys.len(), 100);
        assert!(keys.iter().all(|key| lock().waiting.contains_key(key)));
        drop(timers);
        assert!(keys.iter().all(|key| !lock().waiting.contains_key(key)));
    }

    #[test]
    fn a_time_beyond_the_clock_makes_no_timer() {
        assert!(ThreadTimer::start(Duration::MAX).is_none());
    }
}
