//! A client that does not do what a client should: it asks the store itself, and then waits without
//! an ear for its grant, or hears of it and does not confirm.

use std::{sync::Arc, time::Duration};

use leasehold_core::{
    Acquire, Acquired, AttemptId, Backend as _, Binding, Capacity, CapacityClaim, Confirmed,
    HolderInfo, LockId, LockKind, LockName, Namespace, Share, Token, Ttl, Wake, Weight, defaults,
};

use super::{
    event::Id,
    plan::{LockPlan, Tells},
    recorder::Recorder,
};
use crate::bench::block::{block_on, outcome};

/// One acquisition of such a client. Faults of the store are in the log.
pub(super) struct Rogue {
    pub(super) id: Id,
    recorder: Recorder,
    request: Acquire,
}

impl Rogue {
    /// Queues; `None`: nobody was in the way, and nothing is held or queued.
    pub(super) fn queues(recorder: &Recorder, request: Acquire) -> Option<(Self, Wake)> {
        let (id, recorder) = (recorder.id(&request.token), recorder.clone());
        let rogue = Self { id, recorder, request };
        match outcome(rogue.recorder.acquire(&rogue.request)).ok()? {
            Acquired::Queued(place) => Some((rogue, place.wake)),
            Acquired::Granted(_) => {
                rogue.leave();
                None
            }
            Acquired::Busy(_) | Acquired::Refused(_) => None,
        }
    }

    pub(super) fn at_fate(&self) -> Tells {
        Tells::AtFate { id: self.id.clone(), lock: self.request.lock.name().to_string() }
    }

    /// Waits until the store shows a claim; false: it shows something else, or nothing in time.
    pub(super) fn is_claimed(&self, wake: &Wake, within: Duration) -> bool {
        // A wake is a hint, so it may come while the store shows a waiter.
        while block_on(wake.notified(), within).is_some() {
            let Ok(Some(state)) = outcome(self.recorder.inspect(&self.request.lock)) else {
                return false;
            };
            let is_own = |id: Option<Id>| id.as_ref() == Some(&self.id);
            let own = state.holders.iter().find(|holder| is_own(Id::of_holder(holder)));
            if let Some(holder) = own {
                return holder.claimed;
            }
            if !state.waiters.iter().any(|waiter| is_own(Id::of_waiter(waiter))) {
                return false;
            }
        }
        false
    }

    /// Confirms as a client should have done before, and gives back what that gives.
    pub(super) fn confirm_and_leave(&self) {
        let confirmed = outcome(self.recorder.confirm(&self.request.lock, &self.request.token));
        if !matches!(confirmed, Ok(Confirmed::Unknown)) {
            self.leave();
        }
    }

    pub(super) fn leave(&self) {
        let (lock, token) = (&self.request.lock, &self.request.token);
        if outcome(self.recorder.release(lock, token)).is_err() {
            self.recorder.abandon(lock, token);
        }
    }
}

/// A request for a lock of a history, sent to the store itself. A read-write lock is asked for a
/// write with all of its weight, else for a read.
pub(super) fn request(plan: &LockPlan, info: &Arc<HolderInfo>, weight: u32) -> Acquire {
    let name = LockName::new(&plan.name).expect("a valid name");
    let capacity = Capacity::new(plan.capacity).expect("a valid capacity");
    Acquire {
        lock: Arc::new(LockId::new(Namespace::default(), plan.kind, name)),
        generation: None,
        capacity: CapacityClaim::Exactly(capacity),
        share: match plan.kind {
            LockKind::RwLock if weight == plan.capacity => Share::Whole,
            LockKind::RwLock | LockKind::Mutex => Share::ONE,
            LockKind::Semaphore => Share::Permits(Weight::new(weight).expect("a valid weight")),
        },
        token: Token::random(),
        attempt: AttemptId::random(),
        ttl: Some(Ttl::new(plan.ttl).expect("a valid TTL")),
        binding: Binding::Client,
        wait: true,
        not_after: None,
        queue_limit: defaults::QUEUE_LIMIT,
        info: Arc::clone(info),
    }
}
