//! What the raw lock is built on: the real thing, or loom's under `cfg(leasehold_loom)`.

use super::gate::Locked;

#[cfg(not(leasehold_loom))]
pub(crate) use std::sync::atomic::{AtomicU8, AtomicU64};

#[cfg(leasehold_loom)]
pub(crate) use loom::sync::atomic::{AtomicU8, AtomicU64};

#[cfg(not(leasehold_loom))]
use std::cell::UnsafeCell;

#[cfg(leasehold_loom)]
use loom::cell::UnsafeCell;

/// Defines a function that is `const`, save under loom, whose types are not made in constants.
macro_rules! const_fn {
    ($(#[$meta:meta])* $vis:vis const fn $($rest:tt)*) => {
        #[cfg(not(leasehold_loom))]
        $(#[$meta])* $vis const fn $($rest)*
        #[cfg(leasehold_loom)]
        $(#[$meta])* $vis fn $($rest)*
    };
}
pub(crate) use const_fn;

/// A value that is only touched under the gate of the lock it belongs to: a field of the lock
/// itself, or of a waiter that is, or is about to be, queued on that lock.
pub(crate) struct Guarded<T>(UnsafeCell<T>);

impl<T> Guarded<T> {
    const_fn! {
        pub(crate) const fn new(value: T) -> Self {
            Self(UnsafeCell::new(value))
        }
    }

    /// The value, for as long as nothing else is asked of the gate.
    #[inline]
    pub(crate) fn get_mut<'a>(&'a self, _locked: &'a mut Locked<'_>) -> &'a mut T {
        // SAFETY: the gate of the lock that this value belongs to is held, so no other thread
        // touches it; and the gate is borrowed mutably, so this thread touches nothing else
        // under it while the reference lives.
        #[cfg(not(leasehold_loom))]
        unsafe {
            &mut *self.0.get()
        }
        // SAFETY: as above; loom checks that no access happens without the gate.
        #[cfg(leasehold_loom)]
        self.0.with_mut(|value| unsafe { &mut *value })
    }
}

impl<T: Copy> Guarded<T> {
    #[inline]
    pub(crate) fn get(&self, _locked: &Locked<'_>) -> T {
        // SAFETY: the gate of the lock that this value belongs to is held, so no other thread
        // writes it, and `get_mut` borrows the gate mutably, so this thread does not either.
        #[cfg(not(leasehold_loom))]
        unsafe {
            *self.0.get()
        }
        // SAFETY: as above; loom checks that no access happens without the gate.
        #[cfg(leasehold_loom)]
        self.0.with(|value| unsafe { *value })
    }

    #[inline]
    pub(crate) fn set(&self, locked: &mut Locked<'_>, value: T) {
        *self.get_mut(locked) = value;
    }
}

// SAFETY: access is serialised by the gate, which only `Locked` proves; so sharing the cell moves
// values between threads but never lets two threads at one.
unsafe impl<T: Send> Sync for Guarded<T> {}
