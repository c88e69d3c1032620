//! The guards of readers.

use std::{marker::PhantomData, ptr::NonNull, sync::Arc};

use super::RwLock;
use crate::{
    acquire::{Grant, sealed::Sealed},
    error::LockKind,
    guard::{maps, reads},
    hold::{Hold, Shared},
    raw::Raw,
};

/// Reads an [`RwLock`], or a part of its data; dropping it ends the read.
#[must_use = "the lock is released when the guard is dropped"]
pub struct RwLockReadGuard<'a, T: ?Sized> {
    hold: Hold<&'a Raw, Shared>,
    data: NonNull<T>,
    _borrow: PhantomData<&'a T>,
}

/// As [`RwLockReadGuard`], and keeps the lock alive. `U` is the part that [`map`](Self::map) chose.
#[must_use = "the lock is released when the guard is dropped"]
pub struct OwnedRwLockReadGuard<T: ?Sized, U: ?Sized = T> {
    hold: Hold<Arc<RwLock<T>>, Shared>,
    data: NonNull<U>,
    _borrow: PhantomData<*const U>,
}

impl<'a, T: ?Sized> RwLockReadGuard<'a, T> {
    #[inline]
    pub(super) const fn new(hold: Hold<&'a Raw, Shared>, data: NonNull<T>) -> Self {
        Self { hold, data, _borrow: PhantomData }
    }

    maps!(ref RwLockReadGuard => RwLockReadGuard<'a, U>, T, U);
}

impl<T: ?Sized, U: ?Sized> OwnedRwLockReadGuard<T, U> {
    #[inline]
    pub(super) const fn new(hold: Hold<Arc<RwLock<T>>, Shared>, data: NonNull<U>) -> Self {
        Self { hold, data, _borrow: PhantomData }
    }

    maps!(ref OwnedRwLockReadGuard => OwnedRwLockReadGuard<T, V>, U, V);

    /// The lock that is read.
    pub const fn rw_lock(guard: &Self) -> &Arc<RwLock<T>> {
        guard.hold.source()
    }
}

reads!(['a, T: ?Sized] RwLockReadGuard<'a, T>, T);
reads!([T: ?Sized, U: ?Sized] OwnedRwLockReadGuard<T, U>, U);

// SAFETY: a read guard is shared access to the data, as `&T` is; the hold may be given back on
// any thread.
unsafe impl<T: ?Sized + Sync> Send for RwLockReadGuard<'_, T> {}
// SAFETY: as above; a shared guard gives `&T` and nothing else.
unsafe impl<T: ?Sized + Sync> Sync for RwLockReadGuard<'_, T> {}
// SAFETY: as above; with it goes a share of the lock, whose data may be dropped where it ends.
unsafe impl<T: ?Sized + Send + Sync, U: ?Sized + Sync> Send for OwnedRwLockReadGuard<T, U> {}
// SAFETY: as above; a shared guard gives `&U` and shares of the lock.
unsafe impl<T: ?Sized + Send + Sync, U: ?Sized + Sync> Sync for OwnedRwLockReadGuard<T, U> {}

impl<T: ?Sized> Sealed for RwLockReadGuard<'_, T> {}

impl<'a, T: ?Sized> Grant for RwLockReadGuard<'a, T> {
    type Source = &'a RwLock<T>;
    type Mode = Shared;
    const KIND: LockKind = LockKind::Read;
    type Guard = Self;

    #[inline]
    fn granted(lock: &'a RwLock<T>, mode: Shared) -> Self {
        Self::new(Hold::new(&lock.raw, mode), lock.data())
    }
}

impl<T: ?Sized> Sealed for OwnedRwLockReadGuard<T> {}

impl<T: ?Sized> Grant for OwnedRwLockReadGuard<T> {
    type Source = Arc<RwLock<T>>;
    type Mode = Shared;
    const KIND: LockKind = LockKind::Read;
    type Guard = Self;

    #[inline]
    fn granted(lock: Arc<RwLock<T>>, mode: Shared) -> Self {
        let data = lock.data();
        Self::new(Hold::new(lock, mode), data)
    }
}
