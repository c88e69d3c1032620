//! One entry: its instance, its registry, and its way from boot to closed.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures_util::future::{Either, select};
use leasehold::{Error, ErrorKind, Fault, FaultKind, LockId, Namespace, Operation, Result, Ttl};
use tracing::Instrument;

use crate::{
    adapter::{BoxFuture, Instance, Request, Wait},
    diagnostics::Diagnostic,
    kit::{Acquisition, Context, Flag, LeaseRegistry, SharedOp, guarded, within},
    observe,
};

/// An entry as boot made it. The instance is there before it is started (acceptance N38).
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) namespace: Namespace,
    ttl: Option<Ttl>,
    instance: Arc<dyn Instance>,
    registry: LeaseRegistry,
    start: SharedOp<()>,
    /// Ends a start that is on its way.
    stop: Flag,
    life: Mutex<Life>,
}

#[derive(Default)]
struct Life {
    /// The adapter was asked to start, however that went: there may be something to close.
    touched: bool,
    /// A shutdown has begun.
    ended: bool,
    /// What was to be settled and released is over, one way or the other.
    released: bool,
    closed: bool,
}

impl Entry {
    pub(crate) fn new(
        name: &str,
        adapter: &str,
        namespace: Namespace,
        ttl: Option<Ttl>,
        instance: Arc<dyn Instance>,
        context: Context,
    ) -> Self {
        Self {
            name: name.into(),
            namespace,
            ttl,
            instance,
            registry: LeaseRegistry::new(name, adapter, context),
            start: SharedOp::default(),
            stop: Flag::new(),
            life: Mutex::default(),
        }
    }

    /// Starts the adapter, once for all who ask; after a failure the next call tries again. A caller
    /// that leaves does not end the start.
    pub(crate) async fn start(self: &Arc<Self>) -> Result<()> {
        let start = {
            let mut life = self.life();
            if life.ended {
                return Err(shut_down(Operation::Open));
            }
            life.touched = true;
            let entry = Arc::clone(self);
            self.start.run(true, || -> BoxFuture<'static, _> {
                let span = observe::starting(&entry.registry.0.label);
                Box::pin(async move { entry.start_once().await }.instrument(span))
            })
        };
        start.await?;
        // N35: a start that met a shutdown opens nothing.
        if self.life().ended { Err(shut_down(Operation::Open)) } else { Ok(()) }
    }

    async fn start_once(&self) -> Result<()> {
        let inner = &self.registry.0;
        let start = Box::pin(guarded(Operation::Open, async { self.instance.start().await }));
        // The flag is asked first: a shutdown drops the adapter's start before it closes.
        let started = match select(self.stop.wait(), start).await {
            Either::Left(_) => return Err(shut_down(Operation::Open)),
            Either::Right((started, _)) => started,
        };
        match &started {
            Ok(()) => observe::started(&inner.label),
            Err(error) => {
                inner.context.report(Diagnostic::start_failed(&inner.label, error.clone()));
            }
        }
        started
    }

    /// Begins an acquisition. The resource's TTL goes before the entry's (rule S3).
    pub(crate) fn acquire(
        &self,
        lock: &LockId,
        wait: Wait,
        ttl: Option<Ttl>,
    ) -> Result<Acquisition> {
        let (instance, ttl) = (&self.instance, ttl.or(self.ttl));
        self.registry.acquire(lock.clone(), |interrupt| {
            instance.request(Request { lock: lock.clone(), ttl, wait, interrupt })
        })
    }

    /// Whether a shutdown has begun.
    pub(crate) fn has_ended(&self) -> bool {
        self.life().ended
    }

    /// From now on nothing is started.
    pub(crate) fn refuse(&self) {
        self.life().ended = true;
        self.stop.set();
    }

    /// Ends everything of this entry (rule S7). What was done is not done again by a later call; a
    /// close that failed is.
    pub(crate) async fn shutdown(&self) -> Result<()> {
        self.refuse();
        if let Some(start) = self.start.current() {
            // It sees the flag at its next poll; how it ended is its callers' affair.
            let _ = start.await;
        }
        // What was left behind by a shutdown is not waited for by the next one.
        if !self.life().released {
            self.registry.shutdown().await;
            self.life().released = true;
        }
        if !self.life().touched || self.life().closed {
            return Ok(());
        }
        let inner = &self.registry.0;
        let close = guarded(Operation::ShutDown, async { self.instance.close().await });
        let closed = within(&inner.context, close).await.unwrap_or_else(|| {
            let patience = inner.context.patience;
            let message = format!("the adapter did not close within {patience:?}");
            let fault = Fault::new(FaultKind::Unavailable, message);
            Err(Error::from_fault(fault, Operation::ShutDown))
        });
        match &closed {
            Ok(()) => {
                self.life().closed = true;
                observe::closed(&inner.label);
            }
            Err(error) => {
                inner.context.report(Diagnostic::close_failed(&inner.label, error.clone()));
            }
        }
        closed
    }

    fn life(&self) -> MutexGuard<'_, Life> {
        self.life.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn shut_down(operation: Operation) -> Error {
    Error::new(ErrorKind::ShutDown, operation)
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry")
            .field("name", &self.name)
            .field("namespace", &self.namespace)
            .field("registry", &self.registry)
            .finish_non_exhaustive()
    }
}
