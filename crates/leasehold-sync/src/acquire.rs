//! [`Acquire`]: the future of a request that cannot fail.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, Waker, ready},
    time::Duration,
};

use pin_project_lite::pin_project;

use crate::{
    acquire_with::AcquireWith,
    block::block_on,
    budget,
    cancel::CancelReason,
    error::LockKind,
    hold::{Mode, Source},
    raw::{Arrival, Left, Node, Phase},
};

/// What an acquiring future gives: a guard or permits. Implemented by the guards of this crate
/// and by nothing else.
pub trait Grant: Sized + sealed::Sealed {
    /// What the future keeps until the grant: a reference to the lock, or a share of it.
    #[doc(hidden)]
    type Source: Source;
    #[doc(hidden)]
    type Mode: Mode;
    #[doc(hidden)]
    const KIND: LockKind;
    /// The guard; `Self`, save for an [`Upgrade`](crate::Upgrade).
    type Guard;

    /// The permits of that mode were granted by the source and are the guard's from now on.
    #[doc(hidden)]
    fn granted(source: Self::Source, mode: Self::Mode) -> Self::Guard;
}

pub(crate) mod sealed {
    /// Keeps [`Grant`](super::Grant) within this crate.
    pub trait Sealed {}
}

pin_project! {
    /// The future of `lock`, `read`, `write` and `acquire`: it gives the guard itself and cannot
    /// fail. With [`timeout`](Self::timeout) or [`cancel_on`](Self::cancel_on) it can.
    ///
    /// # Cancel safety
    ///
    /// Dropping it takes the request back: a waiter leaves the queue, a grant that was on its way
    /// is passed on (rules Q4 and W7).
    #[must_use = "futures do nothing unless polled"]
    pub struct Acquire<G: Grant> {
        source: Option<G::Source>,
        mode: G::Mode,
        #[pin]
        node: Node,
    }

    impl<G: Grant> PinnedDrop for Acquire<G> {
        #[inline]
        fn drop(this: Pin<&mut Self>) {
            if this.source.is_some() && this.node.phase() != Phase::Outside {
                this.leave_for_good();
            }
        }
    }
}

/// The weight is above the capacity.
pub(crate) struct TooHeavy;

/// What is done around the queue of a checked request (rule R4).
pub(crate) trait Hook {
    /// Queues the request, which `queue` does.
    fn arrive(&mut self, queue: impl FnOnce() -> Arrival) -> Arrival;

    /// The request is about to leave its queue.
    fn leaving(&mut self);
}

/// A plain request: nothing is done.
pub(crate) struct Plain;

impl Hook for Plain {
    #[inline]
    fn arrive(&mut self, queue: impl FnOnce() -> Arrival) -> Arrival {
        queue()
    }

    #[inline]
    fn leaving(&mut self) {}
}

impl<G: Grant> Acquire<G> {
    #[inline]
    pub(crate) fn new(source: G::Source, mode: G::Mode) -> Self {
        Self { source: Some(source), mode, node: Node::new() }
    }

    /// Gives up after that time: the future then gives a `Result`.
    ///
    /// Zero is one attempt that never queues (rule W2); a free lock is granted whatever the
    /// timeout. The clock is read, and a timer set, only if the request really waits. It is never over
    /// too early; one of a second or more may be late by 5 ms.
    #[inline(always)]
    pub fn timeout(self, timeout: Duration) -> AcquireWith<G> {
        AcquireWith::with(self, std::future::pending(), Some(timeout))
    }

    /// Gives up when `cancelled` is ready; its output becomes the reason (rule W4). The future
    /// then gives a `Result`.
    ///
    /// One that is ready already counts as cancelled, even when the lock is free. After the grant
    /// it has no effect.
    pub fn cancel_on<C>(self, cancelled: C) -> AcquireWith<G, C>
    where
        C: Future<Output: CancelReason>,
    {
        AcquireWith::with(self, cancelled, None)
    }

