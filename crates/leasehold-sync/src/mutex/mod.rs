//! [`Mutex`]: one holder at a time.

mod guard;

use std::{cell::UnsafeCell, fmt, sync::Arc};

#[cfg(not(leasehold_loom))]
use crate::error::Error;
use crate::{
    acquire::{Acquire, Grant},
    hold::{Only, Source},
    raw::{Raw, WatchFor, sys::const_fn},
    watch::Watch,
};

pub use self::guard::{MutexGuard, OwnedMutexGuard};

/// A fair mutex for tasks and threads.
///
/// The guard may be held across an await and sent to another thread. A panic while it is held
/// releases the lock and poisons nothing.
///
/// # Examples
///
/// ```
/// use leasehold_sync::Mutex;
///
/// static HITS: Mutex<u64> = Mutex::new(0);
///
/// # pollster::block_on(async {
/// *HITS.lock().await += 1;
/// assert_eq!(*HITS.lock().await, 1);
/// # });
/// ```
pub struct Mutex<T: ?Sized> {
    raw: Known,
    data: UnsafeCell<T>,
}

/// The raw lock, which the frames know by its address.
struct Known(Raw);

impl std::ops::Deref for Known {
    type Target = Raw;

    #[inline]
    fn deref(&self) -> &Raw {
        &self.0
    }
}

/// Who holds a mutex that ends, or waits for it, was forgotten: nothing else outlives its borrow.
impl Drop for Known {
    #[inline]
    fn drop(&mut self) {
        if self.0.is_in_use() {
            #[cfg(not(leasehold_loom))]
            crate::frames::forget_lock(std::ptr::from_ref(&self.0).addr() as u64);
        }
    }
}

impl<T> Mutex<T> {
    const_fn! {
        /// A free mutex.
        pub const fn new(value: T) -> Self {
            Self { raw: Known(Raw::new(1)), data: UnsafeCell::new(value) }
        }
    }

    /// The data.
    pub fn into_inner(self) -> T {
        self.data.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits for the lock.
    ///
    /// # Fairness
    ///
    /// Strict FIFO: granted in the order of arrival, from hand to hand (rules Q2 and Q3).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future takes the request back. Only its place in the queue is lost.
    ///
    /// # Errors
    ///
    /// None; with a timeout or a cancellation, see [`Acquire`].
    ///
    /// # Examples
    ///
    /// ```
    /// # pollster::block_on(async {
    /// let mutex = leasehold_sync::Mutex::new(1);
    /// *mutex.lock().await += 1;
    /// assert_eq!(mutex.into_inner(), 2);
    /// # });
    /// ```
    #[inline]
    pub fn lock(&self) -> Acquire<MutexGuard<'_, T>> {
        Acquire::new(self, Only)
    }

    /// As [`lock`](Self::lock), with a guard that keeps the mutex alive.
    ///
    /// # Fairness
    ///
    /// As [`lock`](Self::lock).
    ///
    /// # Cancel safety
    ///
    /// As [`lock`](Self::lock).
    ///
    /// # Errors
    ///
    /// None; with a timeout or a cancellation, see [`Acquire`].
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use leasehold_sync::Mutex;
    ///
    /// # pollster::block_on(async {
    /// let mutex = Arc::new(Mutex::new(String::new()));
    /// let mut guard = Arc::clone(&mutex).lock_owned().await;
    /// std::thread::spawn(move || guard.push('a')).join().unwrap();
    /// assert_eq!(*mutex.lock().await, "a");
    /// # });
    /// ```
    #[inline]
    pub fn lock_owned(self: Arc<Self>) -> Acquire<OwnedMutexGuard<T>> {
        Acquire::new(self, Only)
    }

