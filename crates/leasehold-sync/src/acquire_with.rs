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
    acquire::{Acquire, Grant, Hook, Plain, TooHeavy},
    block::block_on,
    cancel::CancelReason,
    error::Error,
    hold::Mode,
    raw::Phase,
    timer::Alarm,
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
        alarm: Option<Alarm>,
    }
}

impl<G: Grant> AcquireWith<G> {
    #[inline(always)]
    pub(crate) fn new(acquire: Acquire<G>) -> Self {
        Self::with(acquire, std::future::pending(), None)
    }

    /// Gives up when `cancelled` is ready; its output becomes the reason (rule W4).
    ///
    /// One that is ready already counts as cancelled, even when the lock is free. After the grant
    /// it has no effect.
    #[inline(always)]
    pub fn cancel_on<C>(self, cancelled: C) -> AcquireWith<G, C>
    where
        C: Future<Output: CancelReason>,
    {
        AcquireWith::with(self.acquire, cancelled, self.timeout)
    }
}

impl<G: Grant, C> AcquireWith<G, C> {
    #[inline(always)]
    pub(crate) fn with(acquire: Acquire<G>, cancel: C, timeout: Option<Duration>) -> Self {
        Self { acquire: acquire.anew(), cancel, timeout, alarm: None }
    }

    /// Gives up after that time.
    ///
    /// Zero is one attempt that never queues (rule W2); a free lock is granted whatever the
    /// timeout. The clock is read, and a timer set, only if the request really waits. It is never over
    /// too early; one of a second or more may be late by 5 ms.
    #[inline(always)]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self::with(self.acquire, self.cancel, Some(timeout))
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

    /// W6: a weight that can never be granted is refused before anything else.
    #[cold]
    fn refusal(&self) -> Option<Error> {
        let (weight, capacity) = self.acquire.asked()?;
        let refused = weight == 0 || weight > capacity;
        refused.then(|| Error::weight(G::KIND, weight, capacity))
    }

    #[cold]
    fn cancelled(reason: C::Output) -> Poll<Result<G::Guard, Error>> {
        Poll::Ready(Err(Error::cancelled(G::KIND, reason.into_reason())))
    }

    /// The lock is not free: queues the request, and starts its timer.
    #[inline(never)]
    fn poll_first(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        hook: &mut impl Hook,
    ) -> Poll<Result<G::Guard, Error>> {
        let this = self.as_mut().project();
        let waker = match *this.timeout {
            None => cx.waker().clone(),
            Some(Duration::ZERO) => return Poll::Ready(self.try_once()),
            Some(timeout) => {
                let (alarm, waker) = Alarm::start(timeout, cx);
                *this.alarm = alarm;
                waker
            }
        };
        match this.acquire.poll_arrive(waker, hook) {
            Poll::Ready(granted) => Poll::Ready(self.ended(granted)),
            // The cancellation was asked a moment ago, and an alarm in the queue needs no poll.
            Poll::Pending if !matches!(this.alarm, Some(Alarm::Apart(_))) => Poll::Pending,
            Poll::Pending => self.poll_alarm(cx, hook),
        }
    }

    /// It was queued. Apart, so that callers inline no more than what a free lock needs.
    #[inline(never)]
    fn poll_later(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        hook: &mut impl Hook,
    ) -> Poll<Result<G::Guard, Error>> {
        if self.acquire.phase() == Phase::Granted {
            return Poll::Ready(Ok(self.project().acquire.granted()));
        }
        self.poll_again(cx, hook)
    }

    /// It was not granted yet: whichever comes first now, the grant, the cancellation or the timeout.
    #[cold]
    fn poll_again(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        hook: &mut impl Hook,
    ) -> Poll<Result<G::Guard, Error>> {
        let this = self.as_mut().project();
        let waker =
            if matches!(this.alarm, Some(Alarm::Queued(_))) { None } else { Some(cx.waker()) };
        if let Poll::Ready(granted) = this.acquire.poll_queued(waker) {
            return Poll::Ready(self.ended(granted));
        }
        if let Poll::Ready(reason) = this.cancel.poll(cx) {
            let error = Error::cancelled(G::KIND, reason.into_reason());
            return Poll::Ready(self.give_up(error, hook));
        }
        self.poll_alarm(cx, hook)
    }

