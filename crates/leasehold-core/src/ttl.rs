//! How long a grant lives unless extended (rule T1).

use std::{fmt, time::Duration};

use crate::{
    defaults::{self, TTL_MS_MAX},
    error::InvalidArgument,
};

/// A time to live: whole milliseconds, 1 ..= 2^31−1. A part of a millisecond is rounded up.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ttl(u32);

impl Ttl {
    /// What a named lock grants unless told otherwise: 60 s.
    #[allow(clippy::cast_possible_truncation, reason = "60,000 fits")]
    pub const DEFAULT: Self = Self(defaults::TTL.as_millis() as u32);

    /// Checks `ttl`.
    ///
    /// # Errors
    /// [`InvalidArgument`] when it is shorter than 1 ms or longer than 2^31−1 ms (24.8 days).
    pub fn new(ttl: Duration) -> Result<Self, InvalidArgument> {
        let ms = ttl.as_micros().div_ceil(1000);
        match u32::try_from(ms) {
            Ok(ms) if ttl >= Duration::from_millis(1) && u64::from(ms) <= TTL_MS_MAX => {
                Ok(Self(ms))
            }
            _ => Err(InvalidArgument::new(format!(
                "a TTL of {ttl:?} is not in 1 ms ..= {TTL_MS_MAX} ms"
            ))),
        }
    }

    /// The TTL as a duration.
    #[must_use]
    pub const fn get(self) -> Duration {
        Duration::from_millis(self.0 as u64)
    }

    /// The TTL in milliseconds.
    #[must_use]
    pub const fn as_millis(self) -> u32 {
        self.0
    }
}

impl fmt::Debug for Ttl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

impl fmt::Display for Ttl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.get())
    }
}

impl TryFrom<Duration> for Ttl {
    type Error = InvalidArgument;

    fn try_from(ttl: Duration) -> Result<Self, Self::Error> {
        Self::new(ttl)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_and_rounding() {
        assert!(Ttl::new(Duration::ZERO).is_err());
        assert!(Ttl::new(Duration::from_micros(999)).is_err());
        assert_eq!(Ttl::new(Duration::from_micros(1001)).unwrap().as_millis(), 2);
        assert_eq!(Ttl::new(Duration::from_millis(1)).unwrap().as_millis(), 1);
        assert!(Ttl::new(Duration::from_millis(TTL_MS_MAX)).is_ok());
        assert!(Ttl::new(Duration::from_millis(TTL_MS_MAX + 1)).is_err());
        assert!(Ttl::new(Duration::MAX).is_err());
    }
}