    /// Blocks this thread instead of a task. Not for async code, where it would hold up others.
    ///
    /// # Fairness
    ///
    /// It queues among the tasks, in the order of arrival.
    pub fn blocking(mut self) -> G::Guard {
        match self.try_now() {
            Some(granted) => granted,
            None => block_on(self),
        }
    }

    /// The same request, made anew rather than moved: a move would copy the node, none of which is
    /// of use before it is queued.
    #[inline(always)]
    pub(crate) fn anew(mut self) -> Self {
        debug_assert!(self.is_outside());
        Self { source: self.source.take(), mode: self.mode, node: Node::new() }
    }

    /// One attempt that never queues. Not to be called once polled.
    #[inline]
    pub(crate) fn try_now(&mut self) -> Option<G::Guard> {
        let source = self.source.take()?;
        if self.mode.try_take(source.raw()) {
            return Some(G::granted(source, self.mode));
        }
        self.source = Some(source);
        None
    }

    /// As [`Self::try_now`], when pinned.
    #[inline]
    pub(crate) fn try_pinned(self: Pin<&mut Self>) -> Option<G::Guard> {
        let this = self.project();
        let taken = this.mode.try_take(this.source.as_ref()?.raw());
        if taken { this.source.take().map(|source| G::granted(source, *this.mode)) } else { None }
    }

    /// Whether it has not been queued yet.
    #[inline]
    pub(crate) fn is_outside(&self) -> bool {
        self.node.phase() == Phase::Outside
    }

    /// The weight asked for, and the capacity now.
    pub(crate) fn asked(&self) -> Option<(u32, u32)> {
        let raw = self.source.as_ref()?.raw();
        Some((self.mode.weight(raw), raw.capacity()))
    }

    /// The weight asked for.
    pub(crate) fn weight(&self) -> u32 {
        self.asked().map_or(1, |(weight, _)| weight)
    }

    /// The lock; not to be asked for once it is granted.
    #[inline]
    pub(crate) fn lock(&self) -> &G::Source {
        self.source.as_ref().expect("polled again after it was ready")
    }

    /// The lock and how it is asked for, of a request that was not polled yet.
    #[inline]
    pub(crate) fn into_parts(mut self) -> (G::Source, G::Mode) {
        debug_assert!(self.is_outside());
        (self.source.take().expect("not granted yet"), self.mode)
    }

    /// How it is asked for.
    pub(crate) const fn mode(&self) -> G::Mode {
        self.mode
    }

    /// How many are queued on the lock.
    pub(crate) fn queued(&self) -> u32 {
        self.source.as_ref().map_or(0, |source| source.raw().queued())
    }