    /// Blocks this thread until it has the lock. Not for async code, where it would hold up others.
    ///
    /// # Fairness
    ///
    /// As [`lock`](Self::lock): threads and tasks wait in one queue.
    ///
    /// # Cancel safety
    ///
    /// Nothing can be dropped here; for a timeout, use `lock().timeout(…).blocking()`.
    ///
    /// # Errors
    ///
    /// None.
    ///
    /// # Examples
    ///
    /// ```
    /// let mutex = leasehold_sync::Mutex::new(1);
    /// *mutex.blocking_lock() += 1;
    /// ```
    #[inline]
    pub fn blocking_lock(&self) -> MutexGuard<'_, T> {
        self.lock().blocking()
    }

    /// As [`blocking_lock`](Self::blocking_lock), with a guard that keeps the mutex alive.
    ///
    /// # Fairness
    ///
    /// As [`blocking_lock`](Self::blocking_lock).
    #[inline]
    pub fn blocking_lock_owned(self: Arc<Self>) -> OwnedMutexGuard<T> {
        self.lock_owned().blocking()
    }

    /// The lock, if it is free and nobody waits for it. Never waits.
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
    /// let mutex = leasehold_sync::Mutex::new(1);
    /// let guard = mutex.try_lock();
    /// assert!(guard.is_some() && mutex.try_lock().is_none());
    /// ```
    #[inline]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.lock().try_now()
    }

    /// As [`try_lock`](Self::try_lock), with a guard that keeps the mutex alive.
    ///
    /// # Fairness
    ///
    /// As [`try_lock`](Self::try_lock).
    #[inline]
    pub fn try_lock_owned(self: Arc<Self>) -> Option<OwnedMutexGuard<T>> {
        self.lock_owned().try_now()
    }

    /// Locks, runs `work` with the data in a frame of its own, and releases. For options:
    /// `lock().timeout(…).run(…)`.
    ///
    /// The request is *checked*, and so are those that `work` makes by `run_exclusive` and
    /// `run_shared`: one that could only wait for itself, or that closes a cycle of such requests,
    /// is told so at once instead (rules R2 and R4). `lock` is not checked, in here neither.
    ///
    /// Where the future has to be `Send`, as for `spawn`, the data should hold no borrow itself: of a
    /// `Mutex<&str>`, rustc says of the closure that its "implementation of `AsyncFnOnce` is not
    /// general enough". What the closure captures may be borrowed. `lock` has no such limit.
    ///
    /// # Fairness
    ///
    /// As [`lock`](Self::lock).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the work first, then gives the grant back (rule W7).
    ///
    /// # Errors
    ///
    /// `Reentrant`: an enclosing frame holds the lock. `Deadlock`: everybody in a cycle would wait
    /// for another for ever, unless one gives up.
    ///
    /// # Examples
    ///
    /// ```
    /// # pollster::block_on(async {
    /// let mutex = leasehold_sync::Mutex::new(vec![1]);
    /// let length = mutex.run_exclusive(async |v| { v.push(2); v.len() }).await?;
    /// assert_eq!(length, 2);
    /// let twice = mutex.run_exclusive(async |_| mutex.run_exclusive(async |_| ()).await).await?;
    /// assert!(twice.unwrap_err().is_reentrant());
    /// # Ok::<(), leasehold_sync::Error>(()) }).unwrap();
    /// ```
    #[cfg(not(leasehold_loom))]
    #[track_caller]
    #[inline]
    pub fn run_exclusive<R>(
        &self,
        work: impl AsyncFnOnce(&mut T) -> R,
    ) -> impl Future<Output = Result<R, Error>> {
        self.lock().run(work)
    }

    /// Waits until nobody holds the lock, without acquiring it (rule U1). A hand-off to the next
    /// waiter is not an unlock.
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

    /// Whether somebody holds it at this moment.
    pub fn is_locked(&self) -> bool {
        self.raw.free() == 0
    }

    /// How many wait for it at this moment.
    pub fn queued(&self) -> usize {
        self.raw.queued() as usize
    }

    /// The data; nobody else can be here, as the mutex is borrowed mutably.
    pub fn get_mut(&mut self) -> &mut T {
        self.data.get_mut()
    }
}

// SAFETY: the data is only reached through a guard, one at a time, on whichever thread that is;
// so sharing the mutex sends the data from thread to thread but never shares it.
unsafe impl<T: ?Sized + Send> Sync for Mutex<T> {}

impl<T: ?Sized> Source for Mutex<T> {
    #[inline]
    fn raw(&self) -> &Raw {
        &self.raw
    }
}

impl<T: ?Sized> Source for &Mutex<T> {
    #[inline]
    fn raw(&self) -> &Raw {
        &self.raw
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> From<T> for Mutex<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Mutex");
        match self.try_lock() {
            Some(guard) => shown.field("data", &&*guard),
            None => shown.field("data", &format_args!("<locked>")),
        };
        shown.finish()
    }
}

const _: fn() = || {
    fn grants<G: Grant>() {}
    grants::<MutexGuard<'_, [u8]>>();
};
