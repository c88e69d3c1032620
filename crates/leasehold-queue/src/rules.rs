//! The algorithm itself, as pure functions: one for every lock but the keyed one.
//!
//! State: capacity C, permits in use U, a FIFO of waiters with a weight each. Free is
//! F = C − U, or 0 while C was shrunk below U.
//!
//! - *Arrive*: a request is granted iff nobody is queued and its weight fits in F. Otherwise it
//!   joins the tail, or fails if it may not wait (rules Q2 and W2).
//! - *Grant from the head*: while the head fits in F, it gets all of its weight and leaves the
//!   queue; the first that does not fit ends the run (rule Q2).
//! - *Release, cancel, downgrade, resize*: change U, C or the queue, then grant from the head in
//!   the same step, so no free permit is ever visible in between (rule Q3).
//!
//! Fairness, and its price: the head blocks everybody behind it, however light. So a large weight
//! is never starved by small ones nor a write by reads, requests are granted in the order of their
//! arrival, and each waits only for those before it; in return, permits may stay free while a
//! heavy head waits for more. Between two steps the head never fits, so "somebody is queued" alone
//! tells an arriving request that it has to wait.

use crate::error::{CapacityError, HoldError, WeightError};

/// The largest capacity, and so the largest weight: 2^31 − 1.
pub const CAPACITY_MAX: u32 = 0x7fff_ffff;

/// The capacity of a lock and how much of it is in use.
///
/// A number of permits is a number: four thousand permits cost what one costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Permits {
    capacity: u32,
    used: u32,
}

/// What [`grant_from_head`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GrantRun<K> {
    /// How many waiters, counted from the head, were granted.
    pub granted: usize,
    /// The new head if it does not fit. `None`: every waiter shown was granted, so a caller that
    /// showed only a window of the queue has to show the next one.
    pub blocked: Option<K>,
}

impl Permits {
    /// A lock with that capacity, all of it free.
    ///
    /// # Errors
    ///
    /// A capacity of 0 or above [`CAPACITY_MAX`] is refused (rule Q5).
    pub const fn new(capacity: u32) -> Result<Self, CapacityError> {
        Self::from_parts(capacity, 0)
    }

    /// A lock as a store remembers it. More than `capacity` may be in use: it was shrunk.
    ///
    /// # Errors
    ///
    /// A capacity of 0 or above [`CAPACITY_MAX`] is refused (rule Q5).
    #[inline]
    pub const fn from_parts(capacity: u32, used: u32) -> Result<Self, CapacityError> {
        match capacity {
            0 => Err(CapacityError::Zero),
            1..=CAPACITY_MAX => Ok(Self { capacity, used }),
            _ => Err(CapacityError::AboveMax { capacity }),
        }
    }

    /// How many permits there are.
    #[inline]
    #[must_use]
    pub const fn capacity(&self) -> u32 {
        self.capacity
    }

    /// How many permits are held. Above the capacity only after a shrink.
    #[inline]
    #[must_use]
    pub const fn used(&self) -> u32 {
        self.used
    }

    /// The same capacity with another count in use.
    #[inline]
    #[must_use]
    pub const fn with_used(self, used: u32) -> Self {
        Self { capacity: self.capacity, used }
    }

    /// How many permits nobody holds.
    #[inline]
    #[must_use]
    pub const fn free(&self) -> u32 {
        self.capacity.saturating_sub(self.used)
    }

    /// Whether that weight is free now.
    #[inline]
    #[must_use]
    pub const fn fits(&self, weight: u32) -> bool {
        weight <= self.free()
    }

    /// Checks a weight before anything else is done with it (rules Q5 and W6).
    ///
    /// # Errors
    ///
    /// A weight of 0, or one above the capacity, is refused.
    #[inline]
    pub const fn check_weight(&self, weight: u32) -> Result<(), WeightError> {
        if weight == 0 {
            return Err(WeightError::Zero);
        }
        if weight > self.capacity {
            return Err(WeightError::AboveCapacity { weight, capacity: self.capacity });
        }
        Ok(())
    }

    /// Whether an arriving request gets in at once (rule Q2). It never barges (rule Q3).
    #[inline]
    #[must_use]
    pub const fn admits_on_arrival(&self, anybody_queued: bool, weight: u32) -> bool {
        !anybody_queued && self.fits(weight)
    }

    /// Takes all of the weight if it fits, else nothing, and says which.
    #[inline]
    #[must_use = "nothing was taken if this is false"]
    pub const fn grant(&mut self, weight: u32) -> bool {
        let fits = self.fits(weight);
        if fits {
            self.used += weight;
        }
        fits
    }

    /// Gives a held weight back. The caller then grants from the head, in the same step (rule Q3).
    ///
    /// # Errors
    ///
    /// A weight of 0, or more than is held, is refused, and nothing changes: a release that
    /// happens twice must not make permits out of nothing (rule Q4).
    #[inline]
    pub const fn release(&mut self, weight: u32) -> Result<(), HoldError> {
        if weight == 0 {
            return Err(HoldError::Zero);
        }
        if weight > self.used {
            return Err(HoldError::NotHeld { weight, held: self.used });
        }
        self.used -= weight;
        Ok(())
    }

    /// Changes the capacity; what is held stays held (rule Q7). The caller then rejects the
    /// waiters that can never fit and grants from the head, in the same step.
    ///
    /// # Errors
    ///
    /// A capacity of 0 or above [`CAPACITY_MAX`] is refused (rule Q5).
    #[inline]
    pub const fn resize(&mut self, capacity: u32) -> Result<(), CapacityError> {
        match Self::from_parts(capacity, self.used) {
            Ok(resized) => {
                *self = resized;
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}

/// Grants waiters, given in queue order, until the first that does not fit (rule Q2).
///
/// `waiters` may be only a window of the queue that starts at its head. No more than
/// [`Permits::free`] waiters can be granted, since each weighs at least 1.
#[inline]
pub fn grant_from_head<K>(
    permits: &mut Permits,
    waiters: impl IntoIterator<Item = (K, u32)>,
    mut on_grant: impl FnMut(K, u32),
) -> GrantRun<K> {
    let mut granted = 0;
    for (key, weight) in waiters {
        if !permits.grant(weight) {
            return GrantRun { granted, blocked: Some(key) };
        }
        granted += 1;
        on_grant(key, weight);
    }
    GrantRun { granted, blocked: None }
}
