//! The timers that wait on one clock, by time.

use std::{collections::BTreeMap, task::Waker};

use super::LocalTime;

/// Names a timer that was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimerId {
    at: LocalTime,
    serial: u64,
}

impl TimerId {
    /// Names a timer for `at`; `serial` is the clock's own and tells timers of one time apart.
    #[must_use]
    pub const fn new(at: LocalTime, serial: u64) -> Self {
        Self { at, serial }
    }

    /// The number that the clock gave it.
    #[must_use]
    pub const fn serial(self) -> u64 {
        self.serial
    }
}

#[derive(Debug, Default)]
pub(super) struct Timers {
    waiting: BTreeMap<TimerId, Waker>,
    serial: u64,
}

impl Timers {
    /// Adds a timer and says whether it is now the earliest.
    pub(super) fn set(&mut self, at: LocalTime, waker: Waker) -> (TimerId, bool) {
        self.serial += 1;
        let id = TimerId { at, serial: self.serial };
        let earliest = self.next().is_none_or(|next| at < next);
        self.waiting.insert(id, waker);
        (id, earliest)
    }

    pub(super) fn clear(&mut self, id: TimerId) -> Option<Waker> {
        self.waiting.remove(&id)
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn next(&self) -> Option<LocalTime> {
        self.waiting.first_key_value().map(|(id, _)| id.at)
    }

    pub(super) fn pop_due(&mut self, now: LocalTime) -> Option<Waker> {
        let entry = self.waiting.first_entry()?;
        (entry.key().at <= now).then(|| entry.remove())
    }
}