    #[cold]
    fn poll_alarm(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        hook: &mut impl Hook,
    ) -> Poll<Result<G::Guard, Error>> {
        let mut this = self.as_mut().project();
        // A time that no clock reaches needs no alarm.
        let (Some(alarm), Some(timeout)) = (this.alarm, *this.timeout) else {
            return Poll::Pending;
        };
        ready!(alarm.poll(cx, || this.acquire.phase() == Phase::Queued));
        if let Poll::Ready(granted) = this.acquire.as_mut().poll_queued(None) {
            return Poll::Ready(self.ended(granted));
        }
        Poll::Ready(self.give_up(Error::timeout(G::KIND, timeout), hook))
    }

    #[inline]
    fn ended(&self, granted: Result<G::Guard, TooHeavy>) -> Result<G::Guard, Error> {
        granted.map_err(|TooHeavy| {
            let (weight, capacity) = self.acquire.asked().unwrap_or((0, 0));
            Error::weight(G::KIND, weight, capacity)
        })
    }

    /// Rule W2: one attempt that never queues.
    #[cold]
    fn try_once(self: Pin<&mut Self>) -> Result<G::Guard, Error> {
        let acquire = self.project().acquire;
        let (queued, weight) = (acquire.queued(), acquire.weight());
        acquire
            .try_pinned()
            .ok_or_else(|| Error::timeout(G::KIND, Duration::ZERO).asking(weight).among(queued))
    }

    #[cold]
    fn give_up(
        self: Pin<&mut Self>,
        error: Error,
        hook: &mut impl Hook,
    ) -> Result<G::Guard, Error> {
        let acquire = self.project().acquire;
        let weight = acquire.weight();
        hook.leaving();
        // Q4: the grant may have come first; then it is delivered.
        match acquire.leave() {
            Ok(queued) => Err(error.asking(weight).among(queued)),
            Err(granted) => Ok(granted),
        }
    }

    /// As awaited, with what is done around the queue.
    #[inline(always)]
    pub(crate) fn poll_hooked(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        hook: &mut impl Hook,
    ) -> Poll<Result<G::Guard, Error>> {
        if self.acquire.phase() != Phase::Outside {
            return self.poll_later(cx, hook);
        }
        if G::Mode::MAY_BE_TOO_HEAVY
            && let Some(error) = self.refusal()
        {
            return Poll::Ready(Err(error));
        }
        // W4: cancelled already counts, even when the lock is free.
        if let Poll::Ready(reason) = self.as_mut().project().cancel.poll(cx) {
            return Self::cancelled(reason);
        }
        match ready!(self.as_mut().project().acquire.poll_free(cx)) {
            Some(granted) => Poll::Ready(Ok(granted)),
            None => self.poll_first(cx, hook),
        }
    }

    /// Whether it is cancelled already.
    #[inline]
    pub(crate) fn poll_cancelled(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Error> {
        let reason = ready!(self.project().cancel.poll(cx));
        Poll::Ready(Error::cancelled(G::KIND, reason.into_reason()))
    }

    /// Leaves the queue. `Err`: the grant was faster, and here it is (rule Q4).
    pub(crate) fn leave(self: Pin<&mut Self>) -> Result<u32, G::Guard> {
        self.project().acquire.leave()
    }

    /// The request itself.
    #[inline]
    pub(crate) const fn request(&self) -> &Acquire<G> {
        &self.acquire
    }
}

impl<G: Grant, C: Future<Output: CancelReason>> Future for AcquireWith<G, C> {
    type Output = Result<G::Guard, Error>;

    #[inline(always)]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.poll_hooked(cx, &mut Plain)
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
