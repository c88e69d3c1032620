//! One timer per wait (rule W8): Tokio's where a Tokio runtime with time is running, so that its
//! paused time works; else a thread of this crate's own, which any executor can be woken from.

#[cfg(leasehold_loom)]
mod model;
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
    Tokio(std::pin::Pin<Box<tokio::time::Sleep>>),
    Thread(Box<thread::ThreadTimer>),
}

#[cfg(leasehold_loom)]
pub(crate) struct Timer(model::ModelTimer);

#[cfg(not(leasehold_loom))]
impl Timer {
    /// Starts now. `None`: no clock goes that far.
    pub(crate) fn start(timeout: Duration) -> Option<Self> {
        #[cfg(feature = "tokio")]
        if tokio_time::is_running() {
            let deadline = tokio::time::Instant::now().checked_add(timeout)?;
            return Some(Self::Tokio(Box::pin(tokio::time::sleep_until(deadline))));
        }
        thread::ThreadTimer::start(timeout).map(|timer| Self::Thread(Box::new(timer)))
    }

    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self {
            #[cfg(feature = "tokio")]
            Self::Tokio(sleep) => std::future::Future::poll(sleep.as_mut(), cx),
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
