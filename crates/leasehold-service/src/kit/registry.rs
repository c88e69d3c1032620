//! Knows every request on its way and every granted lease of an entry, and ends them all.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures_util::{FutureExt, future::join_all};
use leasehold::{Error, ErrorKind, LockId, Result};

use super::{
    acquisition::{Acquiring, Acquisition, Completion, Pending},
    context::{Context, drive, within},
    flag::Interrupt,
    guarded::guarded,
    record::Record,
};
use crate::{
    adapter::{BoxFuture, Grant},
    diagnostics::Diagnostic,
    lease::ServiceLease,
    observe,
};

/// The requests and leases of one entry.
///
/// A grant is recorded in the poll that brings it, before anything else is awaited (acceptance N37):
/// from then on either a [`ServiceLease`] is handed out, or the grant is given back.
#[derive(Clone)]
pub struct LeaseRegistry(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) label: observe::Label,
    pub(crate) context: Context,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    serial: u64,
    /// No request is begun any more, and no grant is handed out.
    closing: bool,
    /// All leases were asked to end: nothing is retried.
    over: bool,
    pending: BTreeMap<u64, (Arc<Pending>, Completion)>,
    leases: BTreeMap<u64, Arc<Record>>,
}

impl LeaseRegistry {
    /// A registry for one entry, which numbers and events name together with its adapter.
    #[must_use]
    pub fn new(entry: &str, adapter: &str, context: Context) -> Self {
        let label = observe::Label::new(entry, adapter);
        Self(Arc::new(Inner { label, context, state: Mutex::default() }))
    }

    /// Begins a request: `native` makes the adapter's future, given what ends its wait.
    ///
    /// The caller awaits [`Acquisition::result`]. When the caller leaves, or is told something else
    /// before, the request goes on by itself until it has settled, and a grant that it brings is
    /// given back at once (acceptance N28); [`Acquisition::completion`] is done when that is over.
    ///
    /// # Fairness
    /// The adapter's.
    ///
    /// # Cancel safety
    /// Dropping either future loses no grant.
    ///
    /// # Errors
    /// `ShutDown` after [`shutdown`](Self::shutdown) has begun.
    pub fn acquire<N>(
        &self,
        lock: LockId,
        native: impl FnOnce(Interrupt) -> N,
    ) -> Result<Acquisition>
    where
        N: Future<Output = Result<Option<Box<dyn Grant>>>> + Send + 'static,
    {
        let mut state = self.0.lock();
        if state.closing {
            return Err(Error::new(ErrorKind::ShutDown, leasehold::Operation::Acquire).on(&lock));
        }
        state.serial += 1;
        let serial = state.serial;
        let pending = Arc::new(Pending::new(serial, lock, self.0.context.clock.now()));
        let native = native(pending.interrupt.wait());
        let completion = settle(Arc::clone(&self.0), Arc::clone(&pending), native);
        state.pending.insert(serial, (Arc::clone(&pending), completion.clone()));
        drop(state);
        let result = Acquiring::new(Arc::clone(&self.0), pending, completion.clone());
        Ok(Acquisition { result, completion })
    }

    /// How many leases were granted and not given back.
    #[must_use]
    pub fn leases(&self) -> usize {
        self.0.lock().leases.len()
    }

    /// How many requests have not settled.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.0.lock().pending.len()
    }

    /// Ends all (rule S7): refuses new requests, interrupts the waits, lets what was sent settle,
    /// then gives every lease back, also under running work, after telling its
    /// [`lost`](ServiceLease::lost). Failures are told to the diagnostics and stop nothing. What
    /// takes longer than the patience of the context is left behind and told.
    ///
    /// # Cancel safety
    /// Dropping the future stops half-way; another call goes on.
    pub async fn shutdown(&self) {
        let inner = &*self.0;
        inner.lock().closing = true;
        for (pending, _) in inner.under_way() {
            pending.refuse(ErrorKind::ShutDown);
        }
        // N36: what is on its way settles before leases are given back and the store is closed.
        inner.settled().await;
        self.release_all().await;
        // A request that cannot be interrupted may have waited for one of those leases.
        inner.settled().await;
        let left = self.requests() + self.leases();
        if left > 0 {
            inner.context.report(Diagnostic::unsettled(&inner.label, left));
        }
    }

    async fn release_all(&self) {
        let inner = &*self.0;
        let leases: Vec<_> = inner.lock().leases.values().cloned().collect();
        for lease in &leases {
            lease.ended.set();
        }
        // One that failed before is tried once more, and then never again (N29). Each failure is
        // reported where it happens.
        let releases: Vec<_> = leases.iter().map(Record::release).collect();
        inner.lock().over = true;
        let _ = within(&inner.context, join_all(releases)).await;
    }
}

