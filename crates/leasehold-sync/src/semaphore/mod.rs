//! [`Semaphore`]: a number of permits.

mod permit;

use std::{fmt, sync::Arc};

use crate::{
    acquire::Acquire,
    acquire_with::AcquireWith,
    error::{CapacityError, Error, LockKind},
    hold::{Permits, Source},
    raw::{CAPACITY_MAX, Raw, WatchFor, sys::const_fn},
    watch::Watch,
};

pub use self::permit::{OwnedSemaphorePermit, SemaphorePermit};

/// A fair counting semaphore for tasks and threads.
///
/// # Examples
///
/// ```
/// use leasehold_sync::Semaphore;
///
/// static SLOTS: Semaphore = match Semaphore::new(3) {
///     Ok(slots) => slots,
///     Err(_) => panic!("three is a number of permits"),
/// };
///
/// # pollster::block_on(async {
/// let one = SLOTS.acquire().await;
/// let two = SLOTS.acquire_many(2).await?;
/// assert!(SLOTS.try_acquire().is_none());
/// # drop((one, two));
/// # Ok::<(), leasehold_sync::Error>(()) }).unwrap();
/// ```
pub struct Semaphore {
    raw: Raw,
}

impl Semaphore {
    const_fn! {
        /// That many free permits: 1 ..= 2^31 − 1.
        ///
        /// # Errors
        ///
        /// No permits, or too many, are refused (rule Q5).
        pub const fn new(permits: u32) -> Result<Self, CapacityError> {
            match permits {
                0 => Err(CapacityError::NoPermits),
                1..=CAPACITY_MAX => Ok(Self { raw: Raw::new(permits) }),
                _ => Err(CapacityError::AboveMax { capacity: permits }),
            }
        }
    }

