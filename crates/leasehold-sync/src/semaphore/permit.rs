//! The permits of a [`Semaphore`].

use std::{fmt, sync::Arc};

use super::Semaphore;
use crate::{
    acquire::{Grant, sealed::Sealed},
    error::LockKind,
    hold::{Hold, Permits, Source},
    raw::Raw,
};

/// One or several permits of a [`Semaphore`]; dropping it gives them back.
#[must_use = "the permits are given back when this is dropped"]
pub struct SemaphorePermit<'a> {
    hold: Hold<&'a Raw, Permits>,
}

/// As [`SemaphorePermit`], and keeps the semaphore alive.
#[must_use = "the permits are given back when this is dropped"]
pub struct OwnedSemaphorePermit {
    hold: Hold<Arc<Semaphore>, Permits>,
}

impl OwnedSemaphorePermit {
    /// The semaphore the permits are of.
    pub const fn semaphore(&self) -> &Arc<Semaphore> {
        self.hold.source()
    }
}

/// What both kinds of permits can do.
macro_rules! permits {
    ([$($lifetime:tt)*] $permit:ty, $source:ty) => {
        impl<$($lifetime)*> $permit {
            /// How many permits this is.
            pub const fn permits(&self) -> u32 {
                self.hold.mode().0
            }

            /// Takes that many permits out, to be held apart. `None` unless both parts hold at
            /// least one then.
            pub fn split(&mut self, permits: u32) -> Option<Self> {
                let rest = self.permits().checked_sub(permits).filter(|&rest| rest > 0)?;
                if permits == 0 {
                    return None;
                }
                let source = <$source>::clone(self.hold.source());
                self.hold.set_mode(Permits(rest));
                Some(Self { hold: Hold::new(source, Permits(permits)) })
            }

            /// Adds the permits of another holder of the same semaphore.
            ///
            /// # Errors
            ///
            /// The other holder, if it is one of another semaphore.
            pub fn merge(&mut self, other: Self) -> Result<(), Self> {
                if !std::ptr::eq(self.hold.source().raw(), other.hold.source().raw()) {
                    return Err(other);
                }
                let permits = self.permits() + other.permits();
                let _ = other.hold.into_source();
                self.hold.set_mode(Permits(permits));
                Ok(())
            }

            /// Unmakes these permits: the semaphore has so many less (rule Q7), and who waits for
            /// more than are left gets `InvalidArgument`.
            ///
            /// # Errors
            ///
            /// The permits themselves, if they are all that the semaphore has.
            pub fn forget(self) -> Result<(), Self> {
                if !self.hold.source().raw().forget_held(self.permits()) {
                    return Err(self);
                }
                let _ = self.hold.into_source();
                Ok(())
            }
        }

        impl<$($lifetime)*> fmt::Debug for $permit {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct("SemaphorePermit").field("permits", &self.permits()).finish()
            }
        }

        impl<$($lifetime)*> Sealed for $permit {}

        impl<$($lifetime)*> Grant for $permit {
            type Source = $source;
            type Mode = Permits;
            const KIND: LockKind = LockKind::Semaphore;
            type Guard = Self;

            #[inline]
            fn granted(source: $source, mode: Permits) -> Self {
                Self { hold: Hold::new(source, mode) }
            }
        }
    };
}

permits!(['a] SemaphorePermit<'a>, &'a Raw);
permits!([] OwnedSemaphorePermit, Arc<Semaphore>);
