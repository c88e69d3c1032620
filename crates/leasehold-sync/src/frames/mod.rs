//! Frames: who waits inside of what (rules R).
//!
//! A frame is opened by `run_exclusive`, `run_shared` and [`scope`], around the future that it
//! wraps, and is there while that future is polled (`chain`). A *checked* request looks at the
//! frames around it. One that holds the lock already is told at once, with both places in the
//! source, and a read within a read shares the grant of the outer one (rule R2; `hold`). A
//! request that is queued is recorded with the holds around it, and is told if that closes a
//! cycle (rule R4; `graph`, `waiting`).
//!
//! Everything here is removed by the drop of what it belongs to, never by the thread: futures are
//! dropped outside of a poll, and on other threads.

mod ask;
mod chain;
mod graph;
mod hold;
mod once;
mod waiting;

use std::{
    fmt,
    future::Future,
    panic::Location,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use pin_project_lite::pin_project;

use self::{
    chain::{Guards, Kind},
    hold::Remembered,
};
use crate::error::{Error, Place};

pub(crate) use self::{
    ask::{LockLabel, Order, Target, next_domain},
    graph::forget_lock,
    waiting::Waiting,
};
#[allow(unused_imports, reason = "for keyed locks")]
pub(crate) use self::{chain::in_a_frame, hold::GuardHold};

#[doc(hidden)]
pub use self::{
    ask::{Access, Ask},
    hold::{Hold, Share},
};

pin_project! {
    /// The future of [`scope`].
    #[must_use = "futures do nothing unless polled"]
    pub struct Scope<F> {
        #[pin]
        future: F,
        guards: Guards,
        place: Place,
    }
}

pin_project! {
    /// Runs the work of a `run_exclusive` or `run_shared` in the frame that holds.
    #[must_use = "futures do nothing unless polled"]
    #[doc(hidden)]
    pub struct InFrame<'a, F> {
        hold: &'a Hold,
        #[pin]
        future: F,
        guards: Guards,
    }
}

pin_project! {
    /// The future of [`InCurrentScope::in_current_scope`].
    #[must_use = "futures do nothing unless polled"]
    pub struct Inherits<F> {
        #[pin]
        future: F,
        inherited: Option<(Arc<[Remembered]>, Place)>,
        guards: Guards,
    }
}

/// Runs `future` in a frame of its own, which holds nothing.
///
/// Checked requests inside of it that give movable guards are known to one another: those of a
/// keyed lock that opted in. `run_exclusive` and `run_shared` open frames themselves and need none
/// around them. Spawned tasks are in no frame; see [`InCurrentScope`].
///
/// A guard counts as held by the frame in which it was taken until it is dropped, wherever it was
/// moved. A request counts as made in the frames in which it was polled last: one that waits and is
/// moved into another task is taken for a part of the task that it left until it is polled again,
/// so poll it there before anything else waits for it. And an executor that is run inside of a frame takes the tasks that it polls for a part of
/// it, save those of Tokio (with the feature `tokio`).
///
/// # Examples
///
/// ```
/// # pollster::block_on(async {
/// let mutex = leasehold_sync::Mutex::new(1);
/// let twice = leasehold_sync::scope(async {
///     mutex.run_exclusive(async |_| mutex.run_exclusive(async |n| *n).await).await
/// });
/// assert!(twice.await.unwrap().unwrap_err().is_reentrant());
/// # });
/// ```
#[track_caller]
pub fn scope<F: Future>(future: F) -> Scope<F> {
    Scope { future, guards: Guards::new(), place: Location::caller() }
}

/// Takes the frames along into another task.
///
/// A spawned task is in no frame, so that what it asks for is taken for independent of who spawned
/// it. Where the spawner waits for it, and so holds on as long as it runs, say so:
/// `spawn(work.in_current_scope())`. Then its requests for what the spawner holds are told as
/// reentrant, for as long as it is held, and its reads share the spawner's. Whether the spawner
/// really waits cannot be known, so no deadlock is ever told over this border (rule R4).
///
/// # Examples
///
/// ```
/// use leasehold_sync::{InCurrentScope, Mutex};
///
/// # pollster::block_on(async {
/// static ORDERS: Mutex<u32> = Mutex::new(0);
/// let told = ORDERS
///     .run_exclusive(async |_| {
///         let child = async { ORDERS.run_exclusive(async |n| *n).await }.in_current_scope();
///         // As good as spawned and joined.
///         std::thread::spawn(|| pollster::block_on(child)).join().unwrap()
///     })
///     .await;
/// assert!(told.unwrap().unwrap_err().is_reentrant());
/// # });
/// ```
pub trait InCurrentScope: Future + Sized {
    /// See the trait. Outside of any frame it adds nothing.
    fn in_current_scope(self) -> Inherits<Self> {
        let inherited = chain::inherit().map(|(holds, task)| (Arc::from(holds), task));
        Inherits { future: self, inherited, guards: Guards::new() }
    }
}

impl<F: Future> InCurrentScope for F {}

/// Runs `work` in the frame that holds that.
#[doc(hidden)]
pub const fn in_frame<F: Future>(hold: &Hold, work: F) -> InFrame<'_, F> {
    InFrame { hold, future: work, guards: Guards::new() }
}

impl Ask {
    /// Rule R2: reentrancy, or the read of an enclosing frame that a read can share. To be asked
    /// before anything is queued, and taken when the lock is free.
    ///
    /// # Errors
    ///
    /// `Reentrant`.
    #[inline]
    pub fn check(&self) -> Result<Option<Share>, Error> {
        chain::check(self)
    }
}

impl<F: Future> Future for Scope<F> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let future = this.future;
        chain::enter(Kind::Scope, this.guards, this.place, || future.poll(cx))
    }
}

impl<F: Future> Future for InFrame<'_, F> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let (hold, future): (&Hold, _) = (this.hold, this.future);
        chain::enter(Kind::Run(hold), this.guards, hold.place(), || future.poll(cx))
    }
}

impl<F: Future> Future for Inherits<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let future = this.future;
        match this.inherited {
            None => future.poll(cx),
            Some((holds, task)) => {
                chain::enter(Kind::Inherited(holds), this.guards, task, || future.poll(cx))
            }
        }
    }
}

impl<F> fmt::Debug for Scope<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").field("place", &self.place).finish_non_exhaustive()
    }
}

impl<F> fmt::Debug for InFrame<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InFrame").field("hold", &self.hold).finish_non_exhaustive()
    }
}

impl<F> fmt::Debug for Inherits<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inherits").finish_non_exhaustive()
    }
}
