//! The guards of the one upgradable reader, and the grants of its upgrade.

use std::{marker::PhantomData, ptr::NonNull, sync::Arc};

use super::{
    OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock, RwLockReadGuard, RwLockWriteGuard,
};
use crate::{
    acquire::{Acquire, Grant, sealed::Sealed},
    error::LockKind,
    guard::reads,
    hold::{Hold, Mode, Shared, Source, Upgradable, Upgrading, Whole},
    raw::Raw,
};

/// Reads an [`RwLock`] and may become its writer; dropping it ends the read.
#[must_use = "the lock is released when the guard is dropped"]
pub struct RwLockUpgradableGuard<'a, T: ?Sized> {
    hold: Hold<&'a Raw, Upgradable>,
    data: NonNull<T>,
    _borrow: PhantomData<&'a mut T>,
}

/// As [`RwLockUpgradableGuard`], and keeps the lock alive.
#[must_use = "the lock is released when the guard is dropped"]
pub struct OwnedRwLockUpgradableGuard<T: ?Sized> {
    hold: Hold<Arc<RwLock<T>>, Upgradable>,
    data: NonNull<T>,
    _borrow: PhantomData<*mut T>,
}

/// What [`Acquire`] gets from an upgradable guard: the write guard `W`.
pub struct Upgrade<W>(PhantomData<W>);

/// What both kinds of upgradable guards can do.
macro_rules! upgrades {
    ([$($lifetime:tt)*] $guard:ty, $read:ty, $write:ty, $source:ty) => {
        impl<$($lifetime)* T: ?Sized> $guard {
            /// Waits until the other readers are gone, and becomes the writer.
            ///
            /// # Fairness
            ///
            /// It goes before the whole queue, as it must: the head may be a write that waits for
            /// this very reader (rule Q7). Nobody writes in between.
            ///
            /// # Cancel safety
            ///
            /// Dropping the future, a timeout or a cancellation ends the read as well: the guard
            /// is part of the request.
            ///
            /// # Errors
            ///
            /// None; with a timeout or a cancellation, see [`Acquire`].
            ///
            /// # Examples
            ///
            /// ```
            /// # pollster::block_on(async {
            /// let lock = leasehold_sync::RwLock::new(5);
            /// *lock.upgradable_read().await.upgrade().await += 1;
            /// assert_eq!(lock.into_inner(), 6);
            /// # });
            /// ```
            pub fn upgrade(self) -> Acquire<Upgrade<$write>> {
                Acquire::new(self, Upgrading)
            }

            /// Becomes the writer if there is no other reader at this moment. Never waits.
            ///
            /// # Errors
            ///
            /// The guard itself, if there are other readers.
            pub fn try_upgrade(self) -> Result<$write, Self> {
                if Upgrading.try_take(self.hold.source().raw()) {
                    Ok(<$write>::new(Hold::new(self.hold.into_source(), Whole), self.data))
                } else {
                    Err(self)
                }
            }

            /// Goes on as a plain reader, so that another may be the upgradable one.
            pub fn downgrade(self) -> $read {
                let reads = Hold::new(self.hold.into_source(), Shared);
                reads.source().raw().downgrade_upgradable();
                <$read>::new(reads, self.data)
            }
        }

        impl<$($lifetime)* T: ?Sized> Source for $guard {
            #[inline]
            fn raw(&self) -> &Raw {
                self.hold.source().raw()
            }
        }

        impl<$($lifetime)* T: ?Sized> Sealed for $guard {}

        impl<$($lifetime)* T: ?Sized> Grant for $guard {
            type Source = $source;
            type Mode = Upgradable;
            const KIND: LockKind = LockKind::UpgradableRead;
            type Guard = Self;

            #[inline]
            fn granted(source: $source, mode: Upgradable) -> Self {
                Self::of(source, mode)
            }
        }

        impl<$($lifetime)* T: ?Sized> Sealed for Upgrade<$write> {}

        impl<$($lifetime)* T: ?Sized> Grant for Upgrade<$write> {
            type Source = $guard;
            type Mode = Upgrading;
            const KIND: LockKind = LockKind::Upgrade;
            type Guard = $write;

            #[inline]
            fn granted(guard: $guard, _mode: Upgrading) -> $write {
                <$write>::new(Hold::new(guard.hold.into_source(), Whole), guard.data)
            }
        }

        // SAFETY: an upgradable guard is shared access to the data now and exclusive access after
        // the upgrade; the hold may be given back on any thread.
        unsafe impl<$($lifetime)* T: ?Sized + Send + Sync> Send for $guard {}
        // SAFETY: a shared guard gives `&T` and nothing else.
        unsafe impl<$($lifetime)* T: ?Sized + Send + Sync> Sync for $guard {}
    };
}

impl<'a, T: ?Sized> RwLockUpgradableGuard<'a, T> {
    #[inline]
    fn of(lock: &'a RwLock<T>, mode: Upgradable) -> Self {
        Self { hold: Hold::new(&lock.raw, mode), data: lock.data(), _borrow: PhantomData }
    }
}

impl<T: ?Sized> OwnedRwLockUpgradableGuard<T> {
    #[inline]
    fn of(lock: Arc<RwLock<T>>, mode: Upgradable) -> Self {
        let data = lock.data();
        Self { hold: Hold::new(lock, mode), data, _borrow: PhantomData }
    }
}

upgrades!(['a,] RwLockUpgradableGuard<'a, T>, RwLockReadGuard<'a, T>, RwLockWriteGuard<'a, T>, &'a RwLock<T>);
upgrades!([] OwnedRwLockUpgradableGuard<T>, OwnedRwLockReadGuard<T>, OwnedRwLockWriteGuard<T>, Arc<RwLock<T>>);

reads!(['a, T: ?Sized] RwLockUpgradableGuard<'a, T>, T);
reads!([T: ?Sized] OwnedRwLockUpgradableGuard<T>, T);

impl<W> std::fmt::Debug for Upgrade<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Upgrade")
    }
}
