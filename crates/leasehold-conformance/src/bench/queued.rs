//! A waiter as a case has it.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use leasehold_core::{Acquire, Confirmed, LockId, Place, Rejection, Released, Token};

use super::{
    Ask, Held, WAKE_BOUND, WeakBackend,
    block::{answer, block_on},
    living,
};

/// A place in the queue, or what was one. Dropping it does nothing.
#[derive(Clone, Debug)]
pub struct Queued {
    client: WeakBackend,
    request: Acquire,
    place: Place,
}

impl Queued {
    pub(super) fn new(client: WeakBackend, request: Acquire, place: Place) -> Self {
        Self { client, request, place }
    }

    /// The place that an answer to `ask` told.
    #[must_use]
    pub fn resume(ask: Ask, place: Place) -> Self {
        let (client, request) = ask.into_parts();
        Self::new(client, request, place)
    }

    /// Its token.
    #[must_use]
    pub const fn token(&self) -> &Token {
        &self.request.token
    }

    /// The place as the store told it.
    #[must_use]
    pub const fn place(&self) -> &Place {
        &self.place
    }

    /// The request that was queued.
    #[must_use]
    pub const fn request(&self) -> &Acquire {
        &self.request
    }

    fn lock(&self) -> &Arc<LockId> {
        &self.request.lock
    }

    /// Asks what became of it.
    #[track_caller]
    pub fn confirm(&self) -> Confirmed {
        answer(living(&self.client).confirm(self.lock(), self.token()))
    }

    /// Expects that it still waits.
    #[track_caller]
    pub fn waits(&self) {
        let found = self.confirm();
        assert_eq!(found, Confirmed::Waiting, "expected the waiter to wait");
    }

    /// Expects that it is woken, whatever for.
    #[track_caller]
    pub fn woken(&self) {
        self.woken_within(WAKE_BOUND);
    }

    /// Expects that it is woken within this time.
    #[track_caller]
    pub fn woken_within(&self, bound: Duration) {
        let woken = block_on(self.place.wake.notified(), bound);
        assert!(woken.is_some(), "the waiter was not woken within {bound:?} (rule L5)");
    }

    /// Expects that it is woken and granted.
    #[track_caller]
    #[must_use]
    pub fn granted(&self) -> Held {
        self.granted_within(WAKE_BOUND)
    }

    /// Expects that it is woken and granted within this time.
    #[track_caller]
    #[must_use]
    pub fn granted_within(&self, bound: Duration) -> Held {
        self.held(self.decided(bound))
    }

    /// Expects that it is granted by now, woken or not.
    #[track_caller]
    #[must_use]
    pub fn granted_by_now(&self) -> Held {
        self.held(self.confirm())
    }

    #[track_caller]
    fn held(&self, found: Confirmed) -> Held {
        match found {
            Confirmed::Granted(grant) => {
                Held::new(self.client.clone(), self.request.clone(), grant)
            }
            other => panic!("expected a grant, the store says {other:?}"),
        }
    }

    /// Expects that it is woken and rejected.
    #[track_caller]
    #[must_use]
    pub fn rejected(&self) -> Rejection {
        match self.decided(WAKE_BOUND) {
            Confirmed::Rejected(rejection) => rejection,
            other => panic!("expected a rejection, the store says {other:?}"),
        }
    }

    /// Waits for wakes until the store has decided; a wake may come early or twice.
    #[track_caller]
    fn decided(&self, bound: Duration) -> Confirmed {
        let start = Instant::now();
        loop {
            self.woken_within(bound.saturating_sub(start.elapsed()));
            match self.confirm() {
                Confirmed::Waiting => {}
                decided => return decided,
            }
        }
    }

    /// Leaves and expects that it was still waiting.
    #[track_caller]
    pub fn leave(&self) {
        match self.try_leave() {
            Released::Waiter(_) => {}
            other => panic!("expected to take a waiter out, found {other:?}"),
        }
    }

    /// Leaves and says what was found.
    #[track_caller]
    pub fn try_leave(&self) -> Released {
        answer(living(&self.client).release(self.lock(), self.token()))
    }

    /// Leaves without an answer.
    #[track_caller]
    pub fn abandon(&self) {
        living(&self.client).abandon(self.lock(), self.token());
    }
}
