//! What may be asked of a store.

use std::sync::Arc;

use crate::{AttemptId, Capacity, HolderInfo, LockId, StoreTime, Token, Ttl, Weight};

/// One acquisition. The token and the attempt are made before the request is sent, so that it can
/// be sent again (rule L7).
#[derive(Clone, Debug)]
pub struct Acquire {
    /// The lock.
    pub lock: Arc<LockId>,
    /// The generation that the handle belongs to, once it knows (rule N5).
    pub generation: Option<Generation>,
    /// What the caller believes the capacity to be.
    pub capacity: CapacityClaim,
    /// How much of the lock is asked for.
    pub share: Share,
    /// Names the waiter and then the grant.
    pub token: Token,
    /// Tells a retry from a second use of the token.
    pub attempt: AttemptId,
    /// How long the grant lives, counted from the grant (rule T2).
    pub ttl: Option<Ttl>,
    /// What the grant's life is bound to (rule T8).
    pub binding: Binding,
    /// Whether to queue when the lock is busy.
    pub wait: bool,
    /// When the request has lost its meaning: from then on a late copy has no effect.
    pub not_after: Option<StoreTime>,
    /// How many waiters the lock may have (rule Q5).
    pub queue_limit: u64,
    /// Who asks.
    pub info: Arc<HolderInfo>,
}

/// What a caller believes a lock's capacity to be (rule N2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CapacityClaim {
    /// Exactly this; anything else that is in use is a mismatch.
    Exactly(Capacity),
    /// Whatever is registered; this, when nothing is.
    Registered {
        /// The capacity of a lock that does not exist yet.
        otherwise: Capacity,
    },
}

impl CapacityClaim {
    /// The capacity of a lock that does not exist yet.
    #[must_use]
    pub const fn initial(self) -> Capacity {
        match self {
            Self::Exactly(capacity) | Self::Registered { otherwise: capacity } => capacity,
        }
    }

    /// Whether a registered capacity is what the caller believes.
    #[must_use]
    pub fn accepts(self, registered: Capacity) -> bool {
        match self {
            Self::Exactly(capacity) => capacity == registered,
            Self::Registered { .. } => true,
        }
    }
}

/// How much of a lock a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Share {
    /// This many permits.
    Permits(Weight),
    /// All of the lock's permits, however many those are: a write.
    Whole,
}

impl Share {
    /// One permit.
    pub const ONE: Self = Self::Permits(Weight::ONE);

    /// How many permits that is of a lock with this capacity.
    #[must_use]
    pub const fn weight(self, capacity: Capacity) -> u32 {
        match self {
            Self::Permits(weight) => weight.get(),
            Self::Whole => capacity.get(),
        }
    }
}

/// What ends a grant beside its TTL, its release and a destroy (rule T8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Binding {
    /// The proven death of the client that has it.
    Client,
    /// Nothing: who has the token has the grant.
    Token,
}

/// Counts how often a lock name was destroyed and made again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generation(pub u64);

/// One lease to renew.
#[derive(Clone, Debug)]
pub struct Renewal {
    /// The lock.
    pub lock: Arc<LockId>,
    /// The grant.
    pub token: Token,
}

/// What a watcher waits for (rule U1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WatchFor {
    /// Nobody holds.
    Unlocked,
    /// At least one permit is free.
    AnyPermit,
    /// A read would be granted: a permit is free and nobody is queued.
    Readable,
    /// The lock is destroyed. Every watcher ends with a destroy; this one ends with nothing else.
    Destroyed,
}
