//! The life of a service: booted, started, shut down.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use futures_util::future::join_all;
use leasehold::{Error, ErrorKind, InvalidArgument, Operation, Result};
use tracing::Instrument;

use crate::{
    adapter::BoxFuture, builder::ServiceBuilder, entry::Entry, kit::SharedOp,
    manager::ServiceManager, observe,
};

/// Locks from configuration: entries by name, each with one manager, started, shared and shut down
/// together (rules S). A cheap clone.
///
/// ```
/// # pollster::block_on(async {
/// use leasehold_service::{EntryConfig, LockService, ServiceConfig};
///
/// let config = ServiceConfig::new().entry("jobs", EntryConfig::new("memory").namespace("jobs"));
/// let service = LockService::builder("shop").config(config).boot()?.start().await?;
/// let sync = service.manager("jobs").await?.executor("orders:sync")?;
/// assert_eq!(sync.run(async { 6 * 7 }).await?, 42);
/// service.shutdown().await?;
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct LockService(Arc<Inner>);

struct Inner {
    default: String,
    /// The enabled ones; frozen.
    entries: BTreeMap<String, Arc<Entry>>,
    ready: AtomicBool,
    shutdown: SharedOp<()>,
}

impl LockService {
    /// Begins a service. The application's name is the namespace of entries that give none.
    pub fn builder(application: &str) -> ServiceBuilder {
        ServiceBuilder::new(application)
    }

    pub(crate) fn of(default: String, entries: BTreeMap<String, Arc<Entry>>) -> Self {
        assert!(entries.contains_key(&default), "the default entry was checked");
        let (ready, shutdown) = (AtomicBool::new(false), SharedOp::default());
        Self(Arc::new(Inner { default, entries, ready, shutdown }))
    }

    /// Starts the default entry, and gives this very service; the others start when they are first
    /// used (rule S2). Concurrent calls share one start, repeated ones do nothing, and after a
    /// failure it can be called again or shut down.
    ///
    /// # Cancel safety
    /// A start that was left goes on with the next call.
    ///
    /// # Errors
    /// What the adapter says; `ShutDown`.
    pub async fn start(&self) -> Result<Self> {
        self.default_entry().start().await?;
        self.0.ready.store(true, Ordering::SeqCst);
        Ok(self.clone())
    }

    /// The one manager of an entry, started with its first use.
    ///
    /// # Cancel safety
    /// As [`start`](Self::start).
    ///
    /// # Errors
    /// `InvalidArgument` for an entry that is not there or not enabled, at any time; `NotReady` before
    /// [`start`](Self::start), `ShutDown`, and what the adapter says when it does not start.
    pub async fn manager(&self, entry: &str) -> Result<ServiceManager> {
        // W6: the argument first.
        let Some(found) = self.0.entries.get(entry) else {
            let known: Vec<_> = self.0.entries.keys().map(String::as_str).collect();
            let known = known.join(", ");
            return Err(InvalidArgument::new(format!(
                "no enabled entry is called {entry:?}; there are {known}"
            ))
            .into());
        };
        self.check_ready()?;
        found.start().await?;
        Ok(ServiceManager::new(Arc::clone(found)))
    }

    /// The manager of the default entry.
    ///
    /// # Errors
    /// `NotReady` before [`start`](Self::start), `ShutDown`.
    pub fn default_manager(&self) -> Result<ServiceManager> {
        self.check_ready()?;
        Ok(ServiceManager::new(Arc::clone(self.default_entry())))
    }

    /// The names of the enabled entries, in order.
    pub fn entries(&self) -> impl Iterator<Item = &str> {
        self.0.entries.keys().map(String::as_str)
    }

    /// Ends the service (rule S7): refuses what is new, interrupts the waits, lets requests that
    /// were sent settle, releases all leases, also under running work and after their `lost()`, and
    /// closes what was opened. Failures stop nothing.
    ///
    /// Concurrent calls share one result, a success is final, and after a failed close it can be
    /// called again.
    ///
    /// # Cancel safety
    /// New requests are refused from the call on; a shutdown that was left goes on with the next
    /// call.
    ///
    /// # Errors
    /// The entries that did not close.
    pub fn shutdown(&self) -> impl Future<Output = Result<()>> + Send + Unpin + use<> {
        for entry in self.0.entries.values() {
            entry.refuse();
        }
        let entries: Vec<_> = self.0.entries.values().cloned().collect();
        self.0.shutdown.run(true, || -> BoxFuture<'static, _> {
            Box::pin(shut_down(entries).instrument(observe::shutting_down()))
        })
    }

    fn default_entry(&self) -> &Arc<Entry> {
        &self.0.entries[&self.0.default]
    }

    fn check_ready(&self) -> Result<()> {
        if self.default_entry().has_ended() {
            return Err(Error::new(ErrorKind::ShutDown, Operation::Open));
        }
        if !self.0.ready.load(Ordering::SeqCst) {
            return Err(Error::new(ErrorKind::NotReady, Operation::Open));
        }
        Ok(())
    }
}

/// Entries end side by side: a slow one does not hold up the others.
async fn shut_down(entries: Vec<Arc<Entry>>) -> Result<()> {
    let ended = join_all(entries.iter().map(|entry| entry.shutdown())).await;
    let mut failures: Vec<_> = ended.into_iter().filter_map(Result::err).collect();
    match failures.len() {
        0 => Ok(()),
        1 => Err(failures.remove(0)),
        _ => Err(Error::new(ErrorKind::Several { failures }, Operation::ShutDown)),
    }
}

impl fmt::Debug for LockService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockService")
            .field("default", &self.0.default)
            .field("entries", &self.0.entries)
            .finish_non_exhaustive()
    }
}
