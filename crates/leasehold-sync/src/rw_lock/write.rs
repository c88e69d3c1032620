//! The guards of the writer.
//!
//! A guard of a part is a type of its own: it must not be downgraded, as the part may be one that
//! other readers are allowed to change, the inside of a `Cell` for example.

use std::{marker::PhantomData, ptr::NonNull, sync::Arc};

use super::{OwnedRwLockReadGuard, RwLock, RwLockReadGuard};
use crate::{
    acquire::{Grant, sealed::Sealed},
    error::LockKind,
    guard::{maps, reads, writes},
    hold::{Hold, Shared, Source, Whole},
    raw::Raw,
};

/// Writes an [`RwLock`]; dropping it ends the write.
#[must_use = "the lock is released when the guard is dropped"]
pub struct RwLockWriteGuard<'a, T: ?Sized> {
    pub(super) hold: Hold<&'a Raw, Whole>,
    data: NonNull<T>,
    _borrow: PhantomData<&'a mut T>,
}

/// As [`RwLockWriteGuard`], and keeps the lock alive.
#[must_use = "the lock is released when the guard is dropped"]
pub struct OwnedRwLockWriteGuard<T: ?Sized> {
    pub(super) hold: Hold<Arc<RwLock<T>>, Whole>,
    data: NonNull<T>,
    _borrow: PhantomData<*mut T>,
}

/// Writes a part of the data of an [`RwLock`]; dropping it ends the write.
#[must_use = "the lock is released when the guard is dropped"]
pub struct MappedRwLockWriteGuard<'a, T: ?Sized> {
    hold: Hold<&'a Raw, Whole>,
    data: NonNull<T>,
    _borrow: PhantomData<&'a mut T>,
}

/// As [`MappedRwLockWriteGuard`], and keeps the lock alive. `U` is the part.
#[must_use = "the lock is released when the guard is dropped"]
pub struct OwnedMappedRwLockWriteGuard<T: ?Sized, U: ?Sized> {
    hold: Hold<Arc<RwLock<T>>, Whole>,
    data: NonNull<U>,
    _borrow: PhantomData<*mut U>,
}

impl<'a, T: ?Sized> RwLockWriteGuard<'a, T> {
    #[inline]
    pub(super) const fn new(hold: Hold<&'a Raw, Whole>, data: NonNull<T>) -> Self {
        Self { hold, data, _borrow: PhantomData }
    }

    maps!(mut RwLockWriteGuard => MappedRwLockWriteGuard<'a, U>, T, U);

    /// Goes on reading: other readers get in, and nobody writes in between (rule Q7).
    pub fn downgrade(self) -> RwLockReadGuard<'a, T> {
        RwLockReadGuard::new(downgraded(self.hold), self.data)
    }
}

impl<T: ?Sized> OwnedRwLockWriteGuard<T> {
    #[inline]
    pub(super) const fn new(hold: Hold<Arc<RwLock<T>>, Whole>, data: NonNull<T>) -> Self {
        Self { hold, data, _borrow: PhantomData }
    }

    maps!(mut OwnedRwLockWriteGuard => OwnedMappedRwLockWriteGuard<T, U>, T, U);

    /// Goes on reading: other readers get in, and nobody writes in between (rule Q7).
    pub fn downgrade(self) -> OwnedRwLockReadGuard<T> {
        OwnedRwLockReadGuard::new(downgraded(self.hold), self.data)
    }

    /// The lock that is written.
    pub const fn rw_lock(guard: &Self) -> &Arc<RwLock<T>> {
        guard.hold.source()
    }
}

impl<'a, T: ?Sized> MappedRwLockWriteGuard<'a, T> {
    const fn new(hold: Hold<&'a Raw, Whole>, data: NonNull<T>) -> Self {
        Self { hold, data, _borrow: PhantomData }
    }

    maps!(mut MappedRwLockWriteGuard => MappedRwLockWriteGuard<'a, U>, T, U);
}

impl<T: ?Sized, U: ?Sized> OwnedMappedRwLockWriteGuard<T, U> {
    const fn new(hold: Hold<Arc<RwLock<T>>, Whole>, data: NonNull<U>) -> Self {
        Self { hold, data, _borrow: PhantomData }
    }

