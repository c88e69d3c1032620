//! A clock that only a test moves.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Waker,
    time::Duration,
};

use super::{Clock, LocalTime, TimerId, timers::Timers};

/// A clock that stands still until [`advance`](Self::advance) is called. Clones are one clock.
#[derive(Clone, Debug, Default)]
pub struct ManualClock(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    now: LocalTime,
    timers: Timers,
}

impl ManualClock {
    /// A clock that stands at zero.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Moves the clock and fires what became due, one after the other, in the order of their times.
    pub fn advance(&self, by: Duration) {
        let mut state = self.lock();
        let end = state.now.after(by);
        while let Some(next) = state.timers.next().filter(|next| *next <= end) {
            state.now = state.now.max(next);
            let now = state.now;
            let Some(waker) = state.timers.pop_due(now) else { break };
            drop(state);
            waker.wake();
            state = self.lock();
        }
        state.now = state.now.max(end);
    }

    /// How many timers wait. A test that wants a wait to have begun looks here.
    #[must_use]
    pub fn timers(&self) -> usize {
        self.lock().timers.len()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for ManualClock {
    fn now(&self) -> LocalTime {
        self.lock().now
    }

    fn set_timer(&self, at: LocalTime, waker: Waker) -> TimerId {
        self.lock().timers.set(at, waker).0
    }

    fn clear_timer(&self, timer: TimerId) {
        let waker = self.lock().timers.clear(timer);
        drop(waker);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_saturate_and_round_up() {
        assert_eq!(LocalTime(5).after(Duration::MAX), LocalTime::MAX);
        assert_eq!(LocalTime(5).after(Duration::from_nanos(1)), LocalTime(6));
        assert_eq!(LocalTime(5).since(LocalTime(9)), Duration::ZERO);
    }
}
