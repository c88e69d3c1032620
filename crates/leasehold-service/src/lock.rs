//! The handle of a resource that gives leases.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use leasehold::{
    CancelReason, Error, ErrorKind, Fault, FaultKind, InvalidArgument, LockId, Operation, Result,
    Ttl,
};

use crate::{
    adapter::Wait,
    kit::{Acquiring, Acquisition, Cancel},
    lease::ServiceLease,
};

/// Begins an acquisition, however that is done; what both kinds of handle are made of.
pub(crate) type Begin = dyn Fn(Wait, Option<Ttl>) -> Result<Acquisition> + Send + Sync;

/// What a handle asks with.
#[derive(Clone)]
pub(crate) struct Ask {
    begin: Arc<Begin>,
    lock: LockId,
    ttl: Option<Ttl>,
}

impl Ask {
    pub(crate) fn new(
        lock: LockId,
        begin: impl Fn(Wait, Option<Ttl>) -> Result<Acquisition> + Send + Sync + 'static,
    ) -> Self {
        Self { begin: Arc::new(begin), lock, ttl: None }
    }

    pub(crate) const fn lock(&self) -> &LockId {
        &self.lock
    }

    pub(crate) fn with_ttl(mut self, ttl: Duration) -> Result<Self, InvalidArgument> {
        self.ttl = Some(Ttl::new(ttl)?);
        Ok(self)
    }

    pub(crate) const fn attempt(self, wait: Wait) -> Attempt {
        Attempt { state: State::Start(self, wait), cancel: None }
    }
}

/// A resource, as something that gives leases. A cheap clone that holds nothing.
///
/// All handles of one resource of one entry compete with one another, locks and executors, whatever
/// their TTLs (rule S3).
#[derive(Clone)]
pub struct ServiceLock(Ask);

impl ServiceLock {
    /// A handle on anything that begins acquisitions, for managers built from the
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

    /// The same resource with a TTL of its own, before its entry's (rule S3): 1 ms ..= 2^31−1 ms.
    /// The adapter `mutex` checks and ignores it; the others renew it while the lease lives.
    ///
    /// # Errors
    /// `InvalidArgument` for another one.
    pub fn ttl(self, ttl: Duration) -> Result<Self> {
        Ok(Self(self.0.with_ttl(ttl)?))
    }

    /// The resource.
    #[must_use]
    pub const fn resource(&self) -> &LockId {
        self.0.lock()
    }

    /// Waits in line for the resource, without a deadline. Await it, or set
    /// [`cancel_on`](Locking::cancel_on) first.
    ///
    /// # Fairness
    /// The adapter's; those built in are first come, first served, across all processes.
    ///
    /// # Cancel safety
    /// Dropping the future takes the request back; a grant that comes all the same is given back.
    ///
    /// # Errors
    /// `Cancelled`, `NotReady`, `ShutDown`, `Backend`.
    ///
    /// # Examples
    /// ```
    /// # pollster::block_on(async {
    /// use leasehold_service::LockService;
    ///
    /// let service = LockService::builder("shop").boot()?.start().await?;
    /// let lease = service.default_manager()?.lock("orders:sync")?.lock().await?;
    /// lease.release().await?;
    /// service.shutdown().await?;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn lock(&self) -> Locking {
        Locking(self.0.clone().attempt(Wait::Forever))
    }

    /// Waits for at most `budget`; zero is one attempt. `None` is busy, and nothing else is (rule
    /// S4).
    ///
    /// # Fairness
    /// As [`lock`](Self::lock).
    ///
    /// # Cancel safety
    /// As [`lock`](Self::lock).
    ///
    /// # Errors
    /// As [`lock`](Self::lock).
    ///
    /// # Examples
    /// ```
    /// # pollster::block_on(async {
    /// # use std::time::Duration;
    /// # use leasehold_service::LockService;
    /// # let service = LockService::builder("shop").boot()?.start().await?;
    /// let orders = service.default_manager()?.lock("orders:sync")?;
    /// let lease = orders.try_lock(Duration::ZERO).await?.expect("free");
    /// assert!(orders.try_lock(Duration::from_millis(1)).await?.is_none());
    /// # drop(lease);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn try_lock(&self, budget: Duration) -> TryLocking {
        TryLocking(self.0.clone().attempt(Wait::AtMost(budget)))
    }
}

