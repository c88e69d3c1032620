//! One atomic step on a lock: its time, read at most once, and the wakers to run after it.

use std::{
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use crate::{Clock, LocalTime, StoreTime, Wake};

/// The store's time: the wall clock when the store was made, moved on by the store's clock alone.
/// So no change of the wall clock moves it later (rules L1, L8).
#[derive(Debug)]
pub(super) struct Timeline {
    pub(super) clock: Arc<dyn Clock>,
    local_origin: LocalTime,
    store_origin: StoreTime,
}

impl Timeline {
    pub(super) fn starting_now(clock: Arc<dyn Clock>) -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let store_origin = StoreTime::default().after(wall);
        Self { local_origin: clock.now(), clock, store_origin }
    }

    pub(super) const fn store_time(&self, local: LocalTime) -> StoreTime {
        StoreTime(self.store_origin.0.saturating_add(local.0.saturating_sub(self.local_origin.0)))
    }
}

/// What one step carries along.
pub(super) struct Step<'a> {
    timeline: &'a Timeline,
    now: Option<LocalTime>,
    first: Option<Wake>,
    more: Vec<Wake>,
    /// Somebody stopped waiting without being granted. Tells the alarm that this is no hand-off,
    /// after which the next waiter would come along soon.
    pub(super) left: bool,
}

impl<'a> Step<'a> {
    pub(super) const fn new(timeline: &'a Timeline) -> Self {
        Self { timeline, now: None, first: None, more: Vec::new(), left: false }
    }

    /// The time of the step. It is read when it is first asked for, which is after the lock's
    /// mutex was taken: so time never runs backwards for one lock.
    #[inline]
    pub(super) fn now(&mut self) -> LocalTime {
        match self.now {
            Some(now) => now,
            None => *self.now.insert(self.timeline.clock.now()),
        }
    }

    #[inline]
    pub(super) fn store_time(&mut self) -> StoreTime {
        let now = self.now();
        self.timeline.store_time(now)
    }

    /// Reads the time again, for a step that goes on as another one.
    pub(super) const fn renew(&mut self) {
        self.now = None;
    }

    /// Notes whom to wake. A hand-off has one, for whom nothing is allocated.
    pub(super) fn wake(&mut self, wake: Wake) {
        match self.first {
            None => self.first = Some(wake),
            Some(_) => self.more.push(wake),
        }
    }

    /// Wakes, in the order of the grants. Wakers may run anything, so no lock may be held here.
    #[inline]
    pub(super) fn finish(&mut self) {
        if let Some(first) = self.first.take() {
            first.notify();
            self.more.iter().for_each(Wake::notify);
        }
    }
}
