//! A watcher as a case has it (rules U).

use std::sync::Arc;

use leasehold_core::{LockId, Token, Wake, WatchFor, Watched};

use super::{
    Lock, WAKE_BOUND, WeakBackend,
    block::{answer, block_on},
    living,
};

/// A registered watcher. Dropping it does nothing.
#[derive(Debug)]
pub struct Watcher {
    client: WeakBackend,
    lock: Arc<LockId>,
    id: Token,
    what: WatchFor,
    wake: Wake,
}

impl Watcher {
    pub(super) fn new(
        client: WeakBackend,
        lock: &Lock,
        id: Token,
        what: WatchFor,
        wake: Wake,
    ) -> Self {
        Self { client, lock: Arc::clone(&lock.id), id, what, wake }
    }

    /// Asks what became of it.
    #[track_caller]
    pub fn ask(&mut self) -> Watched {
        let watched = answer(living(&self.client).watch(&self.lock, None, &self.id, self.what));
        if let Watched::Waiting(wake) = &watched {
            self.wake = wake.clone();
        }
        watched
    }

    /// Expects that it still waits.
    #[track_caller]
    pub fn waits(&mut self) {
        match self.ask() {
            Watched::Waiting(_) => {}
            other => panic!("expected the watcher to wait, the store says {other:?}"),
        }
    }

    /// Expects that it is woken and that what it waited for has become true.
    #[track_caller]
    pub fn done(mut self) {
        let woken = block_on(self.wake.notified(), WAKE_BOUND);
        assert!(woken.is_some(), "the watcher was not woken within {WAKE_BOUND:?}");
        match self.ask() {
            Watched::Done => {}
            other => panic!("expected the watcher to be done, the store says {other:?}"),
        }
    }

    /// Takes it back.
    #[track_caller]
    pub fn unwatch(self) {
        living(&self.client).unwatch(&self.lock, &self.id);
    }
}
