//! A request with its clean-up: what the caller gets, and what goes on when the caller has left.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context as Task, Poll},
};

use futures_util::{FutureExt, future::Shared};
use leasehold::{Error, ErrorKind, LockId, Operation, Result};
use leasehold_core::{LocalTime, Wake};

use super::{context::drive, flag::Flag, registry::Inner};
use crate::{adapter::BoxFuture, lease::ServiceLease, observe};

/// A request that was begun.
#[derive(Debug)]
pub struct Acquisition {
    /// What the caller awaits.
    pub result: Acquiring,
    /// Done when the request has settled and nothing of it is left but a lease that was handed out.
    /// It may outlive the caller.
    pub completion: Completion,
}

/// The end of a request, shared by all who wait for it.
#[derive(Clone)]
pub struct Completion(pub(super) Shared<BoxFuture<'static, ()>>);

impl Future for Completion {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Task<'_>) -> Poll<()> {
        if self.0.peek().is_some() {
            return Poll::Ready(());
        }
        self.0.poll_unpin(cx)
    }
}

impl fmt::Debug for Completion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Completion").field("done", &self.0.peek().is_some()).finish()
    }
}

/// A caller's cancellation: its output is the reason.
pub(crate) type Cancel = BoxFuture<'static, String>;

/// What caller, request and shutdown have in common.
pub(crate) struct Pending {
    pub(super) serial: u64,
    pub(super) lock: LockId,
    pub(super) begun: LocalTime,
    /// Tells the adapter that the wait may end.
    pub(super) interrupt: Flag,
    /// Tells the caller that it was refused.
    refused: Wake,
    fate: Mutex<Fate>,
}

/// Decided once: by the answer of the adapter, or before by the caller or a shutdown.
enum Fate {
    Open,
    Answered(Result<Option<ServiceLease>>),
    Refused(ErrorKind),
}

impl Pending {
    pub(super) fn new(serial: u64, lock: LockId, begun: LocalTime) -> Self {
        let (interrupt, refused, fate) = (Flag::new(), Wake::new(), Mutex::new(Fate::Open));
        Self { serial, lock, begun, interrupt, refused, fate }
    }

    /// Gives the answer to the caller, or back when nobody wants it any more.
    pub(super) fn deliver(
        &self,
        answer: Result<Option<ServiceLease>>,
    ) -> Option<Result<Option<ServiceLease>>> {
        let mut fate = self.fate();
        match *fate {
            Fate::Refused(_) => Some(answer),
            _ => {
                *fate = Fate::Answered(answer);
                None
            }
        }
    }

    /// Ends the wait, unless the answer is there already.
    pub(super) fn refuse(&self, why: ErrorKind) {
        let mut fate = self.fate();
        if matches!(*fate, Fate::Open) {
            *fate = Fate::Refused(why);
            drop(fate);
            self.interrupt.set();
            self.refused.notify();
        }
    }

    /// What became of it, and from now on nobody wants it.
    fn take(&self, why: ErrorKind) -> Fate {
        std::mem::replace(&mut *self.fate(), Fate::Refused(why))
    }

    pub(super) fn is_refused(&self) -> bool {
        matches!(*self.fate(), Fate::Refused(_))
    }

    fn fate(&self) -> MutexGuard<'_, Fate> {
        self.fate.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The caller's side of a request: `None` is busy.
///
/// # Cancel safety
/// Dropping it interrupts the request; a grant that comes all the same is given back.
#[must_use = "futures do nothing unless polled"]
pub struct Acquiring {
    registry: Arc<Inner>,
    pending: Arc<Pending>,
    completion: Completion,
    cancel: Option<Cancel>,
    done: bool,
}

impl Acquiring {
    pub(super) fn new(registry: Arc<Inner>, pending: Arc<Pending>, completion: Completion) -> Self {
        Self { registry, pending, completion, cancel: None, done: false }
    }

    /// Gives up when `cancel` is ready; its output becomes the reason.
    pub(crate) fn cancel(mut self, cancel: Option<Cancel>) -> Self {
        self.cancel = cancel;
        self
    }

    /// The caller goes: the wait ends, and what comes of the request is cleaned up.
    fn leave(&mut self, why: ErrorKind) -> Error {
        self.done = true;
        let fate = self.pending.take(why.clone());
        self.pending.interrupt.set();
        drive(&self.registry.context, self.completion.clone());
        if let Fate::Answered(Ok(Some(lease))) = fate {
            self.registry.give_back_late(&lease);
        }
        self.error(why)
    }

    fn error(&self, kind: ErrorKind) -> Error {
        Error::new(kind, Operation::Acquire).on(&self.pending.lock)
    }
}

impl Future for Acquiring {
    type Output = Result<Option<ServiceLease>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Task<'_>) -> Poll<Self::Output> {
        assert!(!self.done, "an acquisition was polled after it had ended");
        // S5: what is cancelled before it is delivered is not delivered.
        if let Some(cancel) = &mut self.cancel
            && let Poll::Ready(reason) = cancel.as_mut().poll(cx)
        {
            observe::refused(&self.registry.label, &self.pending.lock, "cancelled");
            return Poll::Ready(Err(self.leave(ErrorKind::Cancelled { reason })));
        }
        while self.pending.refused.poll_notified(cx).is_ready() {}
        let settled = Pin::new(&mut self.completion).poll(cx);
        let mut fate = self.pending.fate();
        match std::mem::replace(&mut *fate, Fate::Open) {
            Fate::Open => {
                assert!(settled.is_pending(), "a settled request has an answer");
                Poll::Pending
            }
            // S7: a lease that a shutdown has given back already is not handed out.
            Fate::Answered(Ok(Some(_))) if self.registry.is_over() => {
                drop(fate);
                Poll::Ready(Err(self.leave(ErrorKind::ShutDown)))
            }
            Fate::Answered(answer) => {
                drop(fate);
                self.done = true;
                let clock = &self.registry.context.clock;
                let (label, pending) = (&self.registry.label, &self.pending);
                observe::answered(label, &pending.lock, &answer, clock, pending.begun);
                Poll::Ready(answer)
            }
            Fate::Refused(why) => {
                *fate = Fate::Refused(why.clone());
                drop(fate);
                observe::refused(&self.registry.label, &self.pending.lock, "shut down");
                Poll::Ready(Err(self.leave(why)))
            }
        }
    }
}

impl Drop for Acquiring {
    fn drop(&mut self) {
        if !self.done {
            let _ = self.leave(ErrorKind::Cancelled { reason: "the future was dropped".into() });
        }
    }
}

impl fmt::Debug for Acquiring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acquiring").field("lock", &self.pending.lock).finish_non_exhaustive()
    }
}
