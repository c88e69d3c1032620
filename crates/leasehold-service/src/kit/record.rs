//! One granted lease, known to its registry from the moment of the grant.

use std::{
    fmt,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use leasehold::{Error, ErrorKind, LockId, Operation, Result};
use leasehold_core::LocalTime;

use super::{
    flag::Flag,
    guarded::guarded,
    registry::{Inner, drop_record},
    shared_op::SharedOp,
};
use crate::{
    adapter::{BoxFuture, Grant},
    diagnostics::Diagnostic,
    observe,
};

/// A grant with what is known about it.
pub(crate) struct Record {
    pub(crate) serial: u64,
    pub(crate) lock: LockId,
    pub(crate) granted: LocalTime,
    pub(crate) grant: Box<dyn Grant>,
    /// Set by shutdown: the lease ends whatever its holder does.
    pub(crate) ended: Flag,
    pub(crate) registry: Weak<Inner>,
    release: SharedOp<bool>,
    loss_told: AtomicBool,
}

impl Record {
    pub(super) fn new(
        serial: u64,
        lock: LockId,
        granted: LocalTime,
        grant: Box<dyn Grant>,
        registry: Weak<Inner>,
    ) -> Arc<Self> {
        let (ended, release) = (Flag::new(), SharedOp::default());
        let loss_told = AtomicBool::new(false);
        Arc::new(Self { serial, lock, granted, grant, ended, registry, release, loss_told })
    }

    /// Gives the grant back: one call of the adapter, shared by all who ask, and another one after a
    /// failure while the service lives (acceptance N29).
    pub(crate) fn release(self: &Arc<Self>) -> impl Future<Output = Result<bool>> + Unpin + use<> {
        let alive = self.registry.upgrade().is_some_and(|registry| !registry.is_over());
        let record = Arc::clone(self);
        self.release.run(alive, || -> BoxFuture<'static, _> {
            Box::pin(async move { record.release_once().await })
        })
    }

    async fn release_once(self: Arc<Self>) -> Result<bool> {
        let released = guarded(Operation::Release, async { self.grant.release().await }).await;
        let Some(registry) = self.registry.upgrade() else { return released };
        match &released {
            Ok(held) => {
                drop_record(&registry, self.serial);
                observe::released(
                    &registry.label,
                    &self.lock,
                    &registry.context.clock,
                    self.granted,
                );
                if !held {
                    let why = lost("it had ended before it was released");
                    self.tell_loss(Error::new(why, Operation::Hold).on(&self.lock));
                }
            }
            Err(error) => {
                registry.report(Diagnostic::release_failed, &self.lock, error.clone());
            }
        }
        released
    }

    /// Tells the diagnostics of a loss, once. What a shutdown ends is not lost.
    pub(crate) fn tell_loss(&self, error: Error) {
        if self.ended.is_set() || self.loss_told.swap(true, Ordering::Relaxed) {
            return;
        }
        if let Some(registry) = self.registry.upgrade() {
            registry.report(Diagnostic::lost, &self.lock, error);
        }
    }

    /// Whether a release was asked for and failed.
    pub(crate) fn release_failed(&self) -> bool {
        matches!(self.release.outcome(), Some(Err(_)))
    }

    pub(crate) fn is_released(&self) -> bool {
        self.release.current().is_some()
    }

    pub(crate) fn is_held(&self) -> bool {
        !self.is_released() && !self.ended.is_set() && self.grant.is_held()
    }

    /// Completes when the lease is lost; a shutdown is told as one.
    pub(crate) async fn lost(&self) -> Error {
        use futures_util::future::{Either, select};
        match select(self.ended.wait(), self.grant.lost()).await {
            Either::Left(_) => {
                Error::new(lost("the service was shut down"), Operation::Hold).on(&self.lock)
            }
            Either::Right((error, _)) => error,
        }
    }
}

fn lost(why: &str) -> ErrorKind {
    ErrorKind::Lost { why: why.into() }
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record").field("lock", &self.lock).field("held", &self.is_held()).finish()
    }
}
