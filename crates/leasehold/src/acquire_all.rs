//! Several locks at once, without deadlock.

use std::{
    collections::BTreeMap,
    fmt,
    future::{Future, IntoFuture, poll_fn},
    pin::{Pin, pin},
    sync::Arc,
    task::Poll,
    time::Duration,
};

use leasehold_core::{
    Error, ErrorKind, InvalidArgument, LocalTime, Operation, Result, Share, Weight,
};
use leasehold_sync::CancelReason;

use crate::{
    core::Core,
    lease::Lease,
    options::{Acquire, Cancel},
};

/// An acquisition of several locks, all or none; see
/// [`LockManager::acquire_all`](crate::LockManager::acquire_all).
#[must_use = "an acquisition does nothing unless awaited"]
pub struct AcquireAll {
    core: Arc<Core>,
    requests: Vec<Acquire>,
    timeout: Option<Duration>,
    cancel: Option<Cancel>,
}

impl AcquireAll {
    pub(crate) fn new(core: Arc<Core>, requests: impl IntoIterator<Item = Acquire>) -> Self {
        let timeout = core.timeout;
        Self { core, requests: requests.into_iter().collect(), timeout, cancel: None }
    }

    /// How long to wait for all of them together; `None`: for ever. The requests' own timeouts do
    /// not count. Default: the manager's, 60 s.
    pub fn timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.timeout = timeout.into();
        self
    }

    /// Gives up when `cancelled` is ready; its output becomes the reason.
    pub fn cancel_on<F>(mut self, cancelled: F) -> Self
    where
        F: Future + Send + 'static,
        F::Output: CancelReason,
    {
        self.cancel = Some(Box::pin(async move { cancelled.await.into_reason() }));
        self
    }

    async fn run(self) -> Result<Vec<Lease>> {
        let Self { core, requests, timeout, mut cancel } = self;
        let deadline = timeout.map(|timeout| core.clock.now().after(timeout));
        let mut requests = in_order(requests)?;
        for request in &mut requests {
            request.options.check(&request.entry)?;
        }
        let mut leases = Vec::new();
        for request in requests {
            match one(&core, request, timeout, deadline, &mut cancel).await {
                Ok(lease) => leases.push(lease),
                Err(error) => {
                    release_all(leases).await;
                    return Err(error);
                }
            }
        }
        Ok(leases)
    }
}

impl IntoFuture for AcquireAll {
    type Output = Result<Vec<Lease>>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

impl fmt::Debug for AcquireAll {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AcquireAll")
            .field("requests", &self.requests)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// One request a lock, in one order for everybody, so that no two callers wait for each other. A
/// lock that is named twice is asked for once: a write covers a read, permits are added up, and the
/// other options are those of the first.
fn in_order(requests: Vec<Acquire>) -> Result<Vec<Acquire>> {
    let mut by_key = BTreeMap::<String, Acquire>::new();
    for request in requests {
        let key = request.entry.id.key().to_owned();
        match by_key.remove(&key) {
            None => drop(by_key.insert(key, request)),
            Some(first) => drop(by_key.insert(key, merged(first, request)?)),
        }
    }
    Ok(by_key.into_values().collect())
}

fn merged(mut first: Acquire, second: Acquire) -> Result<Acquire> {
    let kind = first.entry.id.kind();
    first.options.share = match (first.options.share, second.options.share) {
        (Share::Permits(one), Share::Permits(two))
            if kind == leasehold_core::LockKind::Semaphore =>
        {
            let sum = one.get().saturating_add(two.get());
            Share::Permits(Weight::new(sum).map_err(|invalid| argument(&first, invalid))?)
        }
        (Share::Permits(one), Share::Permits(two)) => Share::Permits(one.max(two)),
        _ => Share::Whole,
    };
    if let Some(invalid) = second.options.rare.and_then(|rare| rare.invalid) {
        first.options.invalid(invalid);
    }
    Ok(first)
}

fn argument(request: &Acquire, invalid: InvalidArgument) -> Error {
    let kind = ErrorKind::InvalidArgument { message: invalid.to_string() };
    Error::new(kind, Operation::Acquire).on(&request.entry.id)
}

async fn one(
    core: &Core,
    request: Acquire,
    timeout: Option<Duration>,
    deadline: Option<LocalTime>,
    cancel: &mut Option<Cancel>,
) -> Result<Lease> {
    let lock = Arc::clone(&request.entry.id);
    // Zero stays one attempt each; else what is left of the whole, and at least a moment, so that a
    // free lock is still granted.
    let left = match (timeout, deadline) {
        (Some(timeout), Some(deadline)) if !timeout.is_zero() => {
            Some(deadline.since(core.clock.now()).max(Duration::from_micros(1)))
        }
        _ => timeout,
    };
    let mut acquiring = pin!(request.timeout(left).into_future());
    poll_fn(|cx| {
        if let Some(cancelled) = cancel
            && let Poll::Ready(reason) = cancelled.as_mut().poll(cx)
        {
            *cancel = None;
            let kind = ErrorKind::Cancelled { reason };
            return Poll::Ready(Err(Error::new(kind, Operation::Acquire).on(&lock)));
        }
        acquiring.as_mut().poll(cx)
    })
    .await
}

/// The last one first. What fails is left to the drop, which the manager repeats.
async fn release_all(leases: Vec<Lease>) {
    for lease in leases.into_iter().rev() {
        drop(lease.release().await);
    }
}
