//! The owner of the named locks of one process on one store, in one namespace.

use std::{fmt, sync::Arc, time::Duration};

use leasehold_core::{
    Backend, Capacity, CapacityClaim, Error, HolderInfo, InvalidArgument, LockKind, LockName,
    LockState, MemoryBackend, Namespace, Operation, Result, Ttl, defaults,
};

use crate::{
    connect,
    core::{Core, Life, Waits},
    entry::Entry,
    named::{NamedMutex, NamedRwLock, NamedSemaphore},
    renew::Renewer,
    shutdown::Shutdown,
};

/// The owner of the named locks of one process on one store, in one namespace.
///
/// Clones are one manager. The same kind and name give the same live lock (rule N1); one name may
/// be used by several kinds without interference.
///
/// Call [`shutdown`](Self::shutdown) at the end of `main`: it gives back what this manager holds.
/// Dropping the last handle does the same a little later, on a thread that lives up to 250 ms
/// longer.
///
/// ```
/// # pollster::block_on(async {
/// use leasehold::LockManager;
///
/// let locks = LockManager::in_memory();
/// let orders = locks.mutex("orders")?;
/// let lease = orders.lock().await?;
/// assert!(orders.try_lock().await?.is_none());
/// lease.release().await?;
/// locks.shutdown().await?;
/// # Ok::<(), leasehold::Error>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct LockManager(Arc<Core>);

impl LockManager {
    /// A manager on a memory store of its own, with the defaults.
    #[must_use]
    pub fn in_memory() -> Self {
        Self::builder().in_memory()
    }

    /// A manager that takes this client of a store, with the defaults.
    pub fn new(backend: impl Backend) -> Self {
        Self::builder().backend(backend)
    }

    /// Sets namespace and defaults before the store.
    #[must_use]
    pub fn builder() -> ManagerBuilder {
        ManagerBuilder::default()
    }

    /// The mutex of this name.
    ///
    /// # Errors
    /// `InvalidArgument` for a bad name, `ShutDown`.
    pub fn mutex<N>(&self, name: N) -> Result<NamedMutex>
    where
        N: TryInto<LockName>,
        Error: From<N::Error>,
    {
        let claim = CapacityClaim::Exactly(Capacity::ONE);
        Ok(NamedMutex::new(Entry::open(&self.0, LockKind::Mutex, name.try_into()?, claim)?))
    }

    /// The semaphore of this name, with this many permits.
    ///
    /// # Errors
    /// `InvalidArgument` for a bad name or number of permits; `ConfigMismatch` when the lock is
    /// live in this manager with another number (a lock that is in use by another process says so
    /// at the acquisition, rule N2); `ShutDown`.
    pub fn semaphore<N>(&self, name: N, permits: u32) -> Result<NamedSemaphore>
    where
        N: TryInto<LockName>,
        Error: From<N::Error>,
    {
        let claim = CapacityClaim::Exactly(Capacity::new(permits)?);
        let name = name.try_into()?;
        Ok(NamedSemaphore::new(Entry::open(&self.0, LockKind::Semaphore, name, claim)?))
    }

    /// The read-write lock of this name, with as many readers as are registered for it, or 2^29.
    ///
    /// # Errors
    /// `InvalidArgument` for a bad name, `ShutDown`.
    pub fn rw_lock<N>(&self, name: N) -> Result<NamedRwLock>
    where
        N: TryInto<LockName>,
        Error: From<N::Error>,
    {
        let claim = CapacityClaim::Registered { otherwise: Capacity::new(defaults::MAX_READERS)? };
        Ok(NamedRwLock::new(Entry::open(&self.0, LockKind::RwLock, name.try_into()?, claim)?))
    }

    /// The read-write lock of this name, with at most this many readers at once.
    ///
    /// # Errors
    /// As [`semaphore`](Self::semaphore).
    pub fn rw_lock_with<N>(&self, name: N, max_readers: u32) -> Result<NamedRwLock>
    where
        N: TryInto<LockName>,
        Error: From<N::Error>,
    {
        let capacity = Capacity::new(max_readers).map_err(|_| {
            InvalidArgument::new(format!(
                "max readers must be greater than 0 and at most {}, not {max_readers}",
                defaults::PERMITS_MAX
            ))
        })?;
        let claim = CapacityClaim::Exactly(capacity);
        Ok(NamedRwLock::new(Entry::open(&self.0, LockKind::RwLock, name.try_into()?, claim)?))
    }

