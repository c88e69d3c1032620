//! One atomic step on a lock: its time, read at most once, and the wakers to run after it.

use std::{
    fmt,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use crate::{Clock, LocalTime, StoreTime, Wake};

/// The time of a store: the wall clock when the store was made, moved on by the store's clock alone.
/// So no change of the wall clock moves it later (rules L1, L8).
#[derive(Debug)]
pub struct Timeline {
    clock: Arc<dyn Clock>,
    local_origin: LocalTime,
    store_origin: StoreTime,
}

impl Timeline {
    /// Starts at the wall clock's time and follows `clock` from now on.
    #[must_use]
    pub fn starting_now(clock: Arc<dyn Clock>) -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let store_origin = StoreTime::default().after(wall);
        Self { local_origin: clock.now(), clock, store_origin }
    }

    /// The clock that decides every expiry.
    #[must_use]
    pub const fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// The store's time at a time of its clock.
    #[must_use]
    pub const fn store_time(&self, local: LocalTime) -> StoreTime {
        StoreTime(self.store_origin.0.saturating_add(local.0.saturating_sub(self.local_origin.0)))
    }
}

/// What one step carries along: its time, and whom to wake after it.
///
/// Make it, lock what is yours, operate on one [`LockMachine`](super::LockMachine) or several,
/// unlock, and [`finish`](Self::finish).
#[must_use = "whoever was granted in the step is woken by `finish`"]
pub struct Step<'a> {
    timeline: &'a Timeline,
    now: Option<LocalTime>,
    first: Option<Wake>,
    more: Vec<Wake>,
    /// Somebody stopped waiting without being granted. Tells the alarm that this is no hand-off,
    /// after which the next waiter would come along soon.
    pub(super) left: bool,
}

impl<'a> Step<'a> {
    /// A step that has not looked at the clock yet.
    pub const fn new(timeline: &'a Timeline) -> Self {
        Self { timeline, now: None, first: None, more: Vec::new(), left: false }
    }

    /// The time of the step. It is read when an operation first asks for it, which is after your
    /// mutex was taken: so time never runs backwards for one lock.
    #[inline]
    pub fn now(&mut self) -> LocalTime {
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
    pub(crate) const fn renew(&mut self) {
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
    pub fn finish(&mut self) {
        if let Some(first) = self.first.take() {
            first.notify();
            self.more.iter().for_each(Wake::notify);
        }
    }
}

impl fmt::Debug for Step<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wakes = usize::from(self.first.is_some()) + self.more.len();
        f.debug_struct("Step").field("now", &self.now).field("wakes", &wakes).finish()
    }
}
