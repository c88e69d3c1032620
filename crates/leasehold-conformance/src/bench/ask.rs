//! One acquisition, built step by step, and what the case expects of it.

use std::{sync::Arc, time::Duration};

use leasehold_core::{
    Acquire, Acquired, AttemptId, Binding, Generation, Grant, HolderInfo, Obstacle, Refusal, Share,
    StoreTime, Token, Ttl, Weight, defaults,
};

use super::{Held, Lock, Queued, WeakBackend, block::answer, living};

/// An acquisition that is about to be made.
#[derive(Clone, Debug)]
#[must_use]
pub struct Ask {
    client: WeakBackend,
    request: Acquire,
}

impl Ask {
    pub(super) fn new(client: WeakBackend, lock: &Lock) -> Self {
        let request = Acquire {
            lock: Arc::clone(&lock.id),
            generation: None,
            capacity: lock.claim,
            share: Share::ONE,
            token: Token::random(),
            attempt: AttemptId::random(),
            ttl: None,
            binding: Binding::Client,
            wait: true,
            not_after: None,
            queue_limit: defaults::QUEUE_LIMIT,
            info: Arc::new(HolderInfo::here()),
        };
        Self { client, request }
    }

    /// This many permits.
    pub fn weight(mut self, permits: u32) -> Self {
        self.request.share = Share::Permits(Weight::new(permits).expect("a valid weight"));
        self
    }

    /// All permits: a write.
    pub fn whole(mut self) -> Self {
        self.request.share = Share::Whole;
        self
    }

    /// A grant that lives this long.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.request.ttl = Some(ttl_of(ttl));
        self
    }

    /// A grant bound to its token (rule T8).
    pub fn detached(mut self) -> Self {
        self.request.binding = Binding::Token;
        self
    }

    /// The caller's own token.
    pub fn token(mut self, token: &Token) -> Self {
        self.request.token = token.clone();
        self
    }

    /// A given attempt.
    pub fn attempt(mut self, attempt: AttemptId) -> Self {
        self.request.attempt = attempt;
        self
    }

    /// As a handle of this generation.
    pub fn generation(mut self, generation: Generation) -> Self {
        self.request.generation = Some(generation);
        self
    }

    /// With a queue that takes no more than this.
    pub fn queue_limit(mut self, waiters: u64) -> Self {
        self.request.queue_limit = waiters;
        self
    }

    /// Without effect after this time.
    pub fn not_after(mut self, time: StoreTime) -> Self {
        self.request.not_after = Some(time);
        self
    }

    /// With a label for people.
    pub fn label(mut self, label: &str) -> Self {
        let info = HolderInfo::here().labelled(label).expect("a valid label");
        self.request.info = Arc::new(info);
        self
    }

    /// Without queueing: a try.
    pub fn try_only(mut self) -> Self {
        self.request.wait = false;
        self
    }

    /// The request as it will be sent.
    #[must_use]
    pub const fn request(&self) -> &Acquire {
        &self.request
    }

    pub(super) fn into_parts(self) -> (WeakBackend, Acquire) {
        (self.client, self.request)
    }

    /// Sends it and gives the answer as it is.
    #[track_caller]
    pub fn answer(self) -> Acquired {
        answer(living(&self.client).acquire(&self.request))
    }

    /// The grant that an answer to it told.
    #[must_use]
    pub fn granted(self, grant: Grant) -> Held {
        Held::new(self.client, self.request, grant)
    }

    /// Sends it and expects a grant.
    #[track_caller]
    #[must_use]
    pub fn held(self) -> Held {
        match self.clone().answer() {
            Acquired::Granted(grant) => self.granted(grant),
            other => panic!("expected a grant, the store says {other:?}"),
        }
    }

    /// Sends it and expects a place in the queue.
    #[track_caller]
    #[must_use]
    pub fn queued(self) -> Queued {
        let answer = self.clone().answer();
        let Self { client, request } = self;
        match answer {
            Acquired::Queued(place) => Queued::new(client, request, place),
            other => panic!("expected a place in the queue, the store says {other:?}"),
        }
    }

    /// Sends it as a try and expects that the lock is not free.
    #[track_caller]
    pub fn busy(self) -> Obstacle {
        match self.try_only().answer() {
            Acquired::Busy(obstacle) => obstacle,
            other => panic!("expected the lock to be busy, the store says {other:?}"),
        }
    }

    /// Sends it and expects a refusal.
    #[track_caller]
    pub fn refused(self) -> Refusal {
        match self.answer() {
            Acquired::Refused(refusal) => refusal,
            other => panic!("expected a refusal, the store says {other:?}"),
        }
    }
}

pub(super) fn ttl_of(ttl: Duration) -> Ttl {
    Ttl::new(ttl).expect("a valid TTL")
}
