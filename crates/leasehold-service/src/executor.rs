//! The handle of a resource that runs work under a lease.

use std::{
    fmt,
    future::{Future, IntoFuture, poll_fn},
    pin::pin,
    task::Poll,
    time::Duration,
};

use leasehold::{CancelReason, LockId, Result, Ttl};
use tracing::Instrument;

use crate::{
    adapter::{BoxFuture, Wait},
    kit::Acquisition,
    lock::{Ask, Attempt, busy_for_ever},
    observe,
};

/// A resource, as something that runs work one at a time. A cheap clone that holds nothing.
///
/// It waits for the work to end and gives what the work gave. No TTL stops the work (rule S6); a
/// loss of the lease, or a release that failed, is told to the diagnostics and changes nothing of
/// that.
#[derive(Clone)]
pub struct Executor(Ask);

impl Executor {
    /// An executor on anything that begins acquisitions, for managers built from the
    /// [`kit`](crate::kit).
    pub fn new(
        resource: LockId,
        begin: impl Fn(Wait, Option<Ttl>) -> Result<Acquisition> + Send + Sync + 'static,
    ) -> Self {
        Self(Ask::new(resource, begin))
    }

    pub(crate) const fn of(ask: Ask) -> Self {
        Self(ask)
    }

    /// As [`ServiceLock::ttl`](crate::ServiceLock::ttl).
    ///
    /// # Errors
    /// `InvalidArgument`.
    pub fn ttl(self, ttl: Duration) -> Result<Self> {
        Ok(Self(self.0.with_ttl(ttl)?))
    }

    /// The resource.
    #[must_use]
    pub const fn resource(&self) -> &LockId {
        self.0.lock()
    }

    /// Waits in line without a deadline, runs `work`, releases, and gives what the work gave. Await
    /// it, or set [`cancel_on`](Run::cancel_on) first.
    ///
    /// # Fairness
    /// As [`ServiceLock::lock`](crate::ServiceLock::lock).
    ///
    /// # Cancel safety
    /// Dropping the future drops the work first, then gives the grant back (rule W7).
    ///
    /// # Errors
    /// As [`ServiceLock::lock`](crate::ServiceLock::lock); then the work was not started.
    pub fn run<'a, T: Send + 'a>(&self, work: impl Future<Output = T> + Send + 'a) -> Run<'a, T> {
        let attempt = self.0.clone().attempt(Wait::Forever);
        Run { attempt, lock: self.resource().clone(), work: Box::pin(work) }
    }

    /// The same, waiting for at most `budget`; zero is one attempt. `None` is busy, and nothing else
    /// is (rule S4); then the work was not started.
    ///
    /// # Fairness
    /// As [`ServiceLock::lock`](crate::ServiceLock::lock).
    ///
    /// # Cancel safety
    /// As [`run`](Self::run).
    ///
    /// # Errors
    /// As [`run`](Self::run).
    ///
    /// # Examples
    /// ```
    /// # pollster::block_on(async {
    /// # use std::time::Duration;
    /// # use leasehold_service::LockService;
    /// # let service = LockService::builder("shop").boot()?.start().await?;
    /// let sync = service.default_manager()?.executor("orders:sync")?;
    /// let synced = sync.try_run(Duration::from_secs(1), async { 42 }).await?;
    /// assert_eq!(synced, Some(42));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn try_run<'a, T: Send + 'a>(
        &self,
        budget: Duration,
        work: impl Future<Output = T> + Send + 'a,
    ) -> TryRun<'a, T> {
        let attempt = self.0.clone().attempt(Wait::AtMost(budget));
        TryRun { attempt, lock: self.resource().clone(), work: Box::pin(work) }
    }
}

impl fmt::Debug for Executor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Executor").field("resource", self.resource()).finish_non_exhaustive()
    }
}

macro_rules! run {
    ($(#[$doc:meta])* $run:ident) => {
        $(#[$doc])*
        #[must_use = "work does not run unless awaited"]
        pub struct $run<'a, T> {
            attempt: Attempt,
            lock: LockId,
            work: BoxFuture<'a, T>,
        }

        impl<T> $run<'_, T> {
            /// Gives up when `cancelled` is ready before the work was started; afterwards it has no
            /// effect (rule S5). Otherwise as
            /// [`Locking::cancel_on`](crate::Locking::cancel_on).
            pub fn cancel_on<C>(mut self, cancelled: C) -> Self
            where
                C: Future + Send + 'static,
                C::Output: CancelReason,
            {
                self.attempt = self.attempt.cancel_on(cancelled);
                self
            }
        }

        impl<T> fmt::Debug for $run<'_, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($run)).field("lock", &self.lock).finish_non_exhaustive()
            }
        }
    };
}

run!(
    /// An [`Executor::run`] on its way.
    Run
);
run!(
    /// An [`Executor::try_run`] on its way.
    TryRun
);

impl<'a, T: Send + 'a> IntoFuture for Run<'a, T> {
    type Output = Result<T>;
    type IntoFuture = BoxFuture<'a, Result<T>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            run_under(self.attempt, self.lock, self.work).await?.ok_or_else(busy_for_ever)
        })
    }
}

impl<'a, T: Send + 'a> IntoFuture for TryRun<'a, T> {
    type Output = Result<Option<T>>;
    type IntoFuture = BoxFuture<'a, Result<Option<T>>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(run_under(self.attempt, self.lock, self.work))
    }
}

async fn run_under<T>(attempt: Attempt, lock: LockId, work: BoxFuture<'_, T>) -> Result<Option<T>> {
    let Some(lease) = attempt.await? else { return Ok(None) };
    let output = {
        // Both are dropped before the lease, wherever this future is dropped (rule W7).
        let mut lost = pin!(lease.lost());
        let mut work = pin!(work.instrument(observe::running(&lock)));
        let mut is_lost = false;
        poll_fn(|cx| {
            // S6: a loss is told when it is known, and the work goes on.
            if !is_lost && let Poll::Ready(error) = lost.as_mut().poll(cx) {
                is_lost = true;
                lease.record().tell_loss(error);
            }
            work.as_mut().poll(cx)
        })
        .await
    };
    // S6: neither a loss nor a failed release replaces what the work gave; both have been told.
    let _ = lease.release().await;
    Ok(Some(output))
}
