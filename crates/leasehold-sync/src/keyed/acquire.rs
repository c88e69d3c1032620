//! The futures of keyed requests: one that cannot fail, and one that may give up.

use std::{
    convert::Infallible,
    fmt,
    future::{Future, Pending},
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use pin_project_lite::pin_project;

#[cfg(not(leasehold_loom))]
use super::checking::{Check, Checked};
use super::{
    guard::{KeyedGuard, KeyedSource, Record},
    table::{Grant, Outcome, Place, Wanted},
};
use crate::{
    block::block_on, budget, cancel::CancelReason, error::Error, error::LockKind, timer::Timer,
};

/// The future of `read`, `write`, `read_all` and `write_all` of a [`KeyedLock`](crate::KeyedLock),
/// and of `read` and `write` of an object: it gives the guard itself and cannot fail. With
/// [`timeout`](Self::timeout) or [`cancel_on`](Self::cancel_on) it can.
///
/// # Cancel safety
///
/// Dropping it takes the request back: a waiter leaves the queue, a grant that was on its way is
/// passed on (rules Q4 and W7).
#[must_use = "futures do nothing unless polled"]
pub struct AcquireKeyed<L: KeyedSource> {
    /// There until the grant.
    pub(super) source: Option<L>,
    pub(super) wanted: Wanted<L::Key>,
    /// There while it is queued.
    pub(super) place: Option<Place>,
}

#[cfg(leasehold_loom)]
#[derive(Default)]
struct Check;

pin_project! {
    /// The future of a keyed request with a timeout or a cancellation: it gives a `Result`.
    ///
    /// # Cancel safety
    ///
    /// Dropping it takes the request back: a waiter leaves the queue, a grant that was on its way
    /// is passed on (rules Q4 and W7).
    #[must_use = "futures do nothing unless polled"]
    pub struct AcquireKeyedWith<L: KeyedSource, C = Pending<Infallible>> {
        // First, so that the record goes before the request leaves its queue.
        check: Check,
        acquire: AcquireKeyed<L>,
        #[pin]
        cancel: C,
        timeout: Option<Duration>,
        // Set once it waits.
        timer: Option<Timer>,
    }
}

impl<L: KeyedSource> AcquireKeyed<L> {
    #[inline]
    pub(crate) const fn new(source: L, wanted: Wanted<L::Key>) -> Self {
        Self { source: Some(source), wanted, place: None }
    }

    /// Gives up after that time: the future then gives a `Result`.
    ///
    /// Zero is one attempt that never queues (rule W2); what is free is granted whatever the
    /// timeout. The clock is read, and a timer set, only if the request really waits.
    #[inline]
    pub fn timeout(self, timeout: Duration) -> AcquireKeyedWith<L> {
        AcquireKeyedWith::new(self).timeout(timeout)
    }

    /// Gives up when `cancelled` is ready; its output becomes the reason (rule W4). The future
    /// then gives a `Result`.
    ///
    /// One that is ready already counts as cancelled, even when nothing is in the way. After the
    /// grant it has no effect.
    pub fn cancel_on<C>(self, cancelled: C) -> AcquireKeyedWith<L, C>
    where
        C: Future<Output: CancelReason>,
    {
        AcquireKeyedWith::new(self).cancel_on(cancelled)
    }

    /// Blocks this thread instead of a task. Not for async code, where it would hold up others.
    ///
    /// # Fairness
    ///
    /// It queues among the tasks, in the order of arrival.
    pub fn blocking(mut self) -> KeyedGuard<L> {
        match self.try_now() {
            Some(granted) => granted,
            None => block_on(self),
        }
    }

    /// One attempt that never queues. Not to be called once queued.
    #[inline]
    pub(crate) fn try_now(&mut self) -> Option<KeyedGuard<L>> {
        let grant = self.source.as_ref()?.table().take(&mut self.wanted)?;
        Some(self.granted(grant))
    }

    /// What one attempt is told.
    pub(super) fn busy(&self) -> Error {
        Error::timeout(self.kind(), Duration::ZERO).among(self.queued())
    }

    pub(super) fn kind(&self) -> LockKind {
        L::kind(self.wanted.ask())
    }

    #[inline]
    fn granted(&mut self, grant: Grant) -> KeyedGuard<L> {
        let Some(source) = self.source.take() else { unreachable!("granted twice") };
        KeyedGuard::new(source, grant)
    }

    /// The path of what is free, for a request that was not queued yet. `None`: it is not free.
    #[inline]
    fn poll_free(&mut self, cx: &mut Context<'_>) -> Poll<Option<KeyedGuard<L>>> {
        // Asked before the grant is taken: a task that has to yield must not hold a lock while it
        // sleeps, or everybody else waits for it.
        let progress = ready!(budget::poll_proceed(cx));
        let granted = self.try_now();
        if granted.is_some() {
            progress.made_progress();
        }
        Poll::Ready(granted)
    }

    /// Everything but the path of what is free.
    #[inline(never)]
    pub(super) fn poll_grant(&mut self, cx: &mut Context<'_>) -> Poll<Grant> {
        let table = self.source.as_ref().expect("polled again after it was ready").table();
        if let Some(place) = self.place {
            let Some(grant) = table.look(place, cx.waker()) else { return Poll::Pending };
            self.place = None;
            return Poll::Ready(grant);
        }
        let mut waker = Some(cx.waker().clone());
        match table.arrive(&mut self.wanted, &mut waker) {
            Outcome::Granted(grant) => Poll::Ready(grant),
            Outcome::Queued(place) => {
                self.place = Some(place);
                Poll::Pending
            }
            Outcome::Renamed => unreachable!("no name was asked for"),
        }
    }

    /// Leaves the queue, and says how many wait on. `Err`: the grant was faster, and here it is
    /// (rule Q4).
    pub(super) fn leave(&mut self) -> Result<u32, Grant> {
        match (self.place.take(), &self.source) {
            (Some(place), Some(source)) => source.table().leave(place),
            _ => Ok(0),
        }
    }

    /// How many wait for the same.
    pub(super) fn queued(&self) -> u32 {
        self.source.as_ref().map_or(0, |source| source.table().queued_for(&self.wanted))
    }

    /// Dropped while queued.
    #[cold]
    fn leave_for_good(&mut self) {
        // A grant that nobody will see is given back, which passes it on.
        if let Err(grant) = self.leave()
            && let Some(source) = &self.source
        {
            source.table().release(grant);
        }
    }
}

impl<L: KeyedSource> Drop for AcquireKeyed<L> {
    #[inline]
    fn drop(&mut self) {
        if self.place.is_some() {
            self.leave_for_good();
        }
    }
}

/// Nothing in it is pinned.
impl<L: KeyedSource> Unpin for AcquireKeyed<L> {}

impl<L: KeyedSource> Future for AcquireKeyed<L> {
    type Output = KeyedGuard<L>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<KeyedGuard<L>> {
        if self.place.is_none()
            && let Some(granted) = ready!(self.poll_free(cx))
        {
            return Poll::Ready(granted);
        }
        let grant = ready!(self.poll_grant(cx));
        Poll::Ready(self.granted(grant))
    }
}

impl<L: KeyedSource> AcquireKeyedWith<L> {
    #[inline]
    pub(crate) fn new(acquire: AcquireKeyed<L>) -> Self {
        let cancel = std::future::pending();
        Self { check: Check::default(), acquire, cancel, timeout: None, timer: None }
    }

    /// Gives up when `cancelled` is ready; its output becomes the reason (rule W4).
    ///
    /// One that is ready already counts as cancelled, even when nothing is in the way. After the
    /// grant it has no effect.
    #[inline]
    pub fn cancel_on<C>(self, cancelled: C) -> AcquireKeyedWith<L, C>
    where
        C: Future<Output: CancelReason>,
    {
        let Self { check, acquire, timeout, .. } = self;
        AcquireKeyedWith { check, acquire, cancel: cancelled, timeout, timer: None }
    }
}

impl<L: KeyedSource, C> AcquireKeyedWith<L, C> {
    /// Gives up after that time.
    ///
    /// Zero is one attempt that never queues (rule W2); what is free is granted whatever the
    /// timeout. The clock is read, and a timer set, only if the request really waits.
    #[inline]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }
}

impl<L: KeyedSource, C: Future<Output: CancelReason>> AcquireKeyedWith<L, C> {
    /// Blocks this thread instead of a task. Not for async code, where it would hold up others.
    ///
    /// # Fairness
    ///
    /// It queues among the tasks, in the order of arrival.
    ///
    /// # Errors
    ///
    /// As when awaited.
    pub fn blocking(self) -> Result<KeyedGuard<L>, Error> {
        block_on(self)
    }

    /// As the future itself, for a request that is checked. It `opens` a frame, or else gives a
    /// guard that can be moved.
    #[cfg(not(leasehold_loom))]
    pub(super) fn poll_checked(
        mut self: Pin<&mut Self>,
        opens: bool,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Checked, Error>> {
        let this = self.as_mut().project();
        if this.acquire.place.is_none() {
            if let Poll::Ready(reason) = this.cancel.poll(cx) {
                let kind = this.acquire.kind();
                return Poll::Ready(Err(Error::cancelled(kind, reason.into_reason())));
            }
            let progress = ready!(budget::poll_proceed(cx));
            if *this.timeout == Some(Duration::ZERO) {
                return Poll::Ready(this.check.try_now(this.acquire));
            }
            if let Poll::Ready(checked) = this.check.poll(this.acquire, opens, cx) {
                progress.made_progress();
                return Poll::Ready(checked);
            }
        } else if let Poll::Ready(checked) = this.check.poll(this.acquire, opens, cx) {
            return Poll::Ready(checked);
        }
        let error = ready!(self.as_mut().poll_giving_up(cx));
        let this = self.project();
        Poll::Ready(this.check.leave(this.acquire, error))
    }

    /// It is queued: whichever comes first now, the cancellation or the timeout.
    fn poll_giving_up(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Error> {
        let this = self.project();
        let kind = this.acquire.kind();
        if let Poll::Ready(reason) = this.cancel.poll(cx) {
            return Poll::Ready(Error::cancelled(kind, reason.into_reason()));
        }
        let Some(timeout) = *this.timeout else { return Poll::Pending };
        if this.timer.is_none() {
            *this.timer = Timer::start(timeout);
        }
        // A time that no clock reaches needs no timer.
        let Some(timer) = this.timer else { return Poll::Pending };
        ready!(timer.poll(cx));
        Poll::Ready(Error::timeout(kind, timeout))
    }

    /// Something is in the way, or the request is queued already.
    #[inline(never)]
    fn poll_waiting(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<KeyedGuard<L>, Error>> {
        let this = self.as_mut().project();
        if *this.timeout == Some(Duration::ZERO) {
            return Poll::Ready(Err(this.acquire.busy()));
        }
        if let Poll::Ready(grant) = this.acquire.poll_grant(cx) {
            return Poll::Ready(Ok(this.acquire.granted(grant)));
        }
        let error = ready!(self.as_mut().poll_giving_up(cx));
        // Q4: the grant may have come first; then it is delivered.
        let acquire = self.project().acquire;
        Poll::Ready(match acquire.leave() {
            Ok(queued) => Err(error.among(queued)),
            Err(grant) => Ok(acquire.granted(grant)),
        })
    }
}

#[cfg(not(leasehold_loom))]
impl<L: KeyedSource, C> AcquireKeyedWith<L, C> {
    /// The same, checked, as asked for there.
    pub(crate) fn checked(mut self, place: crate::error::Place) -> Self {
        self.check.ask_at(place);
        self
    }

    /// One attempt that never queues. Not to be called once queued.
    pub(super) fn try_checked(mut self) -> Option<KeyedGuard<L>> {
        let checked = self.check.try_now(&mut self.acquire).ok()?;
        Some(KeyedGuard::checked(self.acquire.source.take()?, checked))
    }

    /// What was asked, after the grant.
    pub(super) fn project_source(self: Pin<&mut Self>) -> L {
        self.project().acquire.source.take().expect("taken once")
    }
}

impl<L: KeyedSource, C: Future<Output: CancelReason>> Future for AcquireKeyedWith<L, C> {
    type Output = Result<KeyedGuard<L>, Error>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        #[cfg(not(leasehold_loom))]
        if L::Record::CHECKS {
            let checked = ready!(self.as_mut().poll_checked(false, cx))?;
            let source = self.project_source();
            return Poll::Ready(Ok(KeyedGuard::checked(source, checked)));
        }
        let this = self.as_mut().project();
        if this.acquire.place.is_none() {
            // W4: cancelled already counts, even when nothing is in the way.
            if let Poll::Ready(reason) = this.cancel.poll(cx) {
                let kind = this.acquire.kind();
                return Poll::Ready(Err(Error::cancelled(kind, reason.into_reason())));
            }
            if let Some(granted) = ready!(this.acquire.poll_free(cx)) {
                return Poll::Ready(Ok(granted));
            }
        }
        self.poll_waiting(cx)
    }
}

impl<L: KeyedSource> fmt::Debug for AcquireKeyed<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AcquireKeyed").field("lock", &self.kind()).finish_non_exhaustive()
    }
}

impl<L: KeyedSource, C> fmt::Debug for AcquireKeyedWith<L, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AcquireKeyedWith")
            .field("lock", &self.acquire.kind())
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}