    /// The path of a free lock, for a request that was not queued yet. `None`: it is not free.
    ///
    /// Always inlined: where the lock is free, the whole future melts into its caller.
    #[inline(always)]
    pub(crate) fn poll_free(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<G::Guard>> {
        // Asked before the permit is taken: a task that has to yield must not hold the lock while
        // it sleeps, or everybody else waits for it.
        let progress = ready!(budget::poll_proceed(cx));
        let this = self.as_mut().project();
        if let Some(source) = this.source.take() {
            if this.mode.try_take_fast(source.raw()) == Some(true) {
                progress.made_progress();
                return Poll::Ready(Some(G::granted(source, *this.mode)));
            }
            *this.source = Some(source);
        }
        Poll::Ready(None)
    }

    /// Queues a request that was not queued yet, unless it is granted now. The weight can only be
    /// too heavy if it is neither 1 nor the capacity.
    #[inline]
    pub(crate) fn poll_arrive(
        self: Pin<&mut Self>,
        waker: Waker,
        hook: &mut impl Hook,
    ) -> Poll<Result<G::Guard, TooHeavy>> {
        let this = self.project();
        let raw = this.source.as_ref().expect("polled again after it was ready").raw();
        let (node, mut waker) = (this.node.as_ref(), Some(waker));
        let (weight, any_weight) = (this.mode.weight(raw), G::Mode::MAY_BE_TOO_HEAVY);
        let arrival =
            hook.arrive(|| raw.arrive(node, G::Mode::WANT, weight, any_weight, &mut waker));
        match arrival {
            Arrival::Queued => Poll::Pending,
            Arrival::TooHeavy => Poll::Ready(Err(TooHeavy)),
            Arrival::Granted => {
                let source = this.source.take().expect("it was there above");
                Poll::Ready(Ok(G::granted(source, *this.mode)))
            }
        }
    }

    /// Of a request that was queued: what became of it. `waker`: whom to wake from now on.
    #[inline]
    pub(crate) fn poll_queued(
        self: Pin<&mut Self>,
        waker: Option<&Waker>,
    ) -> Poll<Result<G::Guard, TooHeavy>> {
        let this = self.as_ref().project_ref();
        let node = this.node;
        let mut phase = node.phase();
        if phase == Phase::Queued
            && let (Some(waker), Some(source)) = (waker, this.source.as_ref())
        {
            phase = source.raw().renew_waker(node, waker);
        }
        match phase {
            Phase::Granted => Poll::Ready(Ok(self.granted())),
            Phase::Rejected => Poll::Ready(Err(TooHeavy)),
            Phase::Queued | Phase::Outside => Poll::Pending,
        }
    }

    /// Where it is.
    #[inline]
    pub(crate) fn phase(&self) -> Phase {
        self.node.phase()
    }

    /// The guard of a request that was granted in the queue.
    #[inline]
    pub(crate) fn granted(self: Pin<&mut Self>) -> G::Guard {
        let this = self.project();
        debug_assert!(this.node.phase() == Phase::Granted);
        G::granted(this.source.take().expect("polled again after it was ready"), *this.mode)
    }

    /// The lock is not free.
    #[inline(never)]
    fn poll_first(self: Pin<&mut Self>, cx: &Context<'_>) -> Poll<G::Guard> {
        self.poll_arrive(cx.waker().clone(), &mut Plain).map(Self::fits)
    }

    /// It was queued. Apart, so that callers inline no more than what a free lock needs.
    #[inline(never)]
    fn poll_later(self: Pin<&mut Self>, cx: &Context<'_>) -> Poll<G::Guard> {
        if self.phase() == Phase::Granted {
            return Poll::Ready(self.granted());
        }
        self.poll_again(cx)
    }

    /// It is queued, and was polled though it was not granted.
    #[cold]
    fn poll_again(self: Pin<&mut Self>, cx: &Context<'_>) -> Poll<G::Guard> {
        self.poll_queued(Some(cx.waker())).map(Self::fits)
    }

    fn fits(granted: Result<G::Guard, TooHeavy>) -> G::Guard {
        match granted {
            Ok(granted) => granted,
            Err(TooHeavy) => unreachable!("a weight of 1 or C always fits in C"),
        }
    }

    /// Leaves the queue. `Err`: the grant was faster, and here it is (rule Q4).
    pub(crate) fn leave(self: Pin<&mut Self>) -> Result<u32, G::Guard> {
        let this = self.project();
        let Some(source) = this.source.take() else { return Ok(0) };
        match source.raw().leave(this.node.as_ref()) {
            Left::Now { queued } => Ok(queued),
            Left::Outside => Ok(0),
            Left::Granted => Err(G::granted(source, *this.mode)),
        }
    }

    /// Dropped while queued or granted.
    #[cold]
    fn leave_for_good(self: Pin<&mut Self>) {
        // A grant that nobody will see is given back, which passes it on.
        drop(self.leave());
    }
}

impl<G: Grant> Future for Acquire<G> {
    type Output = G::Guard;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<G::Guard> {
        match self.phase() {
            Phase::Outside => match ready!(self.as_mut().poll_free(cx)) {
                Some(granted) => Poll::Ready(granted),
                None => self.poll_first(cx),
            },
            Phase::Granted | Phase::Queued | Phase::Rejected => self.poll_later(cx),
        }
    }
}

impl<G: Grant> fmt::Debug for Acquire<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acquire").field("lock", &G::KIND).finish_non_exhaustive()
    }
}