impl Inner {
    pub(crate) fn report(
        &self,
        of: fn(&observe::Label, LockId, Error) -> Diagnostic,
        lock: &LockId,
        error: Error,
    ) {
        self.context.report(of(&self.label, lock.clone(), error));
    }

    /// A grant that the caller did not live to see.
    pub(super) fn give_back_late(&self, lease: &ServiceLease) {
        let record = lease.record();
        self.context.report(Diagnostic::late_grant(&self.label, &record.lock));
        drive(&self.context, record.release());
    }

    fn under_way(&self) -> Vec<(Arc<Pending>, Completion)> {
        self.lock().pending.values().cloned().collect()
    }

    /// Waits for the requests that are under way, within the patience.
    async fn settled(&self) {
        let completions = self.under_way().into_iter().map(|(_, completion)| completion);
        let _ = within(&self.context, join_all(completions)).await;
    }

    pub(crate) fn is_over(&self) -> bool {
        self.lock().over
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a grant in the same step that takes its request out.
    fn record(self: &Arc<Self>, pending: &Pending, grant: Box<dyn Grant>) -> (Arc<Record>, bool) {
        let mut state = self.lock();
        state.pending.remove(&pending.serial);
        let (now, registry) = (self.context.clock.now(), Arc::downgrade(self));
        let record = Record::new(pending.serial, pending.lock.clone(), now, grant, registry);
        state.leases.insert(pending.serial, Arc::clone(&record));
        (record, state.closing)
    }

    fn forget(&self, pending: &Pending) {
        self.lock().pending.remove(&pending.serial);
    }
}

pub(super) fn drop_record(registry: &Inner, serial: u64) {
    let gone = registry.lock().leases.remove(&serial);
    // Outside of the lock: its drop may run the adapter's code.
    drop(gone);
}

/// The request from its first poll to its end, whoever drives it.
fn settle<N>(registry: Arc<Inner>, pending: Arc<Pending>, native: N) -> Completion
where
    N: Future<Output = Result<Option<Box<dyn Grant>>>> + Send + 'static,
{
    let settling = async move {
        // N26: what nobody wants any more is not asked for.
        if pending.is_refused() {
            registry.forget(&pending);
            return;
        }
        match guarded(leasehold::Operation::Acquire, native).await {
            Ok(Some(grant)) => {
                let (record, closing) = registry.record(&pending, grant);
                if closing {
                    pending.refuse(ErrorKind::ShutDown);
                }
                let lease = ServiceLease::new(Arc::clone(&record));
                if let Some(late) = pending.deliver(Ok(Some(lease))) {
                    registry.context.report(Diagnostic::late_grant(&registry.label, &record.lock));
                    // Told by the record itself when it fails.
                    let _ = record.release().await;
                    drop(late);
                }
            }
            Ok(None) => {
                registry.forget(&pending);
                drop(pending.deliver(Ok(None)));
            }
            Err(error) => {
                registry.forget(&pending);
                drop(pending.deliver(Err(error)));
            }
        }
    };
    let settling: BoxFuture<'static, ()> = Box::pin(settling);
    Completion(settling.shared())
}

impl fmt::Debug for LeaseRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaseRegistry")
            .field("label", &self.0.label)
            .field("leases", &self.leases())
            .field("requests", &self.requests())
            .finish()
    }
}
