//! What a store answers.

use std::time::Duration;

use crate::{Capacity, FencingToken, Generation, LocalTime, Obstacle, Ttl, Wake};

/// The answer to an acquisition.
#[derive(Debug)]
pub enum Acquired {
    /// Held from now on.
    Granted(Grant),
    /// Queued; the waiter is woken when it should confirm.
    Queued(Place),
    /// Not free, and the request did not want to wait: nothing is queued.
    Busy(Obstacle),
    /// Refused; nothing is held or queued by this request.
    Refused(Refusal),
}

/// A grant as the store has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Grows with every grant of the name (rule L8).
    pub fencing: FencingToken,
    /// What is left of the TTL; `None`: no TTL.
    pub remaining: Option<Duration>,
    /// The TTL that a renewal sets again; `None`: no TTL.
    pub ttl: Option<Ttl>,
    /// When the store said so, where the store's clock is this process's own; else the holder
    /// counts from before it asked (rule L3).
    pub at: Option<LocalTime>,
    /// The lock's generation.
    pub generation: Generation,
    /// The lock's capacity.
    pub capacity: Capacity,
}

/// A place in the queue.
#[derive(Clone, Debug)]
pub struct Place {
    /// Set when the waiter should confirm: on its grant and on its rejection.
    pub wake: Wake,
    /// What stood in the way on arrival.
    pub obstacle: Obstacle,
    /// The lock's generation.
    pub generation: Generation,
    /// The lock's capacity.
    pub capacity: Capacity,
}

/// Why a store refused an acquisition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The token is held or queued by another attempt (rule T5).
    TokenInUse,
    /// The lock is in use with another capacity (rule N2).
    ConfigMismatch {
        /// The capacity in effect.
        registered: Capacity,
    },
    /// The weight is above the capacity in effect (rule Q5).
    TooHeavy {
        /// The capacity in effect.
        capacity: Capacity,
    },
    /// The handle is of a generation that was destroyed (rule N5).
    Destroyed,
    /// The request came after its `not_after` (rule L7).
    Stale,
    /// The queue has as many waiters as it may have (rule Q5).
    QueueFull {
        /// How many that is.
        limit: u64,
    },
}

/// The answer to a waiter that asks what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Confirmed {
    /// It holds, with its full TTL from now on (rule L10).
    Granted(Grant),
    /// It is still queued.
    Waiting,
    /// It was rejected, and is told so once.
    Rejected(Rejection),
    /// The store does not know it: never queued, expired, released, skipped as silent.
    Unknown,
}

/// Why a waiter was put out of the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rejection {
    /// By `cancel_all` (rule W5).
    Cancelled {
        /// As given by who cancelled.
        reason: String,
    },
    /// By `destroy` (rule N5).
    Destroyed {
        /// As given by who destroyed.
        reason: String,
    },
}

/// What a release found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Released {
    /// A grant, which it gave back.
    Holder,
    /// A waiter, which it took out of the queue, and what stood in its way.
    Waiter(Option<Obstacle>),
    /// Nothing: released before, expired, destroyed or never known.
    Unknown,
}

/// What a renewal found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewed {
    /// The grant lives; `None`: without a TTL.
    Held {
        /// What is left of the TTL now.
        remaining: Option<Duration>,
    },
    /// The grant is gone.
    Unknown,
}

/// What an extension found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extended {
    /// The grant lives and has the new TTL.
    Held,
    /// The grant is gone and stays gone (rule T4).
    Gone,
    /// The grant is bound to its token, which needs a TTL (rule T8); nothing changed.
    NeedsTtl,
}

/// What is left of a grant (rule T4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remaining {
    /// Not held.
    Gone,
    /// Held without a TTL.
    Never,
    /// Held, and this long unless extended.
    Left(Duration),
}

/// The answer to a watcher.
#[derive(Clone, Debug)]
pub enum Watched {
    /// What it waits for is, or has become, true.
    Done,
    /// Not yet; the flag is set when it should ask again.
    Waiting(Wake),
    /// The handle is of a generation that was destroyed (rule U2).
    Destroyed,
}

/// What a destroy did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destroyed {
    /// It ended this generation.
    Now {
        /// The generation that comes after.
        next: Generation,
    },
    /// This generation had ended before (rule N5: idempotent).
    Before,
}
