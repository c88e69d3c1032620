//! One at a time, by name.

use std::sync::Arc;

use leasehold_core::{Result, Share, WatchFor};

use super::handle;
use crate::{Acquire, Lease, RunError, TryAcquire, entry::Entry, watch};

/// A mutex by name: one holder at a time among all who use the name on this store. A cheap clone.
#[derive(Clone)]
pub struct NamedMutex(pub(crate) Arc<Entry>);

handle!(NamedMutex);

impl NamedMutex {
    /// Waits in line for the lock. Await it, or set options first.
    ///
    /// # Fairness
    /// Strictly first come, first served, across all processes (rules Q2, L4).
    ///
    /// # Cancel safety
    /// Dropping the future takes the request back, wherever it is (rule W7).
    ///
    /// # Errors
    /// `Timeout` after 60 s unless told otherwise, `Cancelled`, `Destroyed`, `QueueFull`,
    /// `TokenInUse`, `InvalidArgument`, `ShutDown`, `Backend`.
    ///
    /// # Examples
    /// ```
    /// # pollster::block_on(async {
    /// # let locks = leasehold::LockManager::in_memory();
    /// let lease = locks.mutex("orders")?.lock().await?;
    /// println!("fenced by {}", lease.fencing_token());
    /// lease.release().await?;
    /// # Ok::<(), leasehold::Error>(()) }).unwrap();
    /// ```
    pub fn lock(&self) -> Acquire {
        Acquire::new(&self.0, Share::ONE)
    }

    /// Takes the lock if it is free and nobody waits; `Ok(None)`: busy.
    ///
    /// # Fairness
    /// Never barges: with somebody queued it is busy (rule Q3).
    ///
    /// # Cancel safety
    /// As [`lock`](Self::lock).
    ///
    /// # Errors
    /// As [`lock`](Self::lock), but for `Timeout` and `QueueFull`.
    ///
    /// # Examples
    /// ```
    /// # pollster::block_on(async {
    /// # let locks = leasehold::LockManager::in_memory();
    /// let leader = locks.mutex("leader")?;
    /// let lease = leader.try_lock().await?.expect("free");
    /// assert!(leader.try_lock().await?.is_none());
    /// # drop(lease);
    /// # Ok::<(), leasehold::Error>(()) }).unwrap();
    /// ```
    pub fn try_lock(&self) -> TryAcquire {
        TryAcquire::new(&self.0, Share::ONE)
    }

    /// Locks, runs `work` and releases. For options: `lock().timeout(…).run(…)`.
    ///
    /// # Fairness
    /// As [`lock`](Self::lock).
    ///
    /// # Cancel safety
    /// Dropping the future drops the work first, then gives the grant back (rule W7).
    ///
    /// # Errors
    /// [`RunError::Acquire`] as [`lock`](Self::lock); [`RunError::Lost`], with what the work gave,
    /// when the lease was lost while it ran.
    ///
    /// # Examples
    /// ```
    /// # pollster::block_on(async {
    /// # let locks = leasehold::LockManager::in_memory();
    /// let orders = locks.mutex("orders")?;
    /// let sum = orders.run_exclusive(async |_lease| 1 + 1).await?;
    /// assert_eq!(sum, 2);
    /// # Ok::<(), leasehold::Error>(()) }).unwrap();
    /// ```
    #[track_caller]
    pub fn run_exclusive<T>(
        &self,
        work: impl AsyncFnOnce(&Lease) -> T,
    ) -> impl Future<Output = Result<T, RunError<T>>> {
        self.lock().run(work)
    }

    /// Whether anybody holds it.
    ///
    /// # Errors
    /// `Backend`, `ShutDown`.
    pub async fn is_locked(&self) -> Result<bool> {
        Ok(self.0.counts().await?.is_some_and(|counts| counts.used > 0))
    }

    /// Completes when nobody holds the lock, at once or later, also by an expiry; a hand-off from one
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
