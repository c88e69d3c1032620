//! The end of a manager (rule N6).

use std::{
    future::{Future, IntoFuture, poll_fn},
    pin::{Pin, pin},
    sync::Arc,
    task::Poll,
    time::Duration,
};

use leasehold_core::{Error, ErrorKind, Operation, Result, Sleep, Wake};

use crate::core::Core;

/// A shutdown to be awaited; see [`LockManager::shutdown`](crate::LockManager::shutdown).
#[derive(Debug)]
#[must_use = "a shutdown does nothing unless awaited"]
pub struct Shutdown {
    core: Arc<Core>,
    drain: Option<Duration>,
}

impl Shutdown {
    pub(crate) const fn new(core: Arc<Core>) -> Self {
        Self { core, drain: None }
    }

    /// First waits up to `limit` for the leases to be returned. New acquisitions are refused and
    /// waiters cancelled from the start, so that no new lease comes about meanwhile.
    pub const fn drain(mut self, limit: Duration) -> Self {
        self.drain = Some(limit);
        self
    }

    /// The same for a thread: blocks until it is done.
    ///
    /// # Errors
    /// As the shutdown itself.
    pub fn blocking(self) -> Result<()> {
        pollster::block_on(self.run())
    }

    async fn run(self) -> Result<()> {
        let core = &self.core;
        core.life.refuse();
        core.waits.end_all(&ErrorKind::ShutDown);
        if let Some(limit) = self.drain {
            wait_for_leases(core, limit).await;
        }
        core.life
            .shutdown
            .run(async || {
                core.life.end();
                core.ends.end_all(&ErrorKind::ShutDown);
                let closed = core.backend.close().await;
                closed.map_err(|fault| Error::from_fault(fault, Operation::ShutDown))
            })
            .await
    }
}

impl IntoFuture for Shutdown {
    type Output = Result<()>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<()>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

async fn wait_for_leases(core: &Arc<Core>, limit: Duration) {
    let end = core.clock.now().after(limit);
    let mut sleep = pin!(Sleep::until(Arc::clone(&core.clock), end));
    let wake = Wake::new();
    let wait = core.life.returned.join(wake.clone());
    poll_fn(|cx| {
        // The flag is asked first and the count after it: a lease that ends in between sets it.
        while wake.poll_notified(cx).is_ready() {}
        if core.life.leases() == 0 || core.life.ended() {
            return Poll::Ready(());
        }
        sleep.as_mut().poll(cx)
    })
    .await;
    drop(wait);
}
