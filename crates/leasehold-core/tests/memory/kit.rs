//! Short ways to ask a store.

use std::{
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use leasehold_core::{
    Acquire, Acquired, AttemptId, Backend, Binding, Call, Capacity, CapacityClaim, Confirmed,
    Fault, Grant, HolderInfo, LockId, LockKind, LockName, ManualClock, MemoryBackend, MemoryStore,
    Namespace, Place, Refusal, Released, Remaining, Share, Token, Ttl, Wake, WatchFor, Watched,
    Weight,
};

/// A store on a clock that only the test moves, and a lock in it.
pub(crate) struct Kit {
    pub(crate) clock: ManualClock,
    pub(crate) store: MemoryStore,
    pub(crate) lock: Arc<LockId>,
    pub(crate) capacity: Capacity,
}

pub(crate) fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub(crate) fn ttl(of: u64) -> Option<Ttl> {
    Some(Ttl::new(ms(of)).unwrap())
}

pub(crate) fn lock(kind: LockKind, name: &str) -> Arc<LockId> {
    Arc::new(LockId::new(Namespace::default(), kind, LockName::new(name).unwrap()))
}

/// The store answers inline (rule W8).
pub(crate) fn answer<T>(call: Call<T>) -> T {
    result(call).expect("no fault")
}

pub(crate) fn result<T>(call: Call<T>) -> Result<T, Fault> {
    call.into_ready().expect("the memory store answers inline")
}

pub(crate) fn is_set(wake: &Wake) -> bool {
    wake.poll_notified(&Context::from_waker(Waker::noop())) == Poll::Ready(())
}

impl Kit {
    pub(crate) fn with_capacity(capacity: u32) -> Self {
        let clock = ManualClock::new();
        Self {
            store: MemoryStore::with_clock(Arc::new(clock.clone())),
            clock,
            lock: lock(LockKind::Semaphore, "orders"),
            capacity: Capacity::new(capacity).unwrap(),
        }
    }

    pub(crate) fn mutex() -> Self {
        Self { lock: lock(LockKind::Mutex, "orders"), ..Self::with_capacity(1) }
    }

    pub(crate) fn client(&self) -> MemoryBackend {
        self.store.client()
    }

    /// One permit, without a TTL, waiting.
    pub(crate) fn request(&self) -> Acquire {
        Acquire {
            lock: Arc::clone(&self.lock),
            generation: None,
            capacity: CapacityClaim::Exactly(self.capacity),
            share: Share::ONE,
            token: Token::random(),
            attempt: AttemptId::random(),
            ttl: None,
            binding: Binding::Client,
            wait: true,
            not_after: None,
            queue_limit: 1000,
            info: Arc::new(HolderInfo::from_parts("host", 7, None)),
        }
    }

    pub(crate) fn lasting(&self, of: u64) -> Acquire {
        Acquire { ttl: ttl(of), ..self.request() }
    }

    pub(crate) fn weighing(&self, weight: u32) -> Acquire {
        Acquire { share: Share::Permits(Weight::new(weight).unwrap()), ..self.request() }
    }

    pub(crate) fn whole(&self) -> Acquire {
        Acquire { share: Share::Whole, ..self.request() }
    }

    pub(crate) fn used(&self) -> u32 {
        answer(self.client().counts(&self.lock)).map_or(0, |counts| counts.used)
    }
}

/// What tests ask of any client.
pub(crate) trait Ask: Backend {
    fn granted(&self, request: &Acquire) -> Grant {
        match answer(self.acquire(request)) {
            Acquired::Granted(grant) => grant,
            other => panic!("not granted: {other:?}"),
        }
    }

    fn queued(&self, request: &Acquire) -> Place {
        match answer(self.acquire(request)) {
            Acquired::Queued(place) => place,
            other => panic!("not queued: {other:?}"),
        }
    }

    fn refused(&self, request: &Acquire) -> Refusal {
        match answer(self.acquire(request)) {
            Acquired::Refused(refusal) => refusal,
            other => panic!("not refused: {other:?}"),
        }
    }

    fn confirmed(&self, request: &Acquire) -> Grant {
        match answer(self.confirm(&request.lock, &request.token)) {
            Confirmed::Granted(grant) => grant,
            other => panic!("not granted: {other:?}"),
        }
    }

    fn gives_back(&self, request: &Acquire) {
        let released = answer(self.release(&request.lock, &request.token));
        assert_eq!(released, Released::Holder);
    }

    fn left(&self, request: &Acquire) -> Remaining {
        answer(self.remaining(&request.lock, &request.token))
    }

    fn watching(&self, lock: &Arc<LockId>, id: &Token, what: WatchFor) -> Wake {
        match answer(self.watch(lock, None, id, what)) {
            Watched::Waiting(wake) => wake,
            other => panic!("not waiting: {other:?}"),
        }
    }

    fn is_done(&self, lock: &Arc<LockId>, id: &Token, what: WatchFor) -> bool {
        matches!(answer(self.watch(lock, None, id, what)), Watched::Done)
    }
}

impl Ask for MemoryBackend {}
