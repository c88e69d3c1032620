//! The one word of a lock: what is free, how much there is, and two flags.
//!
//! ```text
//! bit 63      | 62 ......... 32 | 31      | 30 ..... 0
//! upgradable  | capacity        | crowded | free
//! ```
//!
//! While *crowded* is clear, the word is the whole state of the lock and anybody changes it by
//! compare-and-swap. While it is set, somebody is queued or watching, or is being queued, and only who
//! holds the gate changes the word. So an arriving request never barges, and a release finds the waiters
//! (rules Q2 and Q3).

/// The largest capacity, and so the largest weight: 2^31 − 1.
pub(crate) const CAPACITY_MAX: u32 = 0x7fff_ffff;

/// How many readers a read-write lock admits unless told otherwise.
pub(crate) const READERS_USUAL: u32 = 1 << 29;

const FREE: u64 = CAPACITY_MAX as u64;
const CROWDED: u64 = 1 << 31;
const CAPACITY_SHIFT: u32 = 32;
const UPGRADABLE: u64 = 1 << 63;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Word(pub(crate) u64);

/// What a waiter gets when its turn comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// Permits.
    Plain,
    /// All the permits of a read-write lock: what a plain request could get too, but a writer.
    Write,
    /// Permits and the one upgradable slot.
    Upgradable,
    /// The rest of the permits for who is in the upgradable slot, which becomes free.
    Upgrade,
}

/// What a watcher waits for (rule U1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WatchFor {
    /// At least one permit is free.
    Any,
    /// A read would be granted: a permit is free and nobody is queued.
    Readable,
    /// Every permit is free.
    All,
}

impl Want {
    pub(super) const fn writes(self) -> bool {
        matches!(self, Self::Write | Self::Upgrade)
    }
}

impl Word {
    /// What stands in the place of the word while somebody holds the gate ([`super::gate`]): crowded,
    /// and of no capacity, as no lock is.
    pub(crate) const GATED: Self = Self(CROWDED);

    pub(crate) const fn idle(capacity: u32) -> Self {
        Self((capacity as u64) << CAPACITY_SHIFT | capacity as u64)
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "masked to 31 bits")]
    pub(crate) const fn free(self) -> u32 {
        (self.0 & FREE) as u32
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "masked to 31 bits")]
    pub(crate) const fn capacity(self) -> u32 {
        (self.0 >> CAPACITY_SHIFT) as u32 & CAPACITY_MAX
    }

    #[inline]
    pub(crate) const fn is_crowded(self) -> bool {
        self.0 & CROWDED != 0
    }

    #[inline]
    pub(crate) const fn has_upgradable(self) -> bool {
        self.0 & UPGRADABLE != 0
    }

    #[inline]
    pub(crate) const fn crowded(self, crowded: bool) -> Self {
        Self(if crowded { self.0 | CROWDED } else { self.0 & !CROWDED })
    }

    #[inline]
    pub(crate) const fn upgradable(self, taken: bool) -> Self {
        Self(if taken { self.0 | UPGRADABLE } else { self.0 & !UPGRADABLE })
    }

    /// With that many permits taken; they must be free.
    #[inline]
    pub(crate) const fn minus(self, weight: u32) -> Self {
        Self(self.0 - weight as u64)
    }

    /// With that many permits given back; they must be held.
    #[inline]
    pub(crate) const fn plus(self, weight: u32) -> Self {
        debug_assert!(self.free() as u64 + weight as u64 <= self.capacity() as u64);
        Self(self.0 + weight as u64)
    }

    /// With another capacity; `free` must fit in it.
    pub(crate) const fn with(self, capacity: u32, free: u32) -> Self {
        assert!(free <= capacity && capacity <= CAPACITY_MAX);
        let flags = self.0 & (CROWDED | UPGRADABLE);
        Self(flags | (capacity as u64) << CAPACITY_SHIFT | free as u64)
    }

    /// The word after that grant, if it fits. Whether anybody is queued is the caller's to ask.
    #[inline]
    pub(crate) const fn granting(self, want: Want, weight: u32) -> Option<Self> {
        if self.free() < weight {
            return None;
        }
        match want {
            Want::Plain | Want::Write => Some(self.minus(weight)),
            Want::Upgradable if self.has_upgradable() => None,
            Want::Upgradable => Some(self.minus(weight).upgradable(true)),
            // An upgraded holder is one like any other, so the slot is free again.
            Want::Upgrade => Some(self.minus(weight).upgradable(false)),
        }
    }

    #[inline]
    pub(crate) const fn holds(self, what: WatchFor, anybody_queued: bool) -> bool {
        match what {
            WatchFor::Any => self.free() > 0,
            WatchFor::Readable => self.free() > 0 && !anybody_queued,
            WatchFor::All => self.free() == self.capacity(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_lock_keeps_its_flags_apart_from_its_numbers() {
        let idle = Word::idle(CAPACITY_MAX);
        let held = idle.minus(CAPACITY_MAX).crowded(true).upgradable(true);
        assert_eq!((held.free(), held.capacity()), (0, CAPACITY_MAX));
        assert!(held.is_crowded() && held.has_upgradable());
        assert!(held.plus(CAPACITY_MAX).crowded(false).upgradable(false) == idle);
        let small = held.with(7, 3);
        assert_eq!((small.free(), small.capacity()), (3, 7));
        assert!(small.is_crowded() && small.has_upgradable());
    }

    #[test]
    fn only_one_upgradable_holder_is_admitted_until_it_upgrades() {
        let one = Word::idle(4).granting(Want::Upgradable, 1).unwrap();
        assert!(one.granting(Want::Upgradable, 1).is_none());
        assert!(one.granting(Want::Plain, 1).is_some());
        let upgraded = one.granting(Want::Upgrade, 3).unwrap();
        assert_eq!(upgraded.free(), 0);
        assert!(!upgraded.has_upgradable());
    }
}
