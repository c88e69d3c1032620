//! [`AcquireWith`]: the future of a request that may give up.

use std::{
    convert::Infallible,
    fmt,
    future::{Future, Pending},
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use pin_project_lite::pin_project;

use crate::{
    acquire::{Acquire, Grant, TooHeavy},
    block::block_on,
    cancel::CancelReason,
    error::Error,
    hold::Mode,
    raw::Want,
    timer::Timer,
};

pin_project! {
    /// The future of a request with a timeout, a cancellation, or a weight: it gives a `Result`.
    ///
    /// # Cancel safety
    ///
    /// Dropping it takes the request back: a waiter leaves the queue, a grant that was on its way
    /// is passed on (rules Q4 and W7).
    #[must_use = "futures do nothing unless polled"]
    pub struct AcquireWith<G: Grant, C = Pending<Infallible>> {
        #[pin]
        acquire: Acquire<G>,
        #[pin]
        cancel: C,
        timeout: Option<Duration>,
        // Set once it waits.
        timer: Option<Timer>,
    }
}

impl<G: Grant> AcquireWith<G> {
    #[inline]
    pub(crate) fn new(acquire: Acquire<G>) -> Self {
        Self { acquire, cancel: std::future::pending(), timeout: None, timer: None }
    }

    /// Gives up when `cancelled` is ready; its output becomes the reason (rule W4).
    ///
    /// One that is ready already counts as cancelled, even when the lock is free. After the grant
    /// it has no effect.
    pub fn cancel_on<C>(self, cancelled: C) -> AcquireWith<G, C>
    where
        C: Future<Output: CancelReason>,
    {
        AcquireWith {
            acquire: self.acquire,
            cancel: cancelled,
            timeout: self.timeout,
            timer: self.timer,
        }
    }
}

impl<G: Grant, C> AcquireWith<G, C> {
    /// Gives up after that time.
    ///
    /// Zero is one attempt that never queues (rule W2); a free lock is granted whatever the
    /// timeout. The clock is read, and a timer set, only if the request really waits.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }
}

impl<G: Grant, C: Future<Output: CancelReason>> AcquireWith<G, C> {
    /// Blocks this thread instead of a task. Not for async code, where it would hold up others.
    ///
    /// # Fairness
    ///
    /// It queues among the tasks, in the order of arrival.
    ///
    /// # Errors
    ///
    /// As when awaited.
    pub fn blocking(self) -> Result<G::Guard, Error> {
        block_on(self)
    }

    /// Everything that comes before the request is made.
    #[inline]
    fn poll_first(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<G::Guard, Error>> {
        let this = self.project();
        let (weight, capacity) = this.acquire.asked().expect("polled again after it was ready");
        // W6: arguments before anything else. To a lock for one reader, an upgrade adds nothing.
        if weight > capacity || (weight == 0 && G::Mode::WANT != Want::Upgrade) {
            return Poll::Ready(Err(Error::weight(G::KIND, weight, capacity)));
        }
        // W4: cancelled already counts, even when the lock is free.
        if let Poll::Ready(reason) = this.cancel.poll(cx) {
            return Poll::Ready(Err(Error::cancelled(G::KIND, reason.into_reason())));
        }
        if *this.timeout == Some(Duration::ZERO) {
            let queued = this.acquire.queued();
            return Poll::Ready(this.acquire.try_pinned().ok_or_else(|| {
                Error::timeout(G::KIND, Duration::ZERO).asking(weight).among(queued)
            }));
        }
        Poll::Pending
    }

    /// It is queued: whichever comes first now, the grant, the cancellation or the timeout.
    #[cold]
    fn poll_giving_up(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<G::Guard, Error>> {
        let this = self.project();
        let weight = this.acquire.asked().map_or(1, |(weight, _)| weight);
        let error = if let Poll::Ready(reason) = this.cancel.poll(cx) {
            Error::cancelled(G::KIND, reason.into_reason())
        } else {
            let Some(timeout) = *this.timeout else { return Poll::Pending };
            if this.timer.is_none() {
                *this.timer = Timer::start(timeout);
            }
            // A time that no clock reaches needs no timer.
            let Some(timer) = this.timer else { return Poll::Pending };
            ready!(timer.poll(cx));
            Error::timeout(G::KIND, timeout)
        };
        // Q4: the grant may have come first; then it is delivered.
        Poll::Ready(match this.acquire.leave() {
            Ok(queued) => Err(error.asking(weight).among(queued)),
            Err(granted) => Ok(granted),
        })
    }
}

impl<G: Grant, C: Future<Output: CancelReason>> Future for AcquireWith<G, C> {
    type Output = Result<G::Guard, Error>;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let first = self.acquire.is_outside();
        if first && let Poll::Ready(done) = self.as_mut().poll_first(cx) {
            return Poll::Ready(done);
        }
        match self.as_mut().project().acquire.poll_granted(cx) {
            Poll::Ready(Ok(granted)) => return Poll::Ready(Ok(granted)),
            Poll::Ready(Err(TooHeavy)) => {
                let (weight, capacity) = self.acquire.asked().unwrap_or((0, 0));
                return Poll::Ready(Err(Error::weight(G::KIND, weight, capacity)));
            }
            Poll::Pending => {}
        }
        // Still outside: the task's budget is spent, and it comes back to make its request.
        if self.acquire.is_outside() { Poll::Pending } else { self.poll_giving_up(cx) }
    }
}

impl<G: Grant, C> fmt::Debug for AcquireWith<G, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AcquireWith")
            .field("lock", &G::KIND)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}
