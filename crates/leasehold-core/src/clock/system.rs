//! The machine's clock, with a timer thread that lives only while timers wait.

use std::{
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    task::Waker,
    thread,
    time::Duration,
};

use super::{Clock, LocalTime, TimerId, timers::Timers};

/// How long the timer thread stays when no timer waits, so that a busy lock does not start one
/// thread per wait.
const LINGER: Duration = Duration::from_secs(1);

/// The longest sleep of the timer thread. Its waits do not count suspend, the clock does: after a
/// resume a timer may fire this late, and no later.
const STRIDE: Duration = Duration::from_secs(5);

/// The boot-time clock of this machine: it counts suspend and no clock change moves it.
///
/// Timers are fired by a thread of this clock that starts with the first timer and ends about a
/// second after the last; it keeps no process alive and needs no runtime (rule W9).
#[derive(Clone, Debug, Default)]
pub struct SystemClock(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    timers: Timers,
    thread_runs: bool,
}

impl SystemClock {
    /// A clock with no timers and no thread yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> LocalTime {
        now()
    }

    fn set_timer(&self, at: LocalTime, waker: Waker) -> TimerId {
        let mut state = self.0.lock();
        let (id, earliest) = state.timers.set(at, waker);
        if !state.thread_runs {
            state.thread_runs = true;
            drop(state);
            Shared::start_thread(&self.0);
        } else if earliest {
            drop(state);
            self.0.changed.notify_one();
        }
        id
    }

    fn clear_timer(&self, timer: TimerId) {
        // The waker is dropped after the lock: its drop may run anything.
        let waker = self.0.lock().timers.clear(timer);
        drop(waker);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start_thread(this: &Arc<Self>) {
        let shared = Arc::clone(this);
        let started = thread::Builder::new()
            .name("leasehold-timers".into())
            .spawn(move || shared.fire_until_idle());
        if started.is_err() {
            // No thread can be had now; the next timer tries again, and every poll of a sleep
            // still asks the clock.
            this.lock().thread_runs = false;
        }
    }

    fn fire_until_idle(&self) {
        let mut state = self.lock();
        loop {
            while let Some(waker) = state.timers.pop_due(now()) {
                drop(state);
                // A waker that panics must not end the timers of everybody else; the panic has been
                // reported by its hook.
                let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| waker.wake()));
                state = self.lock();
            }
            let idle = state.timers.next().is_none();
            let pause = state.timers.next().map_or(LINGER, |at| at.since(now()).min(STRIDE));
            if pause.is_zero() {
                continue;
            }
            let (next, waited) =
                self.changed.wait_timeout(state, pause).unwrap_or_else(PoisonError::into_inner);
            state = next;
            if idle && waited.timed_out() && state.timers.next().is_none() {
                state.thread_runs = false;
                return;
            }
        }
    }
}

fn now() -> LocalTime {
    #[cfg(target_os = "linux")]
    const ID: rustix::time::ClockId = rustix::time::ClockId::Boottime;
    // Never compiled here: elsewhere the monotonic clock stands in, which may not count suspend.
    #[cfg(not(target_os = "linux"))]
    const ID: rustix::time::ClockId = rustix::time::ClockId::Monotonic;
    let time = rustix::time::clock_gettime(ID);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
    LocalTime(seconds * 1_000_000 + nanos / 1000)
}

#[cfg(test)]
mod tests {
    use std::{
        sync::mpsc::{Sender, channel},
        task::Wake,
        time::Instant,
    };

    use super::*;

    struct Send(Sender<u32>, u32);

    impl Wake for Send {
        fn wake(self: Arc<Self>) {
            self.0.send(self.1).unwrap();
        }
    }

    struct Panic;

    impl Wake for Panic {
        fn wake(self: Arc<Self>) {
            panic!("a waker of the test");
        }
    }

    #[test]
    fn a_waker_that_panics_ends_no_other_timer() {
        let clock = SystemClock::new();
        let (sent, fired) = channel();
        clock.set_timer(clock.now(), Arc::new(Panic).into());
        let later = clock.now().after(Duration::from_millis(20));
        clock.set_timer(later, Arc::new(Send(sent, 1)).into());
        assert_eq!(fired.recv_timeout(Duration::from_secs(5)), Ok(1));
    }

    #[test]
    fn timers_fire_in_order_and_the_thread_ends() {
        let clock = SystemClock::new();
        let (sent, fired) = channel();
        let start = Instant::now();
        let at = |ms| clock.now().after(Duration::from_millis(ms));
        let timer = |ms, n| clock.set_timer(at(ms), Arc::new(Send(sent.clone(), n)).into());
        timer(60, 2);
        timer(20, 1);
        let cleared = timer(10, 0);
        clock.clear_timer(cleared);
        assert_eq!(fired.recv_timeout(Duration::from_secs(5)), Ok(1));
        assert_eq!(fired.recv_timeout(Duration::from_secs(5)), Ok(2));
        assert!(start.elapsed() >= Duration::from_millis(60));
        while clock.0.lock().thread_runs {
            thread::yield_now();
            assert!(start.elapsed() < Duration::from_secs(10), "the timer thread stays");
        }
    }
}
