//! `run_exclusive` and `run_shared`: work in a frame that holds a lock (rules R1 and R2).

use std::{
    any::type_name,
    future::Future,
    mem::ManuallyDrop,
    panic::Location,
    pin::Pin,
    task::{Context, Poll, ready},
};

use pin_project_lite::pin_project;

use crate::{
    acquire::{Acquire, Grant, Hook},
    acquire_with::AcquireWith,
    budget,
    cancel::CancelReason,
    error::{Error, Place},
    frames::{Access, Ask, Hold, LockLabel, Order, Share, Target, Waiting, in_frame},
    hold::{Mode, Source},
    mutex::MutexGuard,
    raw::Arrival,
    rw_lock::{RwLockReadGuard, RwLockWriteGuard},
};

pin_project! {
    /// A checked request: it is told of reentrancy and of deadlocks.
    struct Checked<'a, G: Grant, C> {
        // First, so that the record goes before the request leaves its queue.
        waiting: Waiting,
        ask: &'a Ask,
        #[pin]
        acquire: AcquireWith<G, C>,
    }
}

/// The path of a free lock, and of a read within a read. `None`: it is not free.
struct Free<'a, G: Grant> {
    source: &'a G::Source,
    mode: G::Mode,
    ask: &'a Ask,
}

/// What a checked request gives.
struct Granted<G> {
    /// Without a permit of its own if there is a share.
    guard: ManuallyDrop<G>,
    share: Option<Share>,
}

/// What a frame holds: a grant of its own, or a share of one.
struct Held<G> {
    hold: Hold,
    guard: ManuallyDrop<G>,
}

/// Keeps the record of a request in step with its queue.
struct Recording<'a> {
    waiting: &'a mut Waiting,
    ask: &'a Ask,
    deadlock: Option<Error>,
}

/// A guard whose requests can be checked.
trait Checkable: Grant<Source: Clone, Guard = Self> {
    const ACCESS: Access;

    /// What the frames know the lock by.
    fn domain(source: &Self::Source) -> u64;
}

impl<T: ?Sized> Checkable for MutexGuard<'_, T> {
    const ACCESS: Access = Access::Exclusive;

    #[inline]
    fn domain(mutex: &Self::Source) -> u64 {
        std::ptr::from_ref(mutex.raw()).addr() as u64
    }
}

impl<T: ?Sized> Checkable for RwLockReadGuard<'_, T> {
    const ACCESS: Access = Access::Shared;

    #[inline]
    fn domain(lock: &Self::Source) -> u64 {
        lock.domain()
    }
}

impl<T: ?Sized> Checkable for RwLockWriteGuard<'_, T> {
    const ACCESS: Access = Access::Exclusive;

    #[inline]
    fn domain(lock: &Self::Source) -> u64 {
        lock.domain()
    }
}

macro_rules! runs {
    ($guard:ident, $data:ty, [$($mut:tt)?]) => {
        impl<T: ?Sized> Acquire<$guard<'_, T>> {
            /// Acquires, runs `work` with the data in a frame of its own, and releases: the
            /// request is checked, and so are those that `work` makes inside.
            ///
            /// # Fairness
            ///
            /// As the request itself.
            ///
            /// # Cancel safety
            ///
            /// Dropping the future drops the work first, then gives the grant back (rule W7).
            ///
            /// # Errors
            ///
            /// `Reentrant` and `Deadlock` (rules R2 and R4).
            #[track_caller]
            #[inline]
            pub fn run<R>(
                self,
                work: impl AsyncFnOnce($data) -> R,
            ) -> impl Future<Output = Result<R, Error>> {
                let place = Location::caller();
                async move {
                    // Only what a free lock needs is moved here; the rest is made if it waits.
                    let (source, mode) = self.into_parts();
                    let ask = ask::<$guard<'_, T>>(&source, type_name::<T>(), place);
                    let free = Free::<$guard<'_, T>> { source: &source, mode, ask: &ask };
                    let granted = match free.await? {
                        Some(granted) => granted,
                        None => {
                            let request = Acquire::<$guard<'_, T>>::new(source, mode);
                            Checked::new(&ask, AcquireWith::new(request)).await?
                        }
                    };
                    let $($mut)? held = Held::new(&ask, granted);
                    let Held { hold, guard } = & $($mut)? held;
                    Ok(in_frame(hold, work(& $($mut)? ***guard)).await)
                }
            }
        }

        impl<T: ?Sized, C: Future<Output: CancelReason>> AcquireWith<$guard<'_, T>, C> {
            /// Acquires, runs `work` with the data in a frame of its own, and releases: the
            /// request is checked, and so are those that `work` makes inside. The timeout is that
            /// of the request; the work has none.
            ///
            /// # Fairness
            ///
            /// As the request itself.
            ///
            /// # Cancel safety
            ///
            /// Dropping the future drops the work first, then gives the grant back (rule W7).
            ///
            /// # Errors
            ///
            /// Those of the request, `Reentrant` and `Deadlock` (rules R2 and R4). A request with
            /// a timeout is part of a deadlock as any other.
            ///
            /// # Examples
            ///
            /// ```
            /// # pollster::block_on(async {
            /// use std::time::Duration;
            ///
            /// let lock = leasehold_sync::RwLock::new(5);
            /// let read = lock.read().timeout(Duration::from_millis(50));
            /// assert_eq!(read.run(async |n| *n + 1).await, Ok(6));
            /// # });
            /// ```
            #[track_caller]
            #[inline]
            pub fn run<R>(
                self,
                work: impl AsyncFnOnce($data) -> R,
            ) -> impl Future<Output = Result<R, Error>> {
                let place = Location::caller();
                async move {
                    let ask = ask::<$guard<'_, T>>(self.request().lock(), type_name::<T>(), place);
                    let granted = Checked::new(&ask, self).await?;
                    let $($mut)? held = Held::new(&ask, granted);
                    let Held { hold, guard } = & $($mut)? held;
                    Ok(in_frame(hold, work(& $($mut)? ***guard)).await)
                }
            }
        }
    };
}

