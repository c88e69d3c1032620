//! Up to n at a time, by name.

use std::sync::Arc;

use leasehold_core::{Result, Share, WatchFor};

use super::handle;
use crate::{Acquire, Lease, RunError, TryAcquire, entry::Entry, watch};

/// A semaphore by name: its permits are shared by all who use the name on this store. A cheap
/// clone.
#[derive(Clone)]
pub struct NamedSemaphore(pub(crate) Arc<Entry>);

handle!(NamedSemaphore);

impl NamedSemaphore {
    /// Waits in line for one permit, or for more with `weight`. Await it, or set options first.
    ///
    /// # Fairness
    /// Strictly first come, first served, whatever the weights: a heavy request at the head holds
    /// back lighter ones behind it, so it cannot starve (rule Q2).
    ///
    /// # Cancel safety
    /// Dropping the future takes the request back, wherever it is (rule W7).
    ///
    /// # Errors
    /// `Timeout` after 60 s unless told otherwise, `Cancelled`, `Destroyed`, `ConfigMismatch` when
    /// the lock is in use with another capacity, `QueueFull`, `TokenInUse`, `InvalidArgument`,
    /// `ShutDown`, `Backend`.
    ///
    /// # Examples
    /// ```
    /// # pollster::block_on(async {
    /// # let locks = leasehold::LockManager::in_memory();
    /// let exports = locks.semaphore("exports", 3)?;
    /// let slot = exports.acquire().await?;
    /// assert_eq!(exports.free_permits().await?, 2);
    /// slot.release().await?;
    /// # Ok::<(), leasehold::Error>(()) }).unwrap();
    /// ```
    pub fn acquire(&self) -> Acquire {
        Acquire::new(&self.0, Share::ONE)
    }

    /// Waits in line for this many permits, all or nothing.
    ///
    /// # Fairness
    /// As [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    /// As [`acquire`](Self::acquire).
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire).
    ///
    /// # Examples
    /// ```
    /// # pollster::block_on(async {
    /// # let locks = leasehold::LockManager::in_memory();
    /// let slots = locks.semaphore("exports", 3)?.acquire_many(2).await?;
    /// # drop(slots);
    /// # Ok::<(), leasehold::Error>(()) }).unwrap();
    /// ```
    pub fn acquire_many(&self, permits: u32) -> Acquire {
        self.acquire().weight(permits)
    }

    /// Takes a permit if one is free and nobody waits; `Ok(None)`: busy.
    ///
    /// # Fairness
    /// Never barges: with somebody queued it is busy (rule Q3).
    ///
    /// # Cancel safety
    /// As [`acquire`](Self::acquire).
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire), but for `Timeout` and `QueueFull`.
    ///
    /// # Examples
    /// ```
    /// # pollster::block_on(async {
    /// # let locks = leasehold::LockManager::in_memory();
    /// let exports = locks.semaphore("exports", 1)?;
    /// let slot = exports.try_acquire().await?.expect("free");
    /// assert!(exports.try_acquire().await?.is_none());
    /// # drop(slot);
    /// # Ok::<(), leasehold::Error>(()) }).unwrap();
    /// ```
    pub fn try_acquire(&self) -> TryAcquire {
        TryAcquire::new(&self.0, Share::ONE)
    }

    /// Takes one permit, runs `work` and releases. For options: `acquire().weight(…).run(…)`.
    ///
    /// # Fairness
    /// As [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    /// Dropping the future drops the work first, then gives the grant back (rule W7).
    ///
    /// # Errors
    /// [`RunError::Acquire`] as [`acquire`](Self::acquire); [`RunError::Lost`], with what the work
    /// gave, when the lease was lost while it ran.
    ///
    /// # Examples
    /// ```
    /// # pollster::block_on(async {
    /// # let locks = leasehold::LockManager::in_memory();
    /// let exports = locks.semaphore("exports", 3)?;
    /// let done = exports.run_exclusive(async |_slot| "done").await?;
    /// assert_eq!(done, "done");
    /// # Ok::<(), leasehold::Error>(()) }).unwrap();
    /// ```
    pub async fn run_exclusive<T>(
        &self,
        work: impl AsyncFnOnce(&Lease) -> T,
    ) -> Result<T, RunError<T>> {
        self.acquire().run(work).await
    }

    /// How many permits it has.
    #[must_use]
    pub fn capacity(&self) -> u32 {
        self.0.capacity().get()
    }

    /// How many permits are free.
    ///
    /// # Errors
    /// `Backend`, `ShutDown`.
    pub async fn free_permits(&self) -> Result<u32> {
        let used = self.0.counts().await?.map_or(0, |counts| counts.used);
        Ok(self.capacity().saturating_sub(used))
    }

    /// Whether no permit is free.
    ///
    /// # Errors
    /// `Backend`, `ShutDown`.
    pub async fn is_locked(&self) -> Result<bool> {
        Ok(self.free_permits().await? == 0)
    }

    /// Completes when a permit is free, at once or later, also by an expiry; a hand-off from one
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
    pub async fn wait_for_any_permit(&self) -> Result<()> {
        watch::until(&self.0, WatchFor::AnyPermit).await
    }

    /// Completes when all permits are free, at once or later, also by an expiry; a hand-off from one
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
    pub async fn wait_for_all_permits(&self) -> Result<()> {
        watch::until(&self.0, WatchFor::Unlocked).await
    }
}
