//! The timer of one lock, set only while an expiry would let somebody in (rules T3, W9).

use std::{
    sync::{Arc, Weak},
    task::{Wake, Waker},
};

use super::store::Shared;
use crate::{Clock, LocalTime, LockId, clock::TimerId};

/// At most one timer of the clock.
#[derive(Default)]
pub(super) struct Alarm {
    armed: Option<Armed>,
    /// Made once per lock, cloned per timer.
    bell: Option<Waker>,
}

struct Armed {
    at: LocalTime,
    timer: TimerId,
}

impl Alarm {
    /// When it rings, if it does.
    pub(super) fn at(&self) -> Option<LocalTime> {
        self.armed.as_ref().map(|armed| armed.at)
    }

    /// Sees to it that the lock is looked at by `at`. One that rings earlier stays: it looks, and
    /// sets the next. So a lock that changes hands often does not set a timer each time.
    ///
    /// False: that time has passed meanwhile, and nothing will ring.
    pub(super) fn ring_by(
        &mut self,
        at: LocalTime,
        clock: &Arc<dyn Clock>,
        bell: impl FnOnce() -> Waker,
    ) -> bool {
        if self.at().is_some_and(|armed| armed <= at) {
            return true;
        }
        self.clear(clock);
        let bell = self.bell.get_or_insert_with(bell).clone();
        self.armed = Some(Armed { at, timer: clock.set_timer(at, bell) });
        // A manual clock that was moved since the step read it fires this timer only when it is
        // moved again.
        let ahead = clock.now() < at;
        if !ahead {
            self.clear(clock);
        }
        ahead
    }

    /// Takes the timer back; one that has rung already is taken back too.
    pub(super) fn clear(&mut self, clock: &Arc<dyn Clock>) {
        if let Some(armed) = self.armed.take() {
            clock.clear_timer(armed.timer);
        }
    }
}

/// What a timer does: it looks at its one lock. It keeps no store alive.
pub(super) struct Bell {
    store: Weak<Shared>,
    lock: Arc<LockId>,
}

impl Bell {
    pub(super) fn waker(store: &Arc<Shared>, lock: &Arc<LockId>) -> Waker {
        Arc::new(Self { store: Arc::downgrade(store), lock: Arc::clone(lock) }).into()
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        if let Some(store) = self.store.upgrade() {
            store.ring(&self.lock);
        }
    }
}
