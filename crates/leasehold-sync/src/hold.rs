//! What a guard holds, and where from: the part that every guard shares.

use std::{mem::ManuallyDrop, sync::Arc};

use crate::raw::{Raw, Want};

/// Where permits come from: a reference to a lock, or a share of its ownership.
pub trait Source {
    #[doc(hidden)]
    fn raw(&self) -> &Raw;
}

/// How permits are taken and given back. Each is taken at most as often as it is granted and
/// given back once per grant, by [`Hold`].
pub trait Mode: Copy {
    #[doc(hidden)]
    const WANT: Want = Want::Plain;

    /// Whether the caller chose the weight, so that no capacity may be enough for it.
    #[doc(hidden)]
    const MAY_BE_TOO_HEAVY: bool = false;

    #[doc(hidden)]
    fn weight(self, raw: &Raw) -> u32;

    /// `None`: somebody is queued or watching.
    #[doc(hidden)]
    #[inline]
    fn try_take_fast(self, raw: &Raw) -> Option<bool> {
        raw.try_take_fast(Self::WANT, self.weight(raw))
    }

    #[doc(hidden)]
    #[inline]
    fn try_take(self, raw: &Raw) -> bool {
        match self.try_take_fast(raw) {
            Some(taken) => taken,
            None => raw.try_take(Self::WANT, self.weight(raw)),
        }
    }

    #[doc(hidden)]
    #[inline]
    fn give_back(self, raw: &Raw) {
        raw.release(self.weight(raw));
    }
}

/// Permits that were granted, given back on drop.
pub(crate) struct Hold<S: Source, M: Mode> {
    source: S,
    mode: M,
}

/// The one permit of a mutex.
#[derive(Clone, Copy, Debug)]
pub struct Only;

/// One reader of a read-write lock.
#[derive(Clone, Copy, Debug)]
pub struct Shared;

/// The writer of a read-write lock.
#[derive(Clone, Copy, Debug)]
pub struct Whole;

/// The upgradable reader of a read-write lock.
#[derive(Clone, Copy, Debug)]
pub struct Upgradable;

/// From upgradable reader to writer.
#[derive(Clone, Copy, Debug)]
pub struct Upgrading;

/// Some permits of a semaphore.
#[derive(Clone, Copy, Debug)]
pub struct Permits(pub(crate) u32);

impl<S: Source, M: Mode> Hold<S, M> {
    /// The permits must have been granted, and nobody else gives them back.
    #[inline]
    pub(crate) const fn new(source: S, mode: M) -> Self {
        Self { source, mode }
    }

    #[inline]
    pub(crate) const fn source(&self) -> &S {
        &self.source
    }

    #[inline]
    pub(crate) const fn mode(&self) -> M {
        self.mode
    }

    /// The same permits, held in another number; who calls accounts for the difference.
    #[inline]
    pub(crate) fn set_mode(&mut self, mode: M) {
        self.mode = mode;
    }

    /// Gives nothing back: the permits are the caller's now.
    #[inline]
    pub(crate) fn into_source(self) -> S {
        let this = ManuallyDrop::new(self);
        // SAFETY: `this` is never dropped and not used again, so the source is moved out once.
        unsafe { std::ptr::read(&raw const this.source) }
    }
}

impl<S: Source, M: Mode> Drop for Hold<S, M> {
    #[inline]
    fn drop(&mut self) {
        self.mode.give_back(self.source.raw());
    }
}

impl Source for &Raw {
    #[inline]
    fn raw(&self) -> &Raw {
        self
    }
}

impl<L: Source + ?Sized> Source for Arc<L> {
    #[inline]
    fn raw(&self) -> &Raw {
        (**self).raw()
    }
}

impl Mode for Only {
    #[inline]
    fn weight(self, _raw: &Raw) -> u32 {
        1
    }

    #[inline]
    fn try_take_fast(self, raw: &Raw) -> Option<bool> {
        raw.try_take_only_fast()
    }

    #[inline]
    fn give_back(self, raw: &Raw) {
        raw.release_only();
    }
}

impl Mode for Shared {
    #[inline]
    fn weight(self, _raw: &Raw) -> u32 {
        1
    }
}

impl Mode for Whole {
    const WANT: Want = Want::Write;

    #[inline]
    fn weight(self, raw: &Raw) -> u32 {
        raw.capacity()
    }

    #[inline]
    fn try_take_fast(self, raw: &Raw) -> Option<bool> {
        raw.try_take_all_fast()
    }

    #[inline]
    fn give_back(self, raw: &Raw) {
        raw.release_write();
    }
}

impl Mode for Upgradable {
    const WANT: Want = Want::Upgradable;

    #[inline]
    fn weight(self, _raw: &Raw) -> u32 {
        1
    }

    #[inline]
    fn give_back(self, raw: &Raw) {
        raw.release_upgradable();
    }
}

impl Mode for Upgrading {
    const WANT: Want = Want::Upgrade;

    /// All that the reader does not hold yet; of a lock for one reader, nothing.
    #[inline]
    fn weight(self, raw: &Raw) -> u32 {
        raw.capacity() - 1
    }
}

impl Mode for Permits {
    const MAY_BE_TOO_HEAVY: bool = true;

    #[inline]
    fn weight(self, _raw: &Raw) -> u32 {
        self.0
    }
}