    maps!(mut OwnedMappedRwLockWriteGuard => OwnedMappedRwLockWriteGuard<T, V>, U, V);
}

/// The writer's permits but one are given back; the one is a reader's.
fn downgraded<S: Source>(hold: Hold<S, Whole>) -> Hold<S, Shared> {
    // The read hold first: should a waker panic, it still gives back what is left.
    let reads = Hold::new(hold.into_source(), Shared);
    reads.source().raw().downgrade();
    reads
}

reads!(['a, T: ?Sized] RwLockWriteGuard<'a, T>, T);
writes!(['a, T: ?Sized] RwLockWriteGuard<'a, T>);
reads!([T: ?Sized] OwnedRwLockWriteGuard<T>, T);
writes!([T: ?Sized] OwnedRwLockWriteGuard<T>);
reads!(['a, T: ?Sized] MappedRwLockWriteGuard<'a, T>, T);
writes!(['a, T: ?Sized] MappedRwLockWriteGuard<'a, T>);
reads!([T: ?Sized, U: ?Sized] OwnedMappedRwLockWriteGuard<T, U>, U);
writes!([T: ?Sized, U: ?Sized] OwnedMappedRwLockWriteGuard<T, U>);

// SAFETY: a write guard is exclusive access to the data, as `&mut T` is; the hold may be given
// back on any thread. `Sync` too, as it can be downgraded to share the data.
unsafe impl<T: ?Sized + Send + Sync> Send for RwLockWriteGuard<'_, T> {}
// SAFETY: a shared guard gives `&T` and nothing else.
unsafe impl<T: ?Sized + Send + Sync> Sync for RwLockWriteGuard<'_, T> {}
// SAFETY: as above; with it goes a share of the lock, whose data may be dropped where it ends.
unsafe impl<T: ?Sized + Send + Sync> Send for OwnedRwLockWriteGuard<T> {}
// SAFETY: as above; a shared guard gives `&T` and shares of the lock.
unsafe impl<T: ?Sized + Send + Sync> Sync for OwnedRwLockWriteGuard<T> {}
// SAFETY: exclusive access to a part, as `&mut T` is.
unsafe impl<T: ?Sized + Send> Send for MappedRwLockWriteGuard<'_, T> {}
// SAFETY: a shared guard gives `&T` and nothing else.
unsafe impl<T: ?Sized + Sync> Sync for MappedRwLockWriteGuard<'_, T> {}
// SAFETY: exclusive access to a part, and a share of the lock.
unsafe impl<T: ?Sized + Send + Sync, U: ?Sized + Send> Send for OwnedMappedRwLockWriteGuard<T, U> {}
// SAFETY: a shared guard gives `&U` and nothing else.
unsafe impl<T: ?Sized + Send + Sync, U: ?Sized + Sync> Sync for OwnedMappedRwLockWriteGuard<T, U> {}

impl<T: ?Sized> Sealed for RwLockWriteGuard<'_, T> {}

impl<'a, T: ?Sized> Grant for RwLockWriteGuard<'a, T> {
    type Source = &'a RwLock<T>;
    type Mode = Whole;
    const KIND: LockKind = LockKind::Write;
    type Guard = Self;

    #[inline]
    fn granted(lock: &'a RwLock<T>, mode: Whole) -> Self {
        Self::new(Hold::new(&lock.raw, mode), lock.data())
    }
}

impl<T: ?Sized> Sealed for OwnedRwLockWriteGuard<T> {}

impl<T: ?Sized> Grant for OwnedRwLockWriteGuard<T> {
    type Source = Arc<RwLock<T>>;
    type Mode = Whole;
    const KIND: LockKind = LockKind::Write;
    type Guard = Self;

    #[inline]
    fn granted(lock: Arc<RwLock<T>>, mode: Whole) -> Self {
        let data = lock.data();
        Self::new(Hold::new(lock, mode), data)
    }
}
