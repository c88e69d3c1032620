//! A grant as a case has it.

use std::{sync::Arc, time::Duration};

use leasehold_core::{
    Acquire, Binding, Confirmed, Extended, Fault, FencingToken, Grant, LockId, Released, Remaining,
    Renewal, Renewed, Token,
};

use super::{
    Lock, WeakBackend,
    ask::ttl_of,
    block::{answer, outcome},
    living,
};

/// How much a store may round a duration.
const ROUNDING: Duration = Duration::from_millis(2);

/// A grant, or what was one. Dropping it does nothing.
#[derive(Clone, Debug)]
pub struct Held {
    client: WeakBackend,
    lock: Arc<LockId>,
    token: Token,
    grant: Option<Grant>,
}

impl Held {
    pub(super) fn new(client: WeakBackend, request: Acquire, grant: Grant) -> Self {
        Self { client, lock: request.lock, token: request.token, grant: Some(grant) }
    }

    pub(super) fn restored(client: WeakBackend, lock: &Lock, token: &Token) -> Self {
        Self { client, lock: Arc::clone(&lock.id), token: token.clone(), grant: None }
    }

    /// Its token.
    #[must_use]
    pub const fn token(&self) -> &Token {
        &self.token
    }

    /// The grant as the store told it.
    ///
    /// # Panics
    /// When the handle was restored from a token.
    #[must_use]
    pub const fn grant(&self) -> Grant {
        self.grant.expect("the store told this grant")
    }

    /// Its fencing token.
    #[must_use]
    pub const fn fencing(&self) -> FencingToken {
        self.grant().fencing
    }

    /// Gives it back and expects that there was something to give back.
    #[track_caller]
    pub fn release(&self) {
        let found = self.try_release();
        assert_eq!(found, Released::Holder, "expected to release a grant");
    }

    /// Releases and says what was found.
    #[track_caller]
    pub fn try_release(&self) -> Released {
        answer(living(&self.client).release(&self.lock, &self.token))
    }

    /// Gives it up without an answer.
    #[track_caller]
    pub fn abandon(&self) {
        living(&self.client).abandon(&self.lock, &self.token);
    }

    /// What is left of it.
    #[track_caller]
    #[must_use]
    pub fn remaining(&self) -> Remaining {
        answer(living(&self.client).remaining(&self.lock, &self.token))
    }

    /// Whether it still is a grant.
    #[track_caller]
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.remaining() != Remaining::Gone
    }

    /// Asserts that `ttl` is left but for the time since it was started, or a little before:
    /// `since` is a stopwatch that was started no later.
    #[track_caller]
    pub fn assert_left(&self, ttl: Duration, since: impl Fn() -> Duration) {
        match self.remaining() {
            Remaining::Left(left) => {
                let least = ttl.saturating_sub(since() + ROUNDING);
                assert!(left <= ttl, "{left:?} are left, at most {ttl:?} were granted");
                assert!(left >= least, "{left:?} are left of {ttl:?}, less than {least:?}");
            }
            other => panic!("expected {ttl:?} or a little less to be left, found {other:?}"),
        }
    }

    /// Sets a new TTL, or none.
    #[track_caller]
    pub fn extend(&self, ttl: Option<Duration>) -> Extended {
        answer(living(&self.client).extend(&self.lock, &self.token, ttl.map(ttl_of)))
    }

    /// Renews it.
    #[track_caller]
    pub fn renew(&self) -> Renewed {
        let renewal = Renewal { lock: Arc::clone(&self.lock), token: self.token.clone() };
        let renewed = answer(living(&self.client).renew(vec![renewal]));
        assert_eq!(renewed.len(), 1, "one lease asked, {} answers", renewed.len());
        renewed[0]
    }

    /// Confirms once more.
    #[track_caller]
    pub fn confirm(&self) -> Confirmed {
        answer(living(&self.client).confirm(&self.lock, &self.token))
    }

    /// Binds it to its client or its token.
    ///
    /// # Errors
    /// The store's fault.
    #[track_caller]
    pub fn rebind(&self, to: Binding, ttl: Option<Duration>) -> Result<Option<Grant>, Fault> {
        outcome(living(&self.client).rebind(&self.lock, &self.token, to, ttl.map(ttl_of)))
    }
}