    /// The namespace.
    #[must_use]
    pub fn namespace(&self) -> &Namespace {
        &self.0.namespace
    }

    /// What kind of store this is: `memory`, `sqlite`.
    #[must_use]
    pub fn store(&self) -> &'static str {
        self.0.backend.store()
    }

    /// The locks of this namespace that exist in the store, from all processes, by name and kind.
    ///
    /// # Errors
    /// `Backend`, `ShutDown`.
    pub async fn survey(&self) -> Result<Vec<LockState>> {
        let answer = self.0.backend.survey(Some(&self.0.namespace)).await;
        answer.map_err(|fault| Error::from_fault(fault, Operation::Inspect))
    }

    /// Ends this manager: refuses new acquisitions, cancels its own waiters, completes `lost()` of
    /// its leases, gives its client-bound leases back and closes the store. It never touches what
    /// other processes or tokens hold. This is what a SIGTERM handler calls (rule N6).
    ///
    /// Await it, or add [`drain`](Shutdown::drain) first. Concurrent calls share one outcome,
    /// repeated calls do nothing, and after a failure it can be called again.
    #[must_use = "a shutdown does nothing unless awaited"]
    pub fn shutdown(&self) -> Shutdown {
        Shutdown::new(Arc::clone(&self.0))
    }
}

impl fmt::Debug for LockManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockManager")
            .field("store", &self.store())
            .field("namespace", self.namespace())
            .finish_non_exhaustive()
    }
}

/// Namespace and defaults of a [`LockManager`].
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it is given a store"]
pub struct ManagerBuilder {
    namespace: Namespace,
    info: HolderInfo,
    timeout: Option<Duration>,
    ttl: Option<Ttl>,
}

impl Default for ManagerBuilder {
    fn default() -> Self {
        Self {
            namespace: Namespace::default(),
            info: HolderInfo::here(),
            timeout: Some(defaults::TIMEOUT),
            ttl: Some(Ttl::DEFAULT),
        }
    }
}

impl ManagerBuilder {
    /// Keeps the locks apart from those of another application. Default: `default`.
    pub fn namespace(mut self, namespace: Namespace) -> Self {
        self.namespace = namespace;
        self
    }

    /// Who holds, for others to read. Default: this host and process, without a label.
    pub fn info(mut self, info: HolderInfo) -> Self {
        self.info = info;
        self
    }

    /// How long an acquisition waits unless its own `timeout` says otherwise; `None`: for ever.
    /// Default: 60 s.
    pub fn timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.timeout = timeout.into();
        self
    }

    /// How long a grant lives unless its own `ttl` says otherwise; it is renewed every third of
    /// that while it is held. `None`: no TTL. Default: 60 s.
    pub fn ttl(mut self, ttl: impl Into<Option<Ttl>>) -> Self {
        self.ttl = ttl.into();
        self
    }

    /// On a memory store of its own.
    #[must_use]
    pub fn in_memory(self) -> LockManager {
        self.backend(MemoryBackend::new())
    }

    /// On this client of a store.
    pub fn backend(self, backend: impl Backend) -> LockManager {
        self.build(Arc::new(backend))
    }

    /// On the store that a URL names; see [`connect`](crate::connect()).
    ///
    /// # Errors
    /// `InvalidArgument` for a URL that is none of those, `Backend` when the store cannot be opened.
    pub async fn connect(self, url: &str) -> Result<LockManager> {
        let backend = connect::open(url)?;
        Ok(self.build(backend))
    }

    fn build(self, backend: Arc<dyn Backend>) -> LockManager {
        let clock = Arc::clone(backend.clock());
        LockManager(Arc::new_cyclic(|core| Core {
            renewer: Renewer::new(core.clone()),
            backend,
            clock,
            namespace: self.namespace,
            info: Arc::new(self.info),
            timeout: self.timeout,
            ttl: self.ttl,
            entries: Default::default(),
            waits: Waits::default(),
            losses: Waits::default(),
            life: Life::default(),
        }))
    }
}
