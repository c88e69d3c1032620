//! The clock of the timer thread, in nanoseconds. It counts as [`Instant`](std::time::Instant)
//! does: not through a suspend, and not changed by who sets the time.

use std::time::Duration;

/// From this length on, a timeout may be this much late.
const LONG: Duration = Duration::from_secs(1);

/// When a timeout that starts now is over; never too early. `None`: no clock goes that far.
#[inline]
pub(super) fn deadline_after(timeout: Duration) -> Option<u64> {
    let start = if timeout >= LONG { coarse() } else { now() };
    start.checked_add(u64::try_from(timeout.as_nanos()).ok()?)
}

#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) use self::kernel::{coarse, now};
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) use self::portable::{coarse, now};

#[cfg(any(target_os = "linux", target_os = "android"))]
mod kernel {
    use rustix::time::{ClockId, Timespec, clock_gettime};

    /// The kernel counts its coarse clock on at least this often.
    const TICK_NS: u64 = 10_000_000;

    pub(in crate::timer) fn now() -> u64 {
        nanos(clock_gettime(ClockId::Monotonic))
    }

    /// Now or up to a tick later, at a fifth of the price: the exact clock asks the processor.
    #[inline]
    pub(in crate::timer) fn coarse() -> u64 {
        nanos(clock_gettime(ClockId::MonotonicCoarse)) + TICK_NS
    }

    fn nanos(time: Timespec) -> u64 {
        // Neither is ever negative.
        time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod portable {
    use std::{sync::LazyLock, time::Instant};

    static START: LazyLock<Instant> = LazyLock::new(Instant::now);

    pub(in crate::timer) fn now() -> u64 {
        u64::try_from(START.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    pub(in crate::timer) fn coarse() -> u64 {
        now()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_timeout_is_over_too_early_nor_much_too_late() {
        for timeout in [Duration::from_micros(1), Duration::from_millis(999), LONG] {
            let nanos = u64::try_from(timeout.as_nanos()).unwrap();
            let before = now();
            let deadline = deadline_after(timeout).unwrap();
            let after = now();
            assert!(deadline >= before + nanos);
            assert!(deadline <= after + nanos + 10_000_000);
        }
    }

    #[test]
    fn a_time_beyond_the_clock_is_none() {
        assert!(deadline_after(Duration::MAX).is_none());
    }
}
