//! The guards of a [`Mutex`].

use std::{marker::PhantomData, ptr::NonNull, sync::Arc};

use super::Mutex;
use crate::{
    acquire::{Grant, sealed::Sealed},
    error::LockKind,
    guard::{maps, reads, writes},
    hold::{Hold, Only},
    raw::Raw,
};

/// Holds a [`Mutex`], or a part of its data; dropping it releases the lock.
#[must_use = "the lock is released when the guard is dropped"]
pub struct MutexGuard<'a, T: ?Sized> {
    hold: Hold<&'a Raw, Only>,
    data: NonNull<T>,
    _borrow: PhantomData<&'a mut T>,
}

/// As [`MutexGuard`], and keeps the mutex alive. `U` is the part that [`map`](Self::map) chose.
#[must_use = "the lock is released when the guard is dropped"]
pub struct OwnedMutexGuard<T: ?Sized, U: ?Sized = T> {
    hold: Hold<Arc<Mutex<T>>, Only>,
    data: NonNull<U>,
    _borrow: PhantomData<*mut U>,
}

impl<'a, T: ?Sized> MutexGuard<'a, T> {
    #[inline]
    const fn new(hold: Hold<&'a Raw, Only>, data: NonNull<T>) -> Self {
        Self { hold, data, _borrow: PhantomData }
    }

    maps!(mut MutexGuard => MutexGuard<'a, U>, T, U);
}

impl<T: ?Sized, U: ?Sized> OwnedMutexGuard<T, U> {
    #[inline]
    const fn new(hold: Hold<Arc<Mutex<T>>, Only>, data: NonNull<U>) -> Self {
        Self { hold, data, _borrow: PhantomData }
    }

    maps!(mut OwnedMutexGuard => OwnedMutexGuard<T, V>, U, V);

    /// The mutex that is held.
    pub const fn mutex(guard: &Self) -> &Arc<Mutex<T>> {
        guard.hold.source()
    }
}

reads!(['a, T: ?Sized] MutexGuard<'a, T>, T);
writes!(['a, T: ?Sized] MutexGuard<'a, T>);
reads!([T: ?Sized, U: ?Sized] OwnedMutexGuard<T, U>, U);
writes!([T: ?Sized, U: ?Sized] OwnedMutexGuard<T, U>);

// SAFETY: a guard is exclusive access to the data, as `&mut T` is; the hold may be given back on
// any thread.
unsafe impl<T: ?Sized + Send> Send for MutexGuard<'_, T> {}
// SAFETY: a shared guard gives `&T` and nothing else.
unsafe impl<T: ?Sized + Sync> Sync for MutexGuard<'_, T> {}
// SAFETY: as above; with it goes a share of the mutex, whose data may be dropped where it ends.
unsafe impl<T: ?Sized + Send, U: ?Sized + Send> Send for OwnedMutexGuard<T, U> {}
// SAFETY: a shared guard gives `&U`, and shares of the mutex, which is `Sync` if `T: Send`.
unsafe impl<T: ?Sized + Send, U: ?Sized + Sync> Sync for OwnedMutexGuard<T, U> {}

impl<T: ?Sized> Sealed for MutexGuard<'_, T> {}

impl<'a, T: ?Sized> Grant for MutexGuard<'a, T> {
    type Source = &'a Mutex<T>;
    type Mode = Only;
    const KIND: LockKind = LockKind::Mutex;
    type Guard = Self;

    #[inline]
    fn granted(mutex: &'a Mutex<T>, mode: Only) -> Self {
        Self::new(Hold::new(&mutex.raw, mode), data(mutex))
    }
}

impl<T: ?Sized> Sealed for OwnedMutexGuard<T> {}

impl<T: ?Sized> Grant for OwnedMutexGuard<T> {
    type Source = Arc<Mutex<T>>;
    type Mode = Only;
    const KIND: LockKind = LockKind::Mutex;
    type Guard = Self;

    #[inline]
    fn granted(mutex: Arc<Mutex<T>>, mode: Only) -> Self {
        let data = data(&mutex);
        Self::new(Hold::new(mutex, mode), data)
    }
}

#[inline]
fn data<T: ?Sized>(mutex: &Mutex<T>) -> NonNull<T> {
    // SAFETY: the address of a field is not null.
    unsafe { NonNull::new_unchecked(mutex.data.get()) }
}
