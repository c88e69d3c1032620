//! What is said to a holder and what it says.

use leasehold_core::{LockId, LockKind, LockName, Namespace, Token};
use serde::{Deserialize, Serialize};

use crate::bench::Lock;

/// What a holder is told to do. `id` is the case's name for one acquisition.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Order {
    /// Acquire, waiting if need be.
    Acquire(Wish),
    /// Confirm a claim that was only told of ([`Wish::claim_only`]).
    Confirm {
        /// Which acquisition.
        id: String,
    },
    /// Release or leave.
    Release {
        /// Which acquisition.
        id: String,
    },
    /// Set a new TTL, or none.
    Extend {
        /// Which acquisition.
        id: String,
        /// The TTL in milliseconds.
        ttl_ms: Option<u64>,
    },
    /// Acquire, stay inside and release, again and again, and tell of each.
    Sections {
        /// What to acquire each time; the token is a new one each time.
        wish: Wish,
        /// How often.
        count: u32,
        /// How long to stay inside, in microseconds.
        hold_us: u64,
    },
    /// Close the client in good order.
    Close,
}

/// An acquisition to make.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Wish {
    /// The case's name for it.
    pub id: String,
    /// The lock.
    pub lock: Place,
    /// How many permits; `None`: all of them.
    pub weight: Option<u32>,
    /// The TTL in milliseconds.
    pub ttl_ms: Option<u64>,
    /// Whether the grant is bound to its token.
    pub detached: bool,
    /// The caller's own token.
    pub token: Option<Token>,
    /// Whether to leave a grant out of the queue unconfirmed.
    pub claim_only: bool,
}

impl Wish {
    /// One permit of a lock, without a TTL, bound to the client.
    #[must_use]
    pub fn new(id: &str, lock: &Lock) -> Self {
        Self {
            id: id.to_owned(),
            lock: Place::of(lock),
            weight: Some(1),
            ttl_ms: None,
            detached: false,
            token: None,
            claim_only: false,
        }
    }
}

/// A lock by its parts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Place {
    /// The namespace.
    pub namespace: Namespace,
    /// The kind.
    pub kind: LockKind,
    /// The name.
    pub name: LockName,
    /// The capacity to claim.
    pub capacity: u32,
}

impl Place {
    /// The parts of a lock.
    #[must_use]
    pub fn of(lock: &Lock) -> Self {
        let id: &LockId = &lock.id;
        Self {
            namespace: id.namespace().clone(),
            kind: id.kind(),
            name: id.name().clone(),
            capacity: lock.claim.initial().get(),
        }
    }

    /// The lock with these parts.
    #[must_use]
    pub fn lock(&self) -> Lock {
        Lock::new(self.namespace.as_str(), self.kind, self.name.as_str(), self.capacity)
    }
}

/// What a holder tells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// What happened.
    pub happened: Happened,
    /// To which acquisition; empty when to none.
    pub id: String,
    /// When, on the boot-time clock of the machine, in microseconds.
    pub at_us: u64,
    /// The fencing token of a grant.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub fencing: Option<u64>,
    /// More, for people.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub detail: Option<String>,
}

/// What may happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Happened {
    /// The holder runs and has its client.
    Ready,
    /// It holds.
    Held,
    /// It waits.
    Queued,
    /// It was granted after a wait and has not confirmed.
    Claimed,
    /// It was refused.
    Refused,
    /// It was rejected while it waited.
    Rejected,
    /// The store does not know it (any more).
    Unknown,
    /// It gave a grant back, just before the event.
    Released,
    /// It is about to give a grant back.
    Leaving,
    /// It left the queue.
    Left,
    /// The grant has a new TTL.
    Extended,
    /// All sections are done.
    Done,
    /// The client is closed.
    Closed,
    /// The store failed, or the order makes no sense.
    Failed,
}