runs!(MutexGuard, &mut T, [mut]);
runs!(RwLockWriteGuard, &mut T, [mut]);
runs!(RwLockReadGuard, &T, []);

#[inline]
fn ask<G: Checkable>(source: &G::Source, of: &'static str, place: Place) -> Ask {
    let target = Target::whole(G::domain(source));
    let lock = LockLabel { kind: G::KIND, of };
    Ask { target, access: G::ACCESS, lock, place, order: Order::Fifo, grant: None }
}

impl<G: Checkable> Future for Free<'_, G> {
    type Output = Result<Option<Granted<G>>, Error>;

    #[inline(always)]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { source, mode, ask } = *self;
        let progress = ready!(budget::poll_proceed(cx));
        let share = ask.check()?;
        if share.is_none() && mode.try_take_fast(source.raw()) != Some(true) {
            return Poll::Ready(Ok(None));
        }
        progress.made_progress();
        let guard = ManuallyDrop::new(G::granted(source.clone(), mode));
        Poll::Ready(Ok(Some(Granted { guard, share })))
    }
}

impl<'a, G: Checkable, C: Future<Output: CancelReason>> Checked<'a, G, C> {
    fn new(ask: &'a Ask, acquire: AcquireWith<G, C>) -> Self {
        Self { waiting: Waiting::new(), ask, acquire }
    }

    /// A share of the grant of an enclosing frame, instead of one of its own.
    fn sharing(
        mut acquire: Pin<&mut AcquireWith<G, C>>,
        share: Share,
    ) -> Poll<Result<Granted<G::Guard>, Error>> {
        let (source, mode) = (acquire.request().lock().clone(), acquire.request().mode());
        // Given back at once if it was granted a permit of its own meanwhile: it needs none.
        drop(acquire.as_mut().leave());
        let guard = ManuallyDrop::new(G::granted(source, mode));
        Poll::Ready(Ok(Granted { guard, share: Some(share) }))
    }

    /// It does not go on waiting.
    fn refused(
        acquire: Pin<&mut AcquireWith<G, C>>,
        error: Error,
    ) -> Poll<Result<Granted<G::Guard>, Error>> {
        Poll::Ready(match acquire.leave() {
            Ok(queued) => Err(error.among(queued)),
            // Somebody gave up meanwhile, so that nothing is wrong any more.
            Err(guard) => Ok(Granted::own(guard)),
        })
    }
}

impl<G: Checkable, C: Future<Output: CancelReason>> Future for Checked<'_, G, C> {
    type Output = Result<Granted<G::Guard>, Error>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let arrives = this.acquire.request().is_outside();
        if arrives {
            if let Poll::Ready(cancelled) = this.acquire.as_mut().poll_cancelled(cx) {
                return Poll::Ready(Err(cancelled));
            }
            if let Some(share) = this.ask.check()? {
                return Self::sharing(this.acquire, share);
            }
        }
        let mut recording = Recording { waiting: this.waiting, ask: this.ask, deadlock: None };
        let polled = this.acquire.as_mut().poll_hooked(cx, &mut recording);
        let deadlock = recording.deadlock;
        if polled.is_pending() {
            if let Some(deadlock) = deadlock {
                return Self::refused(this.acquire, deadlock);
            }
            // What encloses it when it arrives is known already.
            if arrives {
                return Poll::Pending;
            }
            return match this.waiting.renew(this.ask) {
                Ok(None) => Poll::Pending,
                Ok(Some(share)) => Self::sharing(this.acquire, share),
                Err(error) => Self::refused(this.acquire, error),
            };
        }
        this.waiting.end();
        Poll::Ready(ready!(polled).map(Granted::own))
    }
}

impl Hook for Recording<'_> {
    fn arrive(&mut self, queue: impl FnOnce() -> Arrival) -> Arrival {
        let mut arrival = Arrival::Queued;
        let queued = self.waiting.arrive(self.ask, || {
            arrival = queue();
            arrival == Arrival::Queued
        });
        self.deadlock = queued.err();
        arrival
    }

    fn leaving(&mut self) {
        self.waiting.end();
    }
}

impl<G> Granted<G> {
    #[inline]
    const fn own(guard: G) -> Self {
        Self { guard: ManuallyDrop::new(guard), share: None }
    }
}

impl<G> Held<G> {
    #[inline]
    fn new(ask: &Ask, granted: Granted<G>) -> Self {
        let Granted { guard, share } = granted;
        match share {
            None => Self { hold: Hold::new(ask), guard },
            Some(share) => Self { hold: Hold::sharing(ask, share), guard },
        }
    }
}

impl<G> Drop for Held<G> {
    #[inline]
    fn drop(&mut self) {
        // The record goes first, then the permit, with its last guard.
        if self.hold.end() {
            // SAFETY: it is dropped here and nowhere else, and not used afterwards.
            unsafe { ManuallyDrop::drop(&mut self.guard) }
        }
    }
}
