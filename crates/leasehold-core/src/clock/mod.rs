//! Time as Leasehold sees it: a clock that counts suspend and is not moved by clock changes, and
//! timers on it.

mod manual;
mod sleep;
mod system;
mod timers;

use std::{fmt, task::Waker, time::Duration};

pub use manual::ManualClock;
pub use sleep::Sleep;
pub use system::SystemClock;
pub use timers::TimerId;

/// What tells the time and wakes at one. A lock's clock is fixed when it is built (rule W8).
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// The time now. It never goes back.
    fn now(&self) -> LocalTime;

    /// Calls `waker` once, at or soon after `at`, from any thread but never inside of this call: the
    /// caller may have locked what the waker locks.
    fn set_timer(&self, at: LocalTime, waker: Waker) -> TimerId;

    /// Takes a timer back; one that fired already is ignored.
    fn clear_timer(&self, timer: TimerId);
}

macro_rules! microseconds {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u64);

        impl $name {
            /// The end of time: no sum passes it.
            pub const MAX: Self = Self(u64::MAX);

            /// This time and `duration` later. A part of a microsecond is rounded up and a sum
            /// never overflows into a short one (rule W2).
            #[must_use]
            pub fn after(self, duration: Duration) -> Self {
                let whole = duration.as_secs().saturating_mul(1_000_000);
                let part = u64::from(duration.subsec_nanos().div_ceil(1000));
                Self(self.0.saturating_add(whole).saturating_add(part))
            }

            /// How long from `earlier` to this time; zero when it is not later.
            #[must_use]
            pub const fn since(self, earlier: Self) -> Duration {
                Duration::from_micros(self.0.saturating_sub(earlier.0))
            }
        }
    };
}

microseconds!(
    /// A time of this process's clock, in microseconds since that clock's origin.
    LocalTime
);
microseconds!(
    /// A time of a store's clock, in microseconds since that clock's origin (rule L1).
    StoreTime
);
