//! How an [`RwLock`] is acquired.

use std::sync::Arc;

use super::{
    OwnedRwLockReadGuard, OwnedRwLockUpgradableGuard, OwnedRwLockWriteGuard, RwLock,
    RwLockReadGuard, RwLockUpgradableGuard, RwLockWriteGuard,
};
#[cfg(not(leasehold_loom))]
use crate::error::Error;
use crate::{
    acquire::Acquire,
    hold::{Shared, Upgradable, Whole},
};

impl<T: ?Sized> RwLock<T> {
    /// Waits for a read: shared with other readers, up to the largest number of them.
    ///
    /// # Fairness
    ///
    /// Strict FIFO: a read never overtakes a queued write, and a run of reads enters together
    /// (rule Q2).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future takes the request back, and lets in those behind it that fit.
    ///
    /// # Errors
    ///
    /// None; with a timeout or a cancellation, see [`Acquire`].
    ///
    /// # Examples
    ///
    /// ```
    /// # pollster::block_on(async {
    /// let lock = leasehold_sync::RwLock::new(5);
    /// let (one, two) = (lock.read().await, lock.read().await);
    /// assert_eq!(*one + *two, 10);
    /// # });
    /// ```
    #[inline]
    pub fn read(&self) -> Acquire<RwLockReadGuard<'_, T>> {
        Acquire::new(self, Shared)
    }

    /// As [`read`](Self::read), with a guard that keeps the lock alive.
    ///
    /// # Fairness
    ///
    /// As [`read`](Self::read).
    ///
    /// # Cancel safety
    ///
    /// As [`read`](Self::read).
    ///
    /// # Errors
    ///
    /// None; with a timeout or a cancellation, see [`Acquire`].
    ///
    /// # Examples
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use std::sync::Arc;
    ///
    /// use leasehold_sync::RwLock;
    ///
    /// let lock = Arc::new(RwLock::new(5));
    /// let guard = Arc::clone(&lock).read_owned().await;
    /// assert_eq!(*guard, 5);
    /// # });
    /// ```
    #[inline]
    pub fn read_owned(self: Arc<Self>) -> Acquire<OwnedRwLockReadGuard<T>> {
        Acquire::new(self, Shared)
    }

    /// Blocks this thread until it has a read. Not for async code, where it would hold up
    /// others.
    ///
    /// # Fairness
    ///
    /// As [`read`](Self::read): threads and tasks wait in one queue.
    ///
    /// # Cancel safety
    ///
    /// Nothing can be dropped here; for a timeout, use `read().timeout(…).blocking()`.
    ///
    /// # Errors
    ///
    /// None.
    ///
    /// # Examples
    ///
    /// ```
    /// let lock = leasehold_sync::RwLock::new(5);
    /// assert_eq!(*lock.blocking_read(), 5);
    /// ```
    #[inline]
    pub fn blocking_read(&self) -> RwLockReadGuard<'_, T> {
        self.read().blocking()
    }

    /// A read, if it would be granted at once. Never waits.
    ///
    /// # Fairness
    ///
    /// It never barges: `None` also while others are queued (rule Q3).
    ///
    /// # Cancel safety
    ///
    /// Nothing to cancel: it does not wait.
    ///
    /// # Errors
    ///
    /// None: busy is `None`.
    ///
    /// # Examples
    ///
    /// ```
    /// let lock = leasehold_sync::RwLock::new(5);
    /// let guard = lock.try_read();
    /// assert!(guard.is_some() && lock.try_write().is_none());
    /// ```
    #[inline]
    pub fn try_read(&self) -> Option<RwLockReadGuard<'_, T>> {
        self.read().try_now()
    }

    /// As [`try_read`](Self::try_read), with a guard that keeps the lock alive.
    ///
    /// # Fairness
    ///
    /// As [`try_read`](Self::try_read).
    #[inline]
    pub fn try_read_owned(self: Arc<Self>) -> Option<OwnedRwLockReadGuard<T>> {
        self.read_owned().try_now()
    }

    /// Reads, runs `work` with the data in a frame of its own, and releases. For options:
    /// `read().timeout(…).run(…)`.
    ///
    /// The request is *checked*, and so are those that `work` makes by `run_exclusive` and
    /// `run_shared`: one that could only wait for itself, or that closes a cycle of such requests,
    /// is told so at once instead (rules R2 and R4). A read within a read
    /// shares the outer one's grant, which is released with the last of them; so a queued writer
    /// cannot make it wait for itself.
    ///
    /// Where the future has to be `Send`, the data should hold no borrow itself; see
    /// [`Mutex::run_exclusive`](crate::Mutex::run_exclusive).
    ///
    /// # Fairness
    ///
    /// As [`read`](Self::read).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the work first, then gives the grant back (rule W7).
    ///
    /// # Errors
    ///
    /// `Reentrant`: an enclosing frame holds the lock for writing. `Deadlock`: everybody in a
    /// cycle would wait for another for ever, unless one gives up.
    ///
    /// # Examples
    ///
    /// ```
    /// # pollster::block_on(async {
    /// let lock = leasehold_sync::RwLock::new(5);
    /// let sum = lock.run_shared(async |n| Ok(*n + lock.run_shared(async |n| *n).await?)).await?;
    /// assert_eq!(sum, Ok::<_, leasehold_sync::Error>(10));
    /// # Ok::<(), leasehold_sync::Error>(()) }).unwrap();
    /// ```
    #[cfg(not(leasehold_loom))]
    #[track_caller]
    #[inline]
    pub fn run_shared<R>(
        &self,
        work: impl AsyncFnOnce(&T) -> R,
    ) -> impl Future<Output = Result<R, Error>> {
        self.read().run(work)
    }

    /// Waits for the write: nobody else is in.
    ///
    /// # Fairness
    ///
    /// Strict FIFO: it waits for those before it, and everybody behind waits for it (rule Q2).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future takes the request back, and lets in those behind it that fit.
    ///
    /// # Errors
    ///
    /// None; with a timeout or a cancellation, see [`Acquire`].
    ///
    /// # Examples
    ///
    /// ```
    /// # pollster::block_on(async {
    /// let lock = leasehold_sync::RwLock::new(5);
    /// *lock.write().await += 1;
    /// assert_eq!(lock.into_inner(), 6);
    /// # });
    /// ```
    #[inline]
    pub fn write(&self) -> Acquire<RwLockWriteGuard<'_, T>> {
        Acquire::new(self, Whole)
    }

    /// As [`write`](Self::write), with a guard that keeps the lock alive.
    ///
    /// # Fairness
    ///
    /// As [`write`](Self::write).
    ///
    /// # Cancel safety
    ///
    /// As [`write`](Self::write).
    ///
    /// # Errors
    ///
    /// None; with a timeout or a cancellation, see [`Acquire`].
    ///
    /// # Examples
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use std::sync::Arc;
    ///
    /// use leasehold_sync::RwLock;
    ///
    /// let lock = Arc::new(RwLock::new(5));
    /// let guard = Arc::clone(&lock).write_owned().await;
    /// assert_eq!(*guard, 5);
    /// # });
    /// ```
    #[inline]
    pub fn write_owned(self: Arc<Self>) -> Acquire<OwnedRwLockWriteGuard<T>> {
        Acquire::new(self, Whole)
    }

    /// Blocks this thread until it has a write. Not for async code, where it would hold up
    /// others.
    ///
    /// # Fairness
    ///
    /// As [`write`](Self::write): threads and tasks wait in one queue.
    ///
    /// # Cancel safety
    ///
    /// Nothing can be dropped here; for a timeout, use `write().timeout(…).blocking()`.
    ///
    /// # Errors
    ///
    /// None.
    ///
    /// # Examples
    ///
    /// ```
    /// let lock = leasehold_sync::RwLock::new(5);
    /// assert_eq!(*lock.blocking_write(), 5);
    /// ```
    #[inline]
    pub fn blocking_write(&self) -> RwLockWriteGuard<'_, T> {
        self.write().blocking()
    }

    /// The write, if it would be granted at once. Never waits.
    ///
    /// # Fairness
    ///
    /// It never barges: `None` also while others are queued (rule Q3).
    ///
    /// # Cancel safety
    ///
    /// Nothing to cancel: it does not wait.
    ///
    /// # Errors
    ///
    /// None: busy is `None`.
    ///
    /// # Examples
    ///
    /// ```
    /// let lock = leasehold_sync::RwLock::new(5);
    /// let guard = lock.try_write();
    /// assert!(guard.is_some() && lock.try_read().is_none());
    /// ```
    #[inline]
    pub fn try_write(&self) -> Option<RwLockWriteGuard<'_, T>> {
        self.write().try_now()
    }

    /// As [`try_write`](Self::try_write), with a guard that keeps the lock alive.
    ///
    /// # Fairness
    ///
    /// As [`try_write`](Self::try_write).
    #[inline]
    pub fn try_write_owned(self: Arc<Self>) -> Option<OwnedRwLockWriteGuard<T>> {
        self.write_owned().try_now()
    }

    /// Writes, runs `work` with the data in a frame of its own, and releases. For options:
    /// `write().timeout(…).run(…)`.
    ///
    /// The request is *checked*, and so are those that `work` makes by `run_exclusive` and
    /// `run_shared`: one that could only wait for itself, or that closes a cycle of such requests,
    /// is told so at once instead (rules R2 and R4).
    ///
    /// Where the future has to be `Send`, the data should hold no borrow itself; see
    /// [`Mutex::run_exclusive`](crate::Mutex::run_exclusive).
    ///
    /// # Fairness
    ///
    /// As [`write`](Self::write).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the work first, then gives the grant back (rule W7).
    ///
    /// # Errors
    ///
    /// `Reentrant`: an enclosing frame holds the lock, be it for reading. `Deadlock`: everybody in a
    /// cycle would wait for another for ever, unless one gives up.
    ///
    /// # Examples
    ///
    /// ```
    /// # pollster::block_on(async {
    /// let lock = leasehold_sync::RwLock::new(5);
    /// lock.run_exclusive(async |n| *n += 1).await?;
    /// assert_eq!(lock.into_inner(), 6);
    /// # Ok::<(), leasehold_sync::Error>(()) }).unwrap();
    /// ```
    #[cfg(not(leasehold_loom))]
    #[track_caller]
    #[inline]
    pub fn run_exclusive<R>(
        &self,
        work: impl AsyncFnOnce(&mut T) -> R,
    ) -> impl Future<Output = Result<R, Error>> {
        self.write().run(work)
    }

    /// Waits for a read that may become the write. There is at most one such reader at a time; plain
    /// readers share with it.
    ///
    /// # Fairness
    ///
    /// Strict FIFO, as any read. At the head it waits also for the one upgradable reader before it
    /// (rule Q7).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future takes the request back, and lets in those behind it that fit.
    ///
    /// # Errors
    ///
    /// None; with a timeout or a cancellation, see [`Acquire`].
    ///
    /// # Examples
    ///
    /// ```
    /// # pollster::block_on(async {
    /// let lock = leasehold_sync::RwLock::new(5);
    /// let guard = lock.upgradable_read().await;
    /// assert_eq!((*guard, *lock.read().await), (5, 5));
    /// *guard.upgrade().await += 1; // nobody wrote in between
    /// assert_eq!(lock.into_inner(), 6);
    /// # });
    /// ```
    #[inline]
    pub fn upgradable_read(&self) -> Acquire<RwLockUpgradableGuard<'_, T>> {
        Acquire::new(self, Upgradable)
    }

    /// As [`upgradable_read`](Self::upgradable_read), with a guard that keeps the lock alive.
    ///
    /// # Fairness
    ///
    /// As [`upgradable_read`](Self::upgradable_read).
    ///
    /// # Cancel safety
    ///
    /// As [`upgradable_read`](Self::upgradable_read).
    ///
    /// # Errors
    ///
    /// None; with a timeout or a cancellation, see [`Acquire`].
    ///
    /// # Examples
    ///
    /// ```
    /// # pollster::block_on(async {
    /// use std::sync::Arc;
    ///
    /// use leasehold_sync::RwLock;
    ///
    /// let lock = Arc::new(RwLock::new(5));
    /// let guard = Arc::clone(&lock).upgradable_read_owned().await;
    /// assert_eq!(*guard, 5);
    /// # });
    /// ```
    #[inline]
    pub fn upgradable_read_owned(self: Arc<Self>) -> Acquire<OwnedRwLockUpgradableGuard<T>> {
        Acquire::new(self, Upgradable)
    }

    /// Blocks this thread until it has an upgradable read. Not for async code, where it would hold up
    /// others.
    ///
    /// # Fairness
    ///
    /// As [`upgradable_read`](Self::upgradable_read): threads and tasks wait in one queue.
    ///
    /// # Cancel safety
    ///
    /// Nothing can be dropped here; for a timeout, use `upgradable_read().timeout(…).blocking()`.
    ///
    /// # Errors
    ///
    /// None.
    ///
    /// # Examples
    ///
    /// ```
    /// let lock = leasehold_sync::RwLock::new(5);
    /// assert_eq!(*lock.blocking_upgradable_read(), 5);
    /// ```
    #[inline]
    pub fn blocking_upgradable_read(&self) -> RwLockUpgradableGuard<'_, T> {
        self.upgradable_read().blocking()
    }

    /// An upgradable read, if it would be granted at once. Never waits.
    ///
    /// # Fairness
    ///
    /// It never barges: `None` also while others are queued (rule Q3).
    ///
    /// # Cancel safety
    ///
    /// Nothing to cancel: it does not wait.
    ///
    /// # Errors
    ///
    /// None: busy is `None`.
    ///
    /// # Examples
    ///
    /// ```
    /// let lock = leasehold_sync::RwLock::new(5);
    /// let guard = lock.try_upgradable_read();
    /// assert!(guard.is_some() && lock.try_upgradable_read().is_none());
    /// assert!(lock.try_read().is_some());
    /// ```
    #[inline]
    pub fn try_upgradable_read(&self) -> Option<RwLockUpgradableGuard<'_, T>> {
        self.upgradable_read().try_now()
    }

    /// As [`try_upgradable_read`](Self::try_upgradable_read), with a guard that keeps the lock alive.
    ///
    /// # Fairness
    ///
    /// As [`try_upgradable_read`](Self::try_upgradable_read).
    #[inline]
    pub fn try_upgradable_read_owned(self: Arc<Self>) -> Option<OwnedRwLockUpgradableGuard<T>> {
        self.upgradable_read_owned().try_now()
    }
}