impl fmt::Debug for ServiceLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceLock").field("resource", self.resource()).finish_non_exhaustive()
    }
}

/// A [`ServiceLock::lock`] on its way.
#[must_use = "an acquisition does nothing unless awaited"]
pub struct Locking(Attempt);

/// A [`ServiceLock::try_lock`] on its way.
#[must_use = "an acquisition does nothing unless awaited"]
pub struct TryLocking(Attempt);

macro_rules! cancellable {
    ($future:ident) => {
        impl $future {
            /// Gives up when `cancelled` is ready; its output becomes the reason. One that is ready
            /// already counts as cancelled, and then nothing is asked of the store. After the lease
            /// was delivered it has no effect (rule S5). It is taken once, by value.
            pub fn cancel_on<F>(self, cancelled: F) -> Self
            where
                F: Future + Send + 'static,
                F::Output: CancelReason,
            {
                Self(self.0.cancel_on(cancelled))
            }
        }

        impl fmt::Debug for $future {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($future)).finish_non_exhaustive()
            }
        }
    };
}

cancellable!(Locking);
cancellable!(TryLocking);

impl Future for Locking {
    type Output = Result<ServiceLease>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx).map(|answer| answer?.ok_or_else(busy_for_ever))
    }
}

impl Future for TryLocking {
    type Output = Result<Option<ServiceLease>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx)
    }
}

/// An adapter answered a wait without a deadline with "busy".
pub(crate) fn busy_for_ever() -> Error {
    let fault = Fault::new(FaultKind::Unsupported, "the adapter ended a wait without a deadline");
    Error::from_fault(fault, Operation::Acquire)
}

/// One acquisition, from before it is begun.
pub(crate) struct Attempt {
    state: State,
    cancel: Option<Cancel>,
}

enum State {
    Start(Ask, Wait),
    Begun(Acquiring),
    Done,
}

impl Attempt {
    pub(crate) fn cancel_on<F>(mut self, cancelled: F) -> Self
    where
        F: Future + Send + 'static,
        F::Output: CancelReason,
    {
        let cancel: Cancel = Box::pin(async move { cancelled.await.into_reason() });
        match self.state {
            State::Begun(acquiring) => {
                self.state = State::Begun(acquiring.cancel(Some(cancel)));
            }
            State::Start(..) | State::Done => self.cancel = Some(cancel),
        }
        self
    }

    /// Cancelled already, nothing is asked of the store (acceptance N26).
    fn begin(&mut self, cx: &mut Context<'_>) -> Result<Acquiring> {
        let State::Start(ask, wait) = std::mem::replace(&mut self.state, State::Done) else {
            panic!("an acquisition was polled after it had ended");
        };
        if let Some(cancel) = &mut self.cancel
            && let Poll::Ready(reason) = cancel.as_mut().poll(cx)
        {
            let kind = ErrorKind::Cancelled { reason };
            return Err(Error::new(kind, Operation::Acquire).on(&ask.lock));
        }
        let acquisition = (ask.begin)(wait, ask.ttl)?;
        Ok(acquisition.result.cancel(self.cancel.take()))
    }
}

impl Future for Attempt {
    type Output = Result<Option<ServiceLease>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            if let State::Begun(acquiring) = &mut self.state {
                let answer = std::task::ready!(Pin::new(acquiring).poll(cx));
                self.state = State::Done;
                return Poll::Ready(answer);
            }
            match self.begin(cx) {
                Ok(acquiring) => self.state = State::Begun(acquiring),
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}
