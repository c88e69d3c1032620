//! Leases of locks by name, on a store in memory whose time is moved by hand.

use std::{cell::RefCell, time::Duration};

use leasehold::{
    Acquire, Error, LockManager, ManualClock, MemoryStore, NamedMutex, NamedRwLock, RunError,
};

use crate::kit::Random;

/// How long the shortest TTL is; the longest is four times that.
const TTL: Duration = Duration::from_millis(10);

pub(crate) enum Leased {
    Mutex(NamedMutex),
    RwLock(NamedRwLock),
}

/// The store of one program.
pub(crate) struct Leases {
    locks: LockManager,
    clock: ManualClock,
    random: RefCell<Random>,
}

/// What became of work under a lease.
#[derive(Debug)]
pub(crate) enum End {
    Done,
    /// The lease ran out while the work ran.
    RanOut,
    Refused(Error),
}

impl Leases {
    pub(crate) fn new(seed: u64) -> Self {
        let clock = ManualClock::new();
        let store = MemoryStore::with_clock(std::sync::Arc::new(clock.clone()));
        let locks = LockManager::new(store.client());
        Self { locks, clock, random: RefCell::new(Random::new(seed)) }
    }

    /// A mutex, or a read-write lock for many readers or for two.
    pub(crate) fn lock(&self, name: &str) -> Leased {
        let kind = self.random.borrow_mut().below(4);
        match kind {
            0 | 1 => Leased::Mutex(self.locks.mutex(name).unwrap()),
            2 => Leased::RwLock(self.locks.rw_lock(name).unwrap()),
            _ => Leased::RwLock(self.locks.rw_lock_with(name, 2).unwrap()),
        }
    }

    /// A TTL that is over soon.
    pub(crate) fn ttl(&self) -> Duration {
        TTL + TTL * u32::try_from(self.random.borrow_mut().below(4)).unwrap()
    }

    /// Time goes by, now and then.
    pub(crate) fn pass(&self) {
        let now_and_then = self.random.borrow_mut().one_in(30);
        if now_and_then {
            self.clock.advance(TTL / 2);
        }
    }
}

impl Leased {
    pub(crate) const fn is_mutex(&self) -> bool {
        matches!(self, Self::Mutex(_))
    }

    pub(crate) fn ask(&self, writes: bool) -> Acquire {
        match self {
            Self::Mutex(mutex) => mutex.lock(),
            Self::RwLock(lock) if writes => lock.write(),
            Self::RwLock(lock) => lock.read(),
        }
    }
}

impl End {
    pub(crate) fn of(end: Result<(), RunError<()>>) -> Self {
        match end {
            Ok(()) => Self::Done,
            Err(RunError::Lost { output: Some(()), .. }) => Self::RanOut,
            Err(other) => Self::Refused(other.into()),
        }
    }
}
