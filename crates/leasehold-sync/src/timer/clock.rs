//! The clock of the timer thread, in nanoseconds. It counts as [`Instant`] does: not through a
//! suspend, and not changed by who sets the time.
//!
//! The kernel's coarse clock costs a fifth, but it stands still while its tick is late, as long as
//! it pleases whoever runs the processor: a timeout that started by it would be over too early.

use std::{sync::LazyLock, time::Instant};

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

#[inline]
pub(super) fn now() -> u64 {
    // Five centuries.
    u64::try_from(START.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
