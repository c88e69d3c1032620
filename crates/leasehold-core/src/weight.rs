//! Weights and capacities: 1 ..= 2^31−1 permits, checked when built (rule Q5).

use std::{fmt, num::NonZeroU32};

use crate::{defaults::PERMITS_MAX, error::InvalidArgument};

macro_rules! checked_permits {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(NonZeroU32);

        impl $name {
            /// One permit.
            pub const ONE: Self = Self(NonZeroU32::MIN);

            /// Checks `permits`: 1 ..= 2^31−1.
            ///
            /// # Errors
            /// [`InvalidArgument`] when it is outside.
            pub fn new(permits: u32) -> Result<Self, InvalidArgument> {
                match NonZeroU32::new(permits) {
                    Some(some) if permits <= PERMITS_MAX => Ok(Self(some)),
                    Some(_) => Err(InvalidArgument::new(format!(
                        concat!($what, " of {} is above the largest, {}"),
                        permits, PERMITS_MAX
                    ))),
                    None => Err(InvalidArgument::new(concat!($what, " must be greater than 0"))),
                }
            }

            /// The number.
            #[must_use]
            pub const fn get(self) -> u32 {
                self.0.get()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl TryFrom<u32> for $name {
            type Error = InvalidArgument;

            fn try_from(permits: u32) -> Result<Self, Self::Error> {
                Self::new(permits)
            }
        }
    };
}

checked_permits!(
    /// How many permits a request asks for.
    Weight,
    "a weight"
);
checked_permits!(
    /// How many permits a lock has.
    Capacity,
    "a capacity"
);