    /// Waits for one permit.
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
    /// let semaphore = leasehold_sync::Semaphore::new(2)?;
    /// let permit = semaphore.acquire().await;
    /// assert_eq!(semaphore.available_permits(), 1);
    /// # drop(permit);
    /// # Ok::<(), leasehold_sync::Error>(()) }).unwrap();
    /// ```
    #[inline]
    pub fn acquire(&self) -> Acquire<SemaphorePermit<'_>> {
        Acquire::new(&self.raw, Permits(1))
    }

    /// Waits for several permits and gets all of them at once.
    ///
    /// # Fairness
    ///
    /// Strict FIFO, all or nothing: at the head of the queue it waits until all are free, and
    /// nobody behind it overtakes (rule Q2).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future takes the request back, and lets in those behind it that fit.
    ///
    /// # Errors
    ///
    /// `InvalidArgument`: no permits, or more than there are, also when a
    /// [`forget`](SemaphorePermit::forget) takes them away while it waits (rule Q7).
    ///
    /// # Examples
    ///
    /// ```
    /// # pollster::block_on(async {
    /// let semaphore = leasehold_sync::Semaphore::new(2)?;
    /// assert_eq!(semaphore.acquire_many(2).await?.permits(), 2);
    /// assert!(semaphore.acquire_many(3).await.is_err());
    /// # Ok::<(), leasehold_sync::Error>(()) }).unwrap();
    /// ```
    #[inline]
    pub fn acquire_many(&self, permits: u32) -> AcquireWith<SemaphorePermit<'_>> {
        AcquireWith::new(Acquire::new(&self.raw, Permits(permits)))
    }

    /// As [`acquire`](Self::acquire), with a permit that keeps the semaphore alive.
    ///
    /// # Fairness
    ///
    /// As [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    ///
    /// As [`acquire`](Self::acquire).
    ///
    /// # Errors
    ///
    /// None; with a timeout or a cancellation, see [`Acquire`].
    ///
    /// # Examples
    ///
    /// ```
    /// # pollster::block_on(async {
    /// let semaphore = std::sync::Arc::new(leasehold_sync::Semaphore::new(2)?);
    /// let permit = semaphore.clone().acquire_owned().await;
    /// std::thread::spawn(move || drop(permit)).join().unwrap();
    /// assert_eq!(semaphore.available_permits(), 2);
    /// # Ok::<(), leasehold_sync::Error>(()) }).unwrap();
    /// ```
    #[inline]
    pub fn acquire_owned(self: Arc<Self>) -> Acquire<OwnedSemaphorePermit> {
        Acquire::new(self, Permits(1))
    }

    /// As [`acquire_many`](Self::acquire_many), with permits that keep the semaphore alive.
    ///
    /// # Fairness
    ///
    /// As [`acquire_many`](Self::acquire_many).
    ///
    /// # Cancel safety
    ///
    /// As [`acquire_many`](Self::acquire_many).
    ///
    /// # Errors
    ///
    /// As [`acquire_many`](Self::acquire_many).
    ///
    /// # Examples
    ///
    /// ```
    /// # pollster::block_on(async {
    /// let semaphore = std::sync::Arc::new(leasehold_sync::Semaphore::new(2)?);
    /// let permits = semaphore.clone().acquire_many_owned(2).await?;
    /// assert_eq!(permits.permits(), 2);
    /// # Ok::<(), leasehold_sync::Error>(()) }).unwrap();
    /// ```
    #[inline]
    pub fn acquire_many_owned(self: Arc<Self>, permits: u32) -> AcquireWith<OwnedSemaphorePermit> {
        AcquireWith::new(Acquire::new(self, Permits(permits)))
    }

    /// Blocks this thread until it has a permit. Not for async code, where it would hold up others.
    ///
    /// # Fairness
    ///
    /// As [`acquire`](Self::acquire): threads and tasks wait in one queue.
    ///
    /// # Cancel safety
    ///
    /// Nothing can be dropped here; for a timeout, use `acquire().timeout(…).blocking()`.
    ///
    /// # Errors
    ///
    /// None.
    ///
    /// # Examples
    ///
    /// ```
    /// let semaphore = leasehold_sync::Semaphore::new(2)?;
    /// let permit = semaphore.blocking_acquire();
    /// # drop(permit);
    /// # Ok::<(), leasehold_sync::Error>(())
    /// ```
    #[inline]
    pub fn blocking_acquire(&self) -> SemaphorePermit<'_> {
        self.acquire().blocking()
    }

    /// As [`blocking_acquire`](Self::blocking_acquire), for several permits.
    ///
    /// # Fairness
    ///
    /// As [`blocking_acquire`](Self::blocking_acquire).
    ///
    /// # Errors
    ///
    /// As [`acquire_many`](Self::acquire_many).
    pub fn blocking_acquire_many(&self, permits: u32) -> Result<SemaphorePermit<'_>, Error> {
        self.acquire_many(permits).blocking()
    }

    /// One permit, if there is a free one and nobody is queued. Never waits.
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
    /// let semaphore = leasehold_sync::Semaphore::new(1)?;
    /// let permit = semaphore.try_acquire();
    /// assert!(permit.is_some() && semaphore.try_acquire().is_none());
    /// # Ok::<(), leasehold_sync::Error>(())
    /// ```
    #[inline]
    pub fn try_acquire(&self) -> Option<SemaphorePermit<'_>> {
        self.acquire().try_now()
    }

    /// Several permits at once, if they are free and nobody is queued. Never waits.
    ///
    /// # Fairness
    ///
    /// It never barges.
    ///
    /// # Errors
    ///
    /// `InvalidArgument`: no permits, or more than there are, also while busy (rule W6).
    pub fn try_acquire_many(&self, permits: u32) -> Result<Option<SemaphorePermit<'_>>, Error> {
        self.check_weight(permits)?;
        Ok(Acquire::<SemaphorePermit<'_>>::new(&self.raw, Permits(permits)).try_now())
    }

    /// As [`try_acquire`](Self::try_acquire), with a permit that keeps the semaphore alive.
    ///
    /// # Fairness
    ///
    /// As [`try_acquire`](Self::try_acquire).
    #[inline]
    pub fn try_acquire_owned(self: Arc<Self>) -> Option<OwnedSemaphorePermit> {
        self.acquire_owned().try_now()
    }

    /// As [`try_acquire_many`](Self::try_acquire_many), with permits that keep the semaphore alive.
    ///
    /// # Fairness
    ///
    /// As [`try_acquire_many`](Self::try_acquire_many).
    ///
    /// # Errors
    ///
    /// As [`try_acquire_many`](Self::try_acquire_many).
    pub fn try_acquire_many_owned(
        self: Arc<Self>,
        permits: u32,
    ) -> Result<Option<OwnedSemaphorePermit>, Error> {
        self.check_weight(permits)?;
        Ok(Acquire::<OwnedSemaphorePermit>::new(self, Permits(permits)).try_now())
    }

    /// Makes that many new permits, and grants those that waited for them (rule Q7).
    ///
    /// # Errors
    ///
    /// More than 2^31 − 1 permits in all are refused, and nothing changes.
    pub fn add_permits(&self, permits: u32) -> Result<(), CapacityError> {
        if self.raw.grow(permits) {
            return Ok(());
        }
        Err(CapacityError::AboveMax { capacity: self.raw.capacity().saturating_add(permits) })
    }

    /// Unmakes up to that many free permits, never the last one there is, and says how many.
    ///
    /// Who waits for more permits than are left gets `InvalidArgument` (rule Q7). For that, a
    /// shrink may look at every waiter, but only if one may be too heavy.
    pub fn forget_permits(&self, permits: u32) -> u32 {
        self.raw.forget_free(permits)
    }

    /// Waits until a permit is free, without acquiring it (rule U1). A hand-off is not a release.
    ///
    /// # Fairness
    ///
    /// All who watch are told together; they keep nobody from the lock.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    pub fn wait_for_any_permit(&self) -> Watch<'_> {
        Watch::new(&self.raw, WatchFor::Any)
    }

    /// Waits until every permit is free, without acquiring one (rule U1).
    ///
    /// # Fairness
    ///
    /// All who watch are told together; they keep nobody from the lock.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    pub fn wait_for_all_permits(&self) -> Watch<'_> {
        Watch::new(&self.raw, WatchFor::All)
    }

    /// How many permits nobody holds at this moment. With others queued, none of them can be had.
    pub fn available_permits(&self) -> u32 {
        self.raw.free()
    }

    /// How many permits there are, held or free.
    pub fn capacity(&self) -> u32 {
        self.raw.capacity()
    }

    /// Whether no permit is free at this moment.
    pub fn is_locked(&self) -> bool {
        self.raw.free() == 0
    }

    /// How many requests wait at this moment.
    pub fn queued(&self) -> usize {
        self.raw.queued() as usize
    }

    fn check_weight(&self, permits: u32) -> Result<(), Error> {
        let capacity = self.raw.capacity();
        if permits == 0 || permits > capacity {
            return Err(Error::weight(LockKind::Semaphore, permits, capacity));
        }
        Ok(())
    }
}

impl Source for Semaphore {
    #[inline]
    fn raw(&self) -> &Raw {
        &self.raw
    }
}

impl fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Semaphore")
            .field("capacity", &self.capacity())
            .field("available", &self.available_permits())
            .field("queued", &self.queued())
            .finish()
    }
}
