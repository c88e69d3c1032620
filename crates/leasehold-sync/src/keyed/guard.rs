//! The guards of a keyed lock.

use std::{fmt, sync::Arc};

use super::{
    KeyedLock,
    ask::Ask,
    table::{Grant, Table},
};
#[cfg(not(leasehold_loom))]
use super::{checked::CheckedKeyedLock, checking::Checked};
use crate::error::LockKind;
#[cfg(not(leasehold_loom))]
use crate::frames::GuardHold;

/// Where keyed requests come from: a borrowed or shared [`KeyedLock`], or an object. Implemented
/// by this crate and by nothing else.
pub trait KeyedSource: sealed::Sealed {
    #[doc(hidden)]
    type Key: Eq;
    /// What the frames around a request know of its guard.
    #[doc(hidden)]
    type Record: Record;
    #[doc(hidden)]
    fn table(&self) -> &Table<Self::Key>;
    #[doc(hidden)]
    fn kind(ask: Ask) -> LockKind;
    /// The type of the keys, or of the object.
    #[doc(hidden)]
    fn of() -> &'static str {
        std::any::type_name::<Self::Key>()
    }
}

/// What a guard keeps besides its grant: nothing, unless its requests are checked.
#[doc(hidden)]
pub trait Record: Sized {
    /// Whether requests are checked.
    const CHECKS: bool;

    /// Of a request that was not checked.
    fn none() -> Self;

    /// Of one that was, if it was made in a frame.
    #[cfg(not(leasehold_loom))]
    fn of(checked: Checked) -> Self;

    /// Says whether it was the last guard of its grant.
    fn end(&mut self) -> bool;
}

impl Record for () {
    const CHECKS: bool = false;

    #[inline]
    fn none() -> Self {}

    #[cfg(not(leasehold_loom))]
    fn of(_: Checked) -> Self {
        unreachable!("its requests are not checked, but for those that open a frame")
    }

    #[inline]
    fn end(&mut self) -> bool {
        true
    }
}

/// The record of a guard of a checked request.
#[cfg(not(leasehold_loom))]
#[doc(hidden)]
#[allow(missing_debug_implementations, reason = "it is a part of a guard")]
pub struct Recorded(GuardHold);

#[cfg(not(leasehold_loom))]
impl Record for Recorded {
    const CHECKS: bool = true;

    fn none() -> Self {
        Self(GuardHold::none())
    }

    fn of(checked: Checked) -> Self {
        Self(match (&checked.ask, checked.share) {
            (Some(ask), Some(share)) => GuardHold::sharing(ask, share),
            (Some(ask), None) => GuardHold::new(ask),
            (None, _) => GuardHold::none(),
        })
    }

    fn end(&mut self) -> bool {
        std::mem::replace(&mut self.0, GuardHold::none()).end()
    }
}

pub(crate) mod sealed {
    /// Keeps [`KeyedSource`](super::KeyedSource) within this crate.
    pub trait Sealed {}
}

/// Holds a key, the whole set, or an object; dropping it releases.
///
/// `L` is what was asked: `&KeyedLock<K>`, `Arc<KeyedLock<K>>`, or what stands for an object.
#[must_use = "it is released when the guard is dropped"]
pub struct KeyedGuard<L: KeyedSource> {
    source: L,
    grant: Grant,
    record: L::Record,
}

impl<L: KeyedSource> KeyedGuard<L> {
    #[inline]
    pub(super) fn new(source: L, grant: Grant) -> Self {
        Self { source, grant, record: L::Record::none() }
    }

    /// Of a request that was checked.
    #[cfg(not(leasehold_loom))]
    pub(super) fn checked(source: L, checked: Checked) -> Self {
        let grant = checked.grant;
        Self { source, grant, record: L::Record::of(checked) }
    }

    /// What it is a guard of.
    pub const fn source(guard: &Self) -> &L {
        &guard.source
    }
}

impl<L: KeyedSource> Drop for KeyedGuard<L> {
    #[inline]
    fn drop(&mut self) {
        // The record goes first; of a shared grant only the last guard gives it back.
        if self.record.end() {
            self.source.table().release(self.grant);
        }
    }
}

impl<L: KeyedSource> fmt::Debug for KeyedGuard<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedGuard")
            .field("lock", &L::kind(self.grant.ask()))
            .finish_non_exhaustive()
    }
}

impl<K, S> sealed::Sealed for &KeyedLock<K, S> {}

impl<K: Eq, S> KeyedSource for &KeyedLock<K, S> {
    type Key = K;
    type Record = ();

    #[inline]
    fn table(&self) -> &Table<K> {
        &self.table
    }

    fn kind(ask: Ask) -> LockKind {
        kind(ask)
    }
}

#[cfg(not(leasehold_loom))]
impl<K, S> sealed::Sealed for &CheckedKeyedLock<K, S> {}

#[cfg(not(leasehold_loom))]
impl<K: Eq, S> KeyedSource for &CheckedKeyedLock<K, S> {
    type Key = K;
    type Record = Recorded;

    #[inline]
    fn table(&self) -> &Table<K> {
        &self.unchecked().table
    }

    fn kind(ask: Ask) -> LockKind {
        kind(ask)
    }
}

#[cfg(not(leasehold_loom))]
impl<K, S> sealed::Sealed for Arc<CheckedKeyedLock<K, S>> {}

#[cfg(not(leasehold_loom))]
impl<K: Eq, S> KeyedSource for Arc<CheckedKeyedLock<K, S>> {
    type Key = K;
    type Record = Recorded;

    #[inline]
    fn table(&self) -> &Table<K> {
        &self.unchecked().table
    }

    fn kind(ask: Ask) -> LockKind {
        kind(ask)
    }
}

impl<K, S> sealed::Sealed for Arc<KeyedLock<K, S>> {}

impl<K: Eq, S> KeyedSource for Arc<KeyedLock<K, S>> {
    type Key = K;
    type Record = ();

    #[inline]
    fn table(&self) -> &Table<K> {
        &self.table
    }

    fn kind(ask: Ask) -> LockKind {
        kind(ask)
    }
}

const fn kind(ask: Ask) -> LockKind {
    match ask {
        Ask::Read => LockKind::KeyedRead,
        Ask::Write => LockKind::KeyedWrite,
        Ask::ReadAll => LockKind::KeyedReadAll,
        Ask::WriteAll => LockKind::KeyedWriteAll,
    }
}
