//! Many readers or one writer, by name.

use std::sync::Arc;

use leasehold_core::{LockCounts, Result, Share, WatchFor};

use super::handle;
use crate::{Acquire, Lease, RunError, TryAcquire, entry::Entry, watch};

/// A read-write lock by name: readers together, a writer alone, in the order of their arrival. A
/// cheap clone.
#[derive(Clone)]
pub struct NamedRwLock(pub(crate) Arc<Entry>);

handle!(NamedRwLock);

impl NamedRwLock {
    /// Waits in line to read. Await it, or set options first.
    ///
    /// # Fairness
    /// First come, first served: readers that stand together enter together, and none overtakes a
    /// writer that came before it (rule Q2).
    ///
    /// # Cancel safety
    /// Dropping the future takes the request back, wherever it is (rule W7).
    ///
    /// # Errors
    /// `Timeout` after 60 s unless told otherwise, `Cancelled`, `Destroyed`, `ConfigMismatch` when
    /// the lock is in use with other max readers, `QueueFull`, `TokenInUse`, `InvalidArgument`,
    /// `ShutDown`, `Backend`.
    ///
    /// # Examples
    /// ```
    /// # pollster::block_on(async {
    /// # let locks = leasehold::LockManager::in_memory();
    /// let catalog = locks.rw_lock("catalog")?;
    /// let (one, two) = (catalog.read().await?, catalog.read().await?);
    /// assert_eq!(catalog.active_readers().await?, 2);
    /// # drop((one, two));
    /// # Ok::<(), leasehold::Error>(()) }).unwrap();
    /// ```
    pub fn read(&self) -> Acquire {
        Acquire::new(&self.0, Share::ONE)
    }

    /// Waits in line to write. Await it, or set options first.
    ///
    /// # Fairness
    /// First come, first served: it enters when everybody before it has left, and nobody who comes
    /// later enters before it (rule Q2).
    ///
    /// # Cancel safety
    /// As [`read`](Self::read). A queued writer that gives up lets the readers behind it in at
    /// once.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    ///
    /// # Examples
    /// ```
    /// # pollster::block_on(async {
    /// # let locks = leasehold::LockManager::in_memory();
    /// let catalog = locks.rw_lock("catalog")?;
    /// let lease = catalog.write().await?;
    /// assert!(catalog.try_read().await?.is_none());
    /// # drop(lease);
    /// # Ok::<(), leasehold::Error>(()) }).unwrap();
    /// ```
    pub fn write(&self) -> Acquire {
        Acquire::new(&self.0, Share::Whole)
    }

    /// Reads if that is possible at once; `Ok(None)`: busy.
    ///
    /// # Fairness
    /// Never barges: with somebody queued it is busy (rule Q3).
    ///
    /// # Cancel safety
    /// As [`read`](Self::read).
    ///
    /// # Errors
    /// As [`read`](Self::read), but for `Timeout` and `QueueFull`.
    ///
    /// # Examples
    /// ```
    /// # pollster::block_on(async {
    /// # let locks = leasehold::LockManager::in_memory();
    /// let lease = locks.rw_lock("catalog")?.try_read().await?.expect("free");
    /// # drop(lease);
    /// # Ok::<(), leasehold::Error>(()) }).unwrap();
    /// ```
    pub fn try_read(&self) -> TryAcquire {
        TryAcquire::new(&self.0, Share::ONE)
    }

    /// Writes if that is possible at once; `Ok(None)`: busy.
    ///
    /// # Fairness
    /// Never barges: with somebody queued it is busy (rule Q3).
    ///
    /// # Cancel safety
    /// As [`read`](Self::read).
    ///
    /// # Errors
    /// As [`read`](Self::read), but for `Timeout` and `QueueFull`.
    ///
    /// # Examples
    /// ```
    /// # pollster::block_on(async {
    /// # let locks = leasehold::LockManager::in_memory();
    /// let lease = locks.rw_lock("catalog")?.try_write().await?.expect("free");
    /// # drop(lease);
    /// # Ok::<(), leasehold::Error>(()) }).unwrap();
    /// ```
    pub fn try_write(&self) -> TryAcquire {
        TryAcquire::new(&self.0, Share::Whole)
    }

