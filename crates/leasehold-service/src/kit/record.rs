//! One granted lease, known to its registry from the moment of the grant.

use std::{
    fmt,
    sync::{Arc, Weak},
};

use leasehold::{Error, ErrorKind, LockId, Operation, Result};
use leasehold_core::LocalTime;

use super::{
    flag::Flag,
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
        Arc::new(Self { serial, lock, granted, grant, ended, registry, release })
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
        let released = self.grant.release().await;
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
                if !held && !self.ended.is_set() {
                    let error =
                        Error::new(lost("it had ended before it was released"), Operation::Hold);
                    registry.report(Diagnostic::lost, &self.lock, error.on(&self.lock));
                }
            }
            Err(error) => {
                registry.report(Diagnostic::release_failed, &self.lock, error.clone());
            }
        }
        released
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
