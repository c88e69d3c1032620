//! How a [`KeyedLock`] is acquired.

use std::{
    hash::{BuildHasher, Hash},
    sync::Arc,
};

use super::{KeyedLock, acquire::AcquireKeyed, ask::Ask, guard::KeyedGuard, table::Wanted};

impl<K: Eq + Hash, S: BuildHasher> KeyedLock<K, S> {
    /// Waits for a read of that key: shared with other reads of it.
    ///
    /// # Fairness
    ///
    /// The requests of a key are granted in the order of arrival, neighbouring reads together. It
    /// waits for no other key, and for the whole set only behind an earlier write (rule K2).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future takes the request back, and lets in those behind it that it was in the
    /// way of.
    ///
    /// # Errors
    ///
    /// None; with a timeout or a cancellation, see [`AcquireKeyed`].
    ///
    /// # Examples
    ///
    /// ```
    /// # pollster::block_on(async {
    /// let keys = leasehold_sync::KeyedLock::new();
    /// let both = (keys.read(7).await, keys.read(7).await);
    /// assert_eq!(keys.len(), 1);
    /// # drop(both);
    /// # });
    /// ```
    #[inline]
    pub fn read(&self, key: K) -> AcquireKeyed<&Self> {
        AcquireKeyed::new(self, self.wanted(Ask::Read, key))
    }

    /// Waits for a write of that key: alone on it.
    ///
    /// # Fairness
    ///
    /// The requests of a key are granted in the order of arrival. It waits for no other key, and
    /// for the whole set only behind an earlier request for it (rule K2).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future takes the request back, and lets in those behind it that it was in the
    /// way of.
    ///
    /// # Errors
    ///
    /// None; with a timeout or a cancellation, see [`AcquireKeyed`].
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// # pollster::block_on(async {
    /// let keys = leasehold_sync::KeyedLock::new();
    /// let held = keys.write("order-7".to_owned()).await;
    /// let error = keys.write("order-7".to_owned()).timeout(Duration::ZERO).await.unwrap_err();
    /// assert_eq!(error.to_string(), "keyed lock (write): not free");
    /// # drop(held);
    /// # });
    /// ```
    #[inline]
    pub fn write(&self, key: K) -> AcquireKeyed<&Self> {
        AcquireKeyed::new(self, self.wanted(Ask::Write, key))
    }

    /// Waits for a read of the whole set: nobody writes any key.
    ///
    /// # Fairness
    ///
    /// From its arrival on, later writes of any key wait behind it; reads do not (rule K2).
    ///
    /// # Cancel safety
    ///
    /// As [`read`](Self::read).
    pub fn read_all(&self) -> AcquireKeyed<&Self> {
        AcquireKeyed::new(self, Wanted::whole(Ask::ReadAll))
    }

    /// Waits for a write of the whole set: nobody else holds anything.
    ///
    /// # Fairness
    ///
    /// From its arrival on, everything that comes later waits behind it (rule K2).
    ///
    /// # Cancel safety
    ///
    /// As [`write`](Self::write).
    pub fn write_all(&self) -> AcquireKeyed<&Self> {
        AcquireKeyed::new(self, Wanted::whole(Ask::WriteAll))
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
    #[inline]
    pub fn read_owned(self: Arc<Self>, key: K) -> AcquireKeyed<Arc<Self>> {
        let wanted = self.wanted(Ask::Read, key);
        AcquireKeyed::new(self, wanted)
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
    #[inline]
    pub fn write_owned(self: Arc<Self>, key: K) -> AcquireKeyed<Arc<Self>> {
        let wanted = self.wanted(Ask::Write, key);
        AcquireKeyed::new(self, wanted)
    }

    /// As [`read_all`](Self::read_all), with a guard that keeps the lock alive.
    ///
    /// # Fairness
    ///
    /// As [`read_all`](Self::read_all).
    ///
    /// # Cancel safety
    ///
    /// As [`read_all`](Self::read_all).
    pub fn read_all_owned(self: Arc<Self>) -> AcquireKeyed<Arc<Self>> {
        AcquireKeyed::new(self, Wanted::whole(Ask::ReadAll))
    }

    /// As [`write_all`](Self::write_all), with a guard that keeps the lock alive.
    ///
    /// # Fairness
    ///
    /// As [`write_all`](Self::write_all).
    ///
    /// # Cancel safety
    ///
    /// As [`write_all`](Self::write_all).
    pub fn write_all_owned(self: Arc<Self>) -> AcquireKeyed<Arc<Self>> {
        AcquireKeyed::new(self, Wanted::whole(Ask::WriteAll))
    }

    /// A read of that key, if nothing earlier is in its way. Never waits.
    ///
    /// # Fairness
    ///
    /// It never barges: `None` also behind a queued request that it conflicts with.
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
    /// let keys = leasehold_sync::KeyedLock::new();
    /// let guard = keys.try_read(7);
    /// assert!(guard.is_some() && keys.try_read(7).is_some());
    /// ```
    #[inline]
    pub fn try_read(&self, key: K) -> Option<KeyedGuard<&Self>> {
        self.read(key).try_now()
    }

    /// A write of that key, if nothing earlier is in its way. Never waits.
    ///
    /// # Fairness
    ///
    /// It never barges: `None` also behind a queued request that it conflicts with.
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
    /// let keys = leasehold_sync::KeyedLock::new();
    /// let guard = keys.try_write(7);
    /// assert!(guard.is_some() && keys.try_write(7).is_none() && keys.try_write(8).is_some());
    /// ```
    #[inline]
    pub fn try_write(&self, key: K) -> Option<KeyedGuard<&Self>> {
        self.write(key).try_now()
    }

    /// A read of the whole set, if nothing earlier is in its way. Never waits.
    ///
    /// # Fairness
    ///
    /// It never barges.
    pub fn try_read_all(&self) -> Option<KeyedGuard<&Self>> {
        self.read_all().try_now()
    }

    /// A write of the whole set, if nothing earlier is in its way. Never waits.
    ///
    /// # Fairness
    ///
    /// It never barges.
    pub fn try_write_all(&self) -> Option<KeyedGuard<&Self>> {
        self.write_all().try_now()
    }

    /// As [`try_read`](Self::try_read), with a guard that keeps the lock alive.
    ///
    /// # Fairness
    ///
    /// As [`try_read`](Self::try_read).
    #[inline]
    pub fn try_read_owned(self: Arc<Self>, key: K) -> Option<KeyedGuard<Arc<Self>>> {
        self.read_owned(key).try_now()
    }

    /// As [`try_write`](Self::try_write), with a guard that keeps the lock alive.
    ///
    /// # Fairness
    ///
    /// As [`try_write`](Self::try_write).
    #[inline]
    pub fn try_write_owned(self: Arc<Self>, key: K) -> Option<KeyedGuard<Arc<Self>>> {
        self.write_owned(key).try_now()
    }

    /// As [`try_read_all`](Self::try_read_all), with a guard that keeps the lock alive.
    ///
    /// # Fairness
    ///
    /// As [`try_read_all`](Self::try_read_all).
    pub fn try_read_all_owned(self: Arc<Self>) -> Option<KeyedGuard<Arc<Self>>> {
        self.read_all_owned().try_now()
    }

    /// As [`try_write_all`](Self::try_write_all), with a guard that keeps the lock alive.
    ///
    /// # Fairness
    ///
    /// As [`try_write_all`](Self::try_write_all).
    pub fn try_write_all_owned(self: Arc<Self>) -> Option<KeyedGuard<Arc<Self>>> {
        self.write_all_owned().try_now()
    }
}
