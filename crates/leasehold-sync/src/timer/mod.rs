//! One timer per wait (rule W8): Tokio's where its time may be paused, that is in a current-thread
//! runtime with time; else a thread of this crate's own, which any executor can be woken from.
//!
//! The time of Tokio's multi-thread runtimes cannot be paused, so both clocks are the same there,
//! and the thread costs a wait that is soon over a fraction of what Tokio's timers cost it.

#[cfg(not(leasehold_loom))]
mod clock;
#[cfg(leasehold_loom)]
mod model;
#[cfg(not(leasehold_loom))]
mod shard;
#[cfg(not(leasehold_loom))]
mod thread;
#[cfg(all(feature = "tokio", not(leasehold_loom)))]
mod tokio_time;

use std::{
    task::{Context, Poll},
    time::Duration,
};

/// Ready once its time has come.
#[cfg(not(leasehold_loom))]
pub(crate) enum Timer {
    #[cfg(feature = "tokio")]
    Tokio(std::pin::Pin<Box<tokio_time::TokioTimer>>),
    Thread(thread::ThreadTimer),
}

#[cfg(leasehold_loom)]
pub(crate) struct Timer(model::ModelTimer);

#[cfg(not(leasehold_loom))]
impl Timer {
    /// Starts now. `None`: no clock goes that far.
    #[inline]
    pub(crate) fn start(timeout: Duration) -> Option<Self> {
        #[cfg(feature = "tokio")]
        if let Some(runtime) = tokio_time::may_pause() {
            let timer = tokio_time::TokioTimer::start(runtime, timeout)?;
            return Some(Self::Tokio(Box::pin(timer)));
        }
        thread::ThreadTimer::start(timeout).map(Self::Thread)
    }

    #[inline]
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self {
            #[cfg(feature = "tokio")]
            Self::Tokio(timer) => match timer.as_mut().poll(cx) {
                Ok(polled) => polled,
                Err(left) => {
                    *self = Self::Thread(thread::ThreadTimer::start_within(left));
                    self.poll(cx)
                }
            },
            Self::Thread(timer) => timer.poll(cx),
        }
    }
}

#[cfg(leasehold_loom)]
impl Timer {
    pub(crate) fn start(_timeout: Duration) -> Option<Self> {
        Some(Self(model::ModelTimer::start()))
    }

    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.0.poll(cx)
    }
}
