//! One client of the store, with the store's answers instead of calls.

use std::{sync::Arc, time::Duration};

use leasehold_core::{
    Backend, ClientId, Confirmed, Destroyed, Generation, LockCounts, LockState, Namespace,
    Rejection, Released, Remaining, Renewal, Renewed, StoreTime, Token, WatchFor, Watched,
};

use super::{
    Ask, Held, Lock, Watcher,
    block::{answer, eventually},
};

/// A client. Handles of what it asked for do not keep it alive.
#[derive(Debug)]
pub struct Client {
    backend: Arc<dyn Backend>,
}

impl Client {
    pub(super) fn new(backend: Arc<dyn Backend>) -> Self {
        Self { backend }
    }

    /// The backend itself, for what has no method here.
    #[must_use]
    pub fn backend(&self) -> &Arc<dyn Backend> {
        &self.backend
    }

    pub(super) fn into_backend(self) -> Arc<dyn Backend> {
        self.backend
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> ClientId {
        self.backend.client()
    }

    /// The store's time now, as this client knows it.
    #[must_use]
    pub fn store_time(&self) -> StoreTime {
        self.backend.store_time(self.backend.clock().now())
    }

    /// Says how long ago this call was, on the client's clock.
    pub fn stopwatch(&self) -> impl Fn() -> Duration + use<> {
        let clock = Arc::clone(self.backend.clock());
        let start = clock.now();
        move || clock.now().since(start)
    }

    /// Begins an acquisition: one permit, no TTL, bound to the client, unless told otherwise.
    pub fn acquire(&self, lock: &Lock) -> Ask {
        Ask::new(Arc::downgrade(&self.backend), lock)
    }

    /// A grant that somebody else made, by its token (rule T9).
    #[must_use]
    pub fn restore(&self, lock: &Lock, token: &Token) -> Held {
        Held::restored(Arc::downgrade(&self.backend), lock, token)
    }

    /// Gives back or takes out what has the token.
    #[track_caller]
    pub fn release(&self, lock: &Lock, token: &Token) -> Released {
        answer(self.backend.release(&lock.id, token))
    }

    /// Asks what became of the waiter with the token.
    #[track_caller]
    pub fn confirm(&self, lock: &Lock, token: &Token) -> Confirmed {
        answer(self.backend.confirm(&lock.id, token))
    }

    /// What is left of the grant with the token.
    #[track_caller]
    #[must_use]
    pub fn remaining(&self, lock: &Lock, token: &Token) -> Remaining {
        answer(self.backend.remaining(&lock.id, token))
    }

    /// Renews all of these in one request.
    #[track_caller]
    pub fn renew_all(&self, leases: &[(&Lock, &Token)]) -> Vec<Renewed> {
        let renewals = leases
            .iter()
            .map(|(lock, token)| Renewal { lock: Arc::clone(&lock.id), token: (*token).clone() });
        answer(self.backend.renew(renewals.collect()))
    }

    /// Rejects all waiters and says how many.
    #[track_caller]
    pub fn cancel_all(&self, lock: &Lock, reason: &str) -> u64 {
        answer(self.backend.cancel_all(&lock.id, reason))
    }

    /// Ends a generation.
    #[track_caller]
    pub fn destroy(&self, lock: &Lock, generation: Option<Generation>, reason: &str) -> Destroyed {
        answer(self.backend.destroy(&lock.id, generation, reason))
    }

    /// The counts of a lock that is in use.
    #[track_caller]
    #[must_use]
    pub fn counts(&self, lock: &Lock) -> LockCounts {
        self.counts_if_used(lock).expect("the lock is in use")
    }

    /// The counts of a lock, if it is in use.
    #[track_caller]
    #[must_use]
    pub fn counts_if_used(&self, lock: &Lock) -> Option<LockCounts> {
        answer(self.backend.counts(&lock.id))
    }

    /// Used and queued permits of a lock, zero when nobody uses it.
    #[track_caller]
    #[must_use]
    pub fn used_and_queued(&self, lock: &Lock) -> (u32, u64) {
        self.counts_if_used(lock).map_or((0, 0), |counts| (counts.used, counts.queued))
    }

    /// The state of a lock that is in use.
    #[track_caller]
    #[must_use]
    pub fn inspect(&self, lock: &Lock) -> LockState {
        answer(self.backend.inspect(&lock.id)).expect("the lock is in use")
    }

    /// All locks in use.
    #[track_caller]
    #[must_use]
    pub fn survey(&self, namespace: Option<&str>) -> Vec<LockState> {
        let namespace = namespace.map(|text| Namespace::new(text).expect("a valid namespace"));
        answer(self.backend.survey(namespace.as_ref()))
    }

    /// Asserts that nobody uses anything: no holder, no waiter, no trace.
    #[track_caller]
    pub fn assert_empty(&self) {
        let survey = self.survey(None);
        assert!(survey.is_empty(), "something is left: {survey:?}");
    }

    /// Waits until nobody uses the lock any more, for what has no answer (drops, deaths).
    #[track_caller]
    pub fn eventually_unused(&self, lock: &Lock, within: Duration) {
        eventually("nobody uses the lock", within, || self.counts_if_used(lock).is_none());
    }

    /// Registers a watcher that has to wait.
    #[track_caller]
    pub fn watches(&self, lock: &Lock, what: WatchFor) -> Watcher {
        let id = Token::random();
        match answer(self.backend.watch(&lock.id, None, &id, what)) {
            Watched::Waiting(wake) => {
                Watcher::new(Arc::downgrade(&self.backend), lock, id, what, wake)
            }
            other => panic!("expected the watcher to wait, the store says {other:?}"),
        }
    }

    /// Whether what a watcher would wait for is true already.
    #[track_caller]
    #[must_use]
    pub fn sees(&self, lock: &Lock, what: WatchFor) -> bool {
        let id = Token::random();
        match answer(self.backend.watch(&lock.id, None, &id, what)) {
            Watched::Done => true,
            Watched::Waiting(_) => {
                self.backend.unwatch(&lock.id, &id);
                false
            }
            Watched::Destroyed => panic!("no generation was named, the store says destroyed"),
        }
    }

    /// Ends the client in good order.
    #[track_caller]
    pub fn close(&self) {
        answer(self.backend.close());
    }
}

/// What a case compares rejections with.
#[must_use]
pub fn cancelled(reason: &str) -> Rejection {
    Rejection::Cancelled { reason: reason.to_owned() }
}

/// What a case compares rejections with.
#[must_use]
pub fn destroyed(reason: &str) -> Rejection {
    Rejection::Destroyed { reason: reason.to_owned() }
}
