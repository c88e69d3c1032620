//! The clock of the timer thread, in nanoseconds. It counts as [`Instant`] does: not through a
//! suspend, and not changed by who sets the time.
//!
//! The kernel's coarse clock costs a fifth, but it stands still while its tick is late, as long as
//! it pleases whoever runs the processor: a timeout that started by it would be over too early.

use std::{
    sync::LazyLock,
    time::{Duration, Instant},
};

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// When a timeout that starts now is over; never too early. `None`: no clock goes that far.
#[inline]
pub(super) fn deadline_after(timeout: Duration) -> Option<u64> {
    now().checked_add(u64::try_from(timeout.as_nanos()).ok()?)
}

#[inline]
pub(super) fn now() -> u64 {
    // Five centuries.
    u64::try_from(START.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_timeout_is_over_too_early_nor_too_late() {
        for timeout in
            [Duration::from_micros(1), Duration::from_millis(999), Duration::from_secs(1)]
        {
            let nanos = u64::try_from(timeout.as_nanos()).unwrap();
            let before = now();
            let deadline = deadline_after(timeout).unwrap();
            assert!((before + nanos..=now() + nanos).contains(&deadline));
        }
    }

    #[test]
    fn a_time_beyond_the_clock_is_none() {
        assert!(deadline_after(Duration::MAX).is_none());
    }
}