    /// Reads, runs `work` and releases. For options: `read().timeout(…).run(…)`.
    ///
    /// # Fairness
    /// As [`read`](Self::read).
    ///
    /// # Cancel safety
    /// Dropping the future drops the work first, then gives the grant back (rule W7).
    ///
    /// # Errors
    /// [`RunError::Acquire`] as [`read`](Self::read); [`RunError::Lost`], with what the work gave,
    /// when the lease was lost while it ran.
    ///
    /// # Examples
    /// ```
    /// # pollster::block_on(async {
    /// # let locks = leasehold::LockManager::in_memory();
    /// let catalog = locks.rw_lock("catalog")?;
    /// let found = catalog.run_shared(async |_lease| true).await?;
    /// # assert!(found);
    /// # Ok::<(), leasehold::Error>(()) }).unwrap();
    /// ```
    #[track_caller]
    pub fn run_shared<T>(
        &self,
        work: impl AsyncFnOnce(&Lease) -> T,
    ) -> impl Future<Output = Result<T, RunError<T>>> {
        self.read().run(work)
    }

    /// Writes, runs `work` and releases. For options: `write().timeout(…).run(…)`.
    ///
    /// # Fairness
    /// As [`write`](Self::write).
    ///
    /// # Cancel safety
    /// As [`run_shared`](Self::run_shared).
    ///
    /// # Errors
    /// As [`run_shared`](Self::run_shared).
    ///
    /// # Examples
    /// ```
    /// # pollster::block_on(async {
    /// # let locks = leasehold::LockManager::in_memory();
    /// let catalog = locks.rw_lock("catalog")?;
    /// catalog.run_exclusive(async |_lease| { /* write */ }).await?;
    /// # Ok::<(), leasehold::Error>(()) }).unwrap();
    /// ```
    #[track_caller]
    pub fn run_exclusive<T>(
        &self,
        work: impl AsyncFnOnce(&Lease) -> T,
    ) -> impl Future<Output = Result<T, RunError<T>>> {
        self.write().run(work)
    }

    /// Whether anybody reads.
    ///
    /// # Errors
    /// `Backend`, `ShutDown`.
    pub async fn is_read_locked(&self) -> Result<bool> {
        Ok(self.active_readers().await? > 0)
    }

    /// Whether somebody writes.
    ///
    /// # Errors
    /// `Backend`, `ShutDown`.
    pub async fn is_write_locked(&self) -> Result<bool> {
        Ok(self.0.counts().await?.is_some_and(|counts| counts.whole))
    }

    /// How many read now.
    ///
    /// # Errors
    /// `Backend`, `ShutDown`.
    pub async fn active_readers(&self) -> Result<u32> {
        Ok(match self.0.counts().await? {
            Some(LockCounts { whole: false, used, .. }) => used,
            _ => 0,
        })
    }

    /// How many may read at once: what is in effect while the lock is in use, else what this handle
    /// would register.
    ///
    /// # Errors
    /// `Backend`, `ShutDown`.
    pub async fn max_readers(&self) -> Result<u32> {
        let counts = self.0.counts().await?;
        Ok(counts.map_or_else(|| self.0.capacity(), |counts| counts.capacity).get())
    }

    /// Completes when a read would be granted, at once or later, also by an expiry; a hand-off from one
    /// holder to the next is no unlock. Acquires nothing (rules U1, U2).
    ///
    /// # Fairness
    /// All who watch are told together; nobody is kept from a lock by them.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing.
    ///
    /// # Errors
    /// `Destroyed` on a lock that was destroyed before, `ShutDown`, `Backend`.
    pub async fn wait_for_readable(&self) -> Result<()> {
        watch::until(&self.0, WatchFor::Readable).await
    }

    /// Completes when nobody reads or writes, at once or later, also by an expiry; a hand-off from one
    /// holder to the next is no unlock. Acquires nothing (rules U1, U2).
    ///
    /// # Fairness
    /// All who watch are told together; nobody is kept from a lock by them.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing.
    ///
    /// # Errors
    /// `Destroyed` on a lock that was destroyed before, `ShutDown`, `Backend`.
    pub async fn wait_for_unlock(&self) -> Result<()> {
        watch::until(&self.0, WatchFor::Unlocked).await
    }
}
