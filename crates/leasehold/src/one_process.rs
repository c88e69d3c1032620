//! Lease locks of one process: no name, no store to open, answered inline.

use std::{ops::Deref, sync::Arc};

use leasehold_core::{Clock, MemoryStore, Result, SystemClock};

use crate::{LockManager, NamedMutex, NamedRwLock, NamedSemaphore};

/// What messages call a lock that was given no name.
const UNNAMED: &str = "unnamed";

macro_rules! lease_lock {
    (
        $(#[$doc:meta])*
        $lock:ident, $named:ident
    ) => {
        $(#[$doc])*
        ///
        /// It has the methods of the lock by name, from `lock` to `destroy`, and takes no store: it
        /// lives in this process and is gone with its last clone, its grants have no TTL unless they
        /// are given one, and it needs no particular runtime, nor any. The clock that decides its
        /// TTLs and timeouts is fixed when it is built (rule W8).
        #[derive(Clone, Debug)]
        pub struct $lock($named);

        impl Deref for $lock {
            type Target = $named;

            fn deref(&self) -> &$named {
                &self.0
            }
        }
    };
}

lease_lock!(
    /// A mutex of this process whose grants are leases.
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use std::time::Duration;
    /// use leasehold::LeaseMutex;
    ///
    /// let orders = LeaseMutex::new();
    /// let lease = orders.lock().ttl(Duration::from_secs(5)).await?;
    /// assert!(orders.try_lock().await?.is_none());
    /// lease.release().await?;
    /// # Ok::<(), leasehold::Error>(()) }).unwrap();
    /// ```
    LeaseMutex,
    NamedMutex
);
lease_lock!(
    /// A semaphore of this process whose grants are leases.
    ///
    /// ```
    /// # pollster::block_on(async {
    /// let exports = leasehold::LeaseSemaphore::new(3)?;
    /// let slots = exports.acquire_many(2).await?;
    /// assert_eq!(exports.free_permits().await?, 1);
    /// # drop(slots);
    /// # Ok::<(), leasehold::Error>(()) }).unwrap();
    /// ```
    LeaseSemaphore,
    NamedSemaphore
);
lease_lock!(
    /// A read-write lock of this process whose grants are leases.
    ///
    /// ```
    /// # pollster::block_on(async {
    /// let catalog = leasehold::LeaseRwLock::new();
    /// let reading = catalog.read().await?;
    /// assert!(catalog.try_write().await?.is_none());
    /// # drop(reading);
    /// # Ok::<(), leasehold::Error>(()) }).unwrap();
    /// ```
    LeaseRwLock,
    NamedRwLock
);

impl LeaseMutex {
    /// A free mutex on the machine's clock.
    #[must_use]
    pub fn new() -> Self {
        Self::with_clock(Arc::new(SystemClock::new()))
    }

    /// A free mutex on this clock.
    ///
    /// # Panics
    /// Never: the name it gives itself is a good one.
    #[must_use]
    pub fn with_clock(clock: Arc<dyn Clock>) -> Self {
        Self(of_its_own(clock).mutex(UNNAMED).expect("a good name"))
    }
}

impl Default for LeaseMutex {
    fn default() -> Self {
        Self::new()
    }
}

impl LeaseSemaphore {
    /// A semaphore with this many permits, all free, on the machine's clock.
    ///
    /// # Errors
    /// `InvalidArgument` unless 1 ..= 2^31−1.
    pub fn new(permits: u32) -> Result<Self> {
        Self::with_clock(permits, Arc::new(SystemClock::new()))
    }

    /// A semaphore with this many permits, all free, on this clock.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_clock(permits: u32, clock: Arc<dyn Clock>) -> Result<Self> {
        Ok(Self(of_its_own(clock).semaphore(UNNAMED, permits)?))
    }
}

impl LeaseRwLock {
    /// A free read-write lock for up to 2^29 readers, on the machine's clock.
    #[must_use]
    pub fn new() -> Self {
        Self::with_clock(Arc::new(SystemClock::new()))
    }

    /// A free read-write lock for up to 2^29 readers, on this clock.
    ///
    /// # Panics
    /// Never: the name it gives itself is a good one.
    #[must_use]
    pub fn with_clock(clock: Arc<dyn Clock>) -> Self {
        Self(of_its_own(clock).rw_lock(UNNAMED).expect("a good name"))
    }

    /// A free read-write lock for at most this many readers at once, on the machine's clock.
    ///
    /// # Errors
    /// `InvalidArgument` unless 1 ..= 2^31−1.
    pub fn with_max_readers(max_readers: u32) -> Result<Self> {
        let clock = Arc::new(SystemClock::new());
        Ok(Self(of_its_own(clock).rw_lock_with(UNNAMED, max_readers)?))
    }
}

impl Default for LeaseRwLock {
    fn default() -> Self {
        Self::new()
    }
}

/// A store for one lock, whose grants have no TTL unless they are given one (rule T1).
fn of_its_own(clock: Arc<dyn Clock>) -> LockManager {
    LockManager::builder().ttl(None).backend(MemoryStore::small(clock).client())
}
