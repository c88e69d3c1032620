//! What a checked request asks for.

use std::{
    num::{NonZeroU32, NonZeroU64},
    panic::Location,
    sync::atomic::{AtomicU64, Ordering},
};

use crate::error::{Error, LockKind, Place};

/// One checked request, and what its hold or its wait is known by.
#[derive(Clone, Copy, Debug)]
pub struct Ask {
    pub(crate) target: Target,
    pub(crate) access: Access,
    pub(crate) lock: LockLabel,
    pub(crate) place: Place,
    pub(crate) order: Order,
    /// What its lock knows the grant by, where one grant is not as good as another: who shares the
    /// read of a whole set gives back that very read.
    pub(crate) grant: Option<NonZeroU32>,
}

/// What is asked for: a lock, or one key of a keyed one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Target {
    /// The lock. Of a mutex its address, which is even: no two that live at once have the same, and
    /// what was forgotten goes with the mutex, unless that was moved since.
    /// Of a lock whose grants are shared the number it has ([`next_domain`]), for ever: a grant that
    /// was forgotten is never taken for one of a later lock in the same place.
    pub(crate) domain: u64,
    /// `None`: all of it.
    pub(crate) key: Option<NonZeroU64>,
}

/// A number for a lock that no other lock ever has. Odd, and so no address of a lock.
pub(crate) fn next_domain() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    // At a billion a second they last for centuries.
    NEXT.fetch_add(2, Ordering::Relaxed)
}

/// Whether others may be in too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// A read.
    Shared,
    /// A write, or a mutex.
    Exclusive,
}

/// What the lock is called in messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LockLabel {
    pub(crate) kind: LockKind,
    /// The type of its data, or of its keys.
    pub(crate) of: &'static str,
}

/// Which requests a queued one waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// All that are queued before it.
    Fifo,
    /// Those before it that conflict (rule K2).
    Keyed,
    /// It is no part of the graph: leases (rule R2b).
    Apart,
}

impl Target {
    pub(crate) const fn whole(domain: u64) -> Self {
        Self { domain, key: None }
    }

    #[allow(dead_code, reason = "for keyed locks")]
    pub(crate) const fn key(domain: u64, key: NonZeroU64) -> Self {
        Self { domain, key: Some(key) }
    }

    /// Whether they have anything in common (rule K1).
    #[inline]
    pub(super) fn meets(self, other: Self) -> bool {
        self.domain == other.domain
            && (self.key == other.key || self.key.is_none() || other.key.is_none())
    }

    /// Whether who has this has that too.
    #[inline]
    pub(super) fn covers(self, other: Self) -> bool {
        self.domain == other.domain && (self.key == other.key || self.key.is_none())
    }
}

impl Access {
    #[inline]
    pub(super) fn excludes(self, other: Self) -> bool {
        self == Self::Exclusive || other == Self::Exclusive
    }
}

impl Ask {
    /// A request for a lease: checked for reentrancy, and no part of the graph (rule R2b).
    ///
    /// `domain` is the address of what all handles of the lock share.
    #[must_use]
    pub const fn leased(
        domain: usize,
        access: Access,
        kind: LockKind,
        place: &'static Location<'static>,
    ) -> Self {
        let lock = LockLabel { kind, of: "lease" };
        let target = Target::whole(domain as u64);
        Self { target, access, lock, place, order: Order::Apart, grant: None }
    }

    /// Whether the two exclude each other (rule K1).
    #[inline]
    pub(super) fn conflicts(&self, other: &Self) -> bool {
        self.target.meets(other.target) && self.access.excludes(other.access)
    }

    #[cold]
    pub(super) fn reentrant(&self, held: Place) -> Error {
        Error::reentrant(self.lock.kind, held, self.place)
    }
}
