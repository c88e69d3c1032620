//! [`RwLock`]: many readers or one writer.

mod acquiring;
mod read;
mod upgradable;
mod write;

#[cfg(not(leasehold_loom))]
use std::sync::atomic::{AtomicU64, Ordering};
use std::{cell::UnsafeCell, fmt, ptr::NonNull};

use crate::{
    error::CapacityError,
    hold::Source,
    raw::{CAPACITY_MAX, READERS_USUAL, Raw, WatchFor, sys::const_fn},
    watch::Watch,
};

pub use self::{
    read::{OwnedRwLockReadGuard, RwLockReadGuard},
    upgradable::{OwnedRwLockUpgradableGuard, RwLockUpgradableGuard, Upgrade},
    write::{
        MappedRwLockWriteGuard, OwnedMappedRwLockWriteGuard, OwnedRwLockWriteGuard,
        RwLockWriteGuard,
    },
};

/// A fair read-write lock for tasks and threads.
///
/// Readers and writers wait in one queue: a read never overtakes a queued write, so neither side
/// starves. Therefore a task that reads and asks for a second read may wait for a writer that
/// waits for it; `run_shared` and `run_exclusive` know better.
///
/// # Examples
///
/// ```
/// use leasehold_sync::RwLock;
///
/// # pollster::block_on(async {
/// let prices = RwLock::new(vec![3, 5]);
/// assert_eq!(prices.read().await.len(), 2);
/// prices.write().await.push(8);
///
/// let mut writer = prices.write().await;
/// writer.push(13);
/// let reader = writer.downgrade(); // nobody writes in between
/// assert_eq!(reader.len(), 4);
/// # });
/// ```
pub struct RwLock<T: ?Sized> {
    raw: Raw,
    /// What the frames know it by; 0 until they have to. Not its address: they share the reads of
    /// it, and a read that was forgotten must not be shared by a later lock in the same place.
    #[cfg(not(leasehold_loom))]
    domain: AtomicU64,
    data: UnsafeCell<T>,
}

impl<T> RwLock<T> {
    const_fn! {
        /// A free lock for up to 2^29 readers.
        pub const fn new(value: T) -> Self {
            Self::with_raw(Raw::new(READERS_USUAL), value)
        }
    }

    /// A free lock that admits that many readers at once: 1 ..= 2^31 − 1.
    ///
    /// # Errors
    ///
    /// No readers, or too many, are refused (rule Q5).
    pub fn with_max_readers(value: T, max_readers: u32) -> Result<Self, CapacityError> {
        match max_readers {
            0 => Err(CapacityError::NoReaders),
            1..=CAPACITY_MAX => Ok(Self::with_raw(Raw::new(max_readers), value)),
            _ => Err(CapacityError::AboveMax { capacity: max_readers }),
        }
    }

    const_fn! {
        const fn with_raw(raw: Raw, value: T) -> Self {
            Self {
                raw,
                #[cfg(not(leasehold_loom))]
                domain: AtomicU64::new(0),
                data: UnsafeCell::new(value),
            }
        }
    }

    /// The data.
    pub fn into_inner(self) -> T {
        self.data.into_inner()
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Waits until a read would be granted, without acquiring it (rule U1).
    ///
    /// # Fairness
    ///
    /// All who watch are told together; they keep nobody from the lock.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    pub fn wait_for_readable(&self) -> Watch<'_> {
        Watch::new(&self.raw, WatchFor::Readable)
    }

    /// Waits until nobody reads or writes, without acquiring it (rule U1).
    ///
    /// # Fairness
    ///
    /// All who watch are told together; they keep nobody from the lock.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    pub fn wait_for_unlock(&self) -> Watch<'_> {
        Watch::new(&self.raw, WatchFor::All)
    }

    /// How many readers it admits at once.
    pub fn max_readers(&self) -> u32 {
        self.raw.capacity()
    }

    /// How many read at this moment, the upgradable reader included.
    pub fn readers(&self) -> u32 {
        if self.raw.is_writing() { 0 } else { self.raw.held() }
    }

    /// Whether somebody reads at this moment.
    pub fn is_read_locked(&self) -> bool {
        self.readers() > 0
    }

    /// Whether somebody writes at this moment.
    pub fn is_write_locked(&self) -> bool {
        self.raw.is_writing()
    }

    /// Whether somebody reads or writes at this moment.
    pub fn is_locked(&self) -> bool {
        self.raw.held() > 0
    }

    /// How many requests wait at this moment.
    pub fn queued(&self) -> usize {
        self.raw.queued() as usize
    }

    /// The data; nobody else can be here, as the lock is borrowed mutably.
    pub fn get_mut(&mut self) -> &mut T {
        self.data.get_mut()
    }

    /// What the frames know it by. It stays with the lock where that is moved.
    #[cfg(not(leasehold_loom))]
    #[inline]
    pub(crate) fn domain(&self) -> u64 {
        match self.domain.load(Ordering::Relaxed) {
            0 => self.set_domain(),
            domain => domain,
        }
    }

    #[cfg(not(leasehold_loom))]
    #[cold]
    fn set_domain(&self) -> u64 {
        let new = crate::frames::next_domain();
        let set = self.domain.compare_exchange(0, new, Ordering::Relaxed, Ordering::Relaxed);
        set.err().unwrap_or(new)
    }

    #[inline]
    fn data(&self) -> NonNull<T> {
        // SAFETY: the address of a field is not null.
        unsafe { NonNull::new_unchecked(self.data.get()) }
    }
}

// SAFETY: readers share the data, for which it must be `Sync`, and writers take it to whichever
// thread they are on, for which it must be `Send`; the queue keeps the two apart.
unsafe impl<T: ?Sized + Send + Sync> Sync for RwLock<T> {}

impl<T: ?Sized> Source for RwLock<T> {
    #[inline]
    fn raw(&self) -> &Raw {
        &self.raw
    }
}

impl<T: ?Sized> Source for &RwLock<T> {
    #[inline]
    fn raw(&self) -> &Raw {
        &self.raw
    }
}

impl<T: Default> Default for RwLock<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> From<T> for RwLock<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("RwLock");
        match self.try_read() {
            Some(guard) => shown.field("data", &&*guard),
            None => shown.field("data", &format_args!("<locked>")),
        };
        shown.finish()
    }
}
