//! The owner of the named locks of one process on one store, in one namespace.

use std::{fmt, sync::Arc, time::Duration};

use leasehold_core::{
    Backend, Capacity, CapacityClaim, Error, ErrorKind, HolderInfo, InvalidArgument, LockId,
    LockKind, LockName, LockState, MemoryBackend, Namespace, Operation, Result, Ticket, Ttl,
    defaults,
};

use crate::{
    acquire_all::AcquireAll,
    connect,
    core::{Core, Life, Waits},
    entry::Entry,
    hand_over::LeaseRef,
    life_cycle::{LockInfo, LockSnapshot},
    named::{NamedMutex, NamedRwLock, NamedSemaphore},
    options::Acquire,
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
        let name = name.try_into()?;
        let capacity = Capacity::new(permits);
        let claim = CapacityClaim::Exactly(self.checked(LockKind::Semaphore, &name, capacity)?);
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
        let name = name.try_into()?;
        let capacity = Capacity::new(max_readers).map_err(|_| {
            InvalidArgument::new(format!(
                "max readers must be greater than 0 and at most {}, not {max_readers}",
                defaults::PERMITS_MAX
            ))
        });
        let claim = CapacityClaim::Exactly(self.checked(LockKind::RwLock, &name, capacity)?);
        Ok(NamedRwLock::new(Entry::open(&self.0, LockKind::RwLock, name, claim)?))
    }

    /// The grant of a ticket, without asking the store (rule T9).
    ///
    /// # Errors
    /// `InvalidArgument` for a text that is no ticket.
    pub fn restore<T>(&self, ticket: T) -> Result<LeaseRef>
    where
        T: TryInto<Ticket>,
        Error: From<T::Error>,
    {
        let ticket: Ticket = ticket.try_into()?;
        let (lock, token) = (Arc::new(ticket.lock().clone()), ticket.token().clone());
        Ok(LeaseRef::new(Arc::clone(&self.0), lock, token))
    }

    /// Waits for several locks, all or none: they are acquired in one order for everybody, within
    /// one deadline, and when one of them is not granted those before it are given back. A lock
    /// that is named twice is acquired once: a write covers a read, permits are added up, and what
    /// else was said counts for the first.
    ///
    /// # Fairness
    /// In line at each lock, one lock after the other.
    ///
    /// # Cancel safety
    /// Dropping the future gives everything back.
    ///
    /// # Errors
    /// The first failure, as the acquisition of that lock.
    ///
    /// # Examples
    /// ```
    /// # pollster::block_on(async {
    /// # let locks = leasehold::LockManager::in_memory();
    /// let (from, to) = (locks.mutex("account 7")?, locks.mutex("account 3")?);
    /// let leases = locks.acquire_all([from.lock(), to.lock()]).await?;
    /// assert_eq!(leases.len(), 2);
    /// # Ok::<(), leasehold::Error>(()) }).unwrap();
    /// ```
    pub fn acquire_all(&self, requests: impl IntoIterator<Item = Acquire>) -> AcquireAll {
        AcquireAll::new(Arc::clone(&self.0), requests)
    }

    /// Whether this manager has a live mutex of this name.
    #[must_use]
    pub fn has_mutex(&self, name: &str) -> bool {
        self.has(LockKind::Mutex, name)
    }

    /// Whether this manager has a live semaphore of this name.
    #[must_use]
    pub fn has_semaphore(&self, name: &str) -> bool {
        self.has(LockKind::Semaphore, name)
    }

    /// Whether this manager has a live read-write lock of this name.
    #[must_use]
    pub fn has_rw_lock(&self, name: &str) -> bool {
        self.has(LockKind::RwLock, name)
    }

    fn has(&self, kind: LockKind, name: &str) -> bool {
        self.0.live().iter().any(|entry| {
            let id = &entry.id;
            id.kind() == kind && id.name().as_str() == name && *id.namespace() == self.0.namespace
        })
    }

    /// An argument error names the lock (rule E2).
    fn checked(
        &self,
        kind: LockKind,
        name: &LockName,
        capacity: Result<Capacity, InvalidArgument>,
    ) -> Result<Capacity> {
        capacity.map_err(|invalid| {
            let lock = LockId::new(self.0.namespace.clone(), kind, name.clone());
            Error::from(invalid).on(&lock)
        })
    }

    /// The live locks of this manager, by kind and name. A lock lives while a handle, a lease, a
    /// watcher or a waiter of it does (rule N1).
    #[must_use]
    pub fn list(&self) -> Vec<LockInfo> {
        self.0.live().iter().map(|entry| entry.info()).collect()
    }

    /// How many live locks this manager has, of one kind or of all.
    #[must_use]
    pub fn count(&self, kind: impl Into<Option<LockKind>>) -> usize {
        let kind = kind.into();
        let live = self.0.live();
        live.iter().filter(|entry| kind.is_none_or(|kind| entry.id.kind() == kind)).count()
    }

    /// The live locks of this manager with their holders and waiters; each lock is read in one
    /// step.
    ///
    /// # Errors
    /// `Backend`, `ShutDown`.
    pub async fn snapshot(&self) -> Result<Vec<LockSnapshot>> {
        let mut snapshots = Vec::new();
        for entry in self.0.live() {
            match entry.inspect().await {
                Ok(state) => snapshots.push(LockSnapshot { info: entry.info(), state }),
                // Destroyed since it was listed.
                Err(error) if *error.kind() == ErrorKind::Destroyed => {}
                Err(error) => return Err(error),
            }
        }
        Ok(snapshots)
    }

    /// Rejects this manager's own waiters, of all its locks, with `Cancelled { reason }`, and says
    /// how many. Waiters of other managers stay (rule W5).
    #[allow(clippy::must_use_candidate, reason = "the count is for those who want it")]
    pub fn cancel_all(&self, reason: &str) -> usize {
        self.0.waits.end_all(&ErrorKind::Cancelled { reason: reason.into() })
    }

    /// Destroys every live lock of this manager, for everybody (rule N6).
    ///
    /// # Errors
    /// All are tried; the error lists each that failed (rule E3).
    pub async fn destroy_all(&self, reason: &str) -> Result<()> {
        self.0.destroy_all(reason).await
    }

    /// The namespace.
    #[must_use]
    pub fn namespace(&self) -> &Namespace {
        &self.0.namespace
    }

    /// What kind of store this is: `memory`, `sqlite`, `redis`.
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

    /// On this client of a store, which others in this process may use as well. The end of the
    /// manager closes it for all of them.
    pub fn shared(self, backend: Arc<dyn Backend>) -> LockManager {
        self.build(backend)
    }

    /// On the store that a URL names; see [`connect`](crate::connect()).
    ///
    /// # Errors
    /// `InvalidArgument` for a URL that is none of those, `Backend` when the store cannot be opened.
    pub async fn connect(self, url: &str) -> Result<LockManager> {
        let backend = connect::open(url).await?;
        Ok(self.build(backend))
    }

    fn build(self, backend: Arc<dyn Backend>) -> LockManager {
        let clock = Arc::clone(backend.clock());
        LockManager(Arc::new_cyclic(|core| Core {
            renewer: Renewer::new(core.clone()),
            inline: backend.capabilities().inline,
            backend,
            clock,
            namespace: self.namespace,
            info: Arc::new(self.info),
            timeout: self.timeout,
            ttl: self.ttl,
            entries: Default::default(),
            waits: Waits::default(),
            ends: Waits::default(),
            life: Life::default(),
        }))
    }
}
