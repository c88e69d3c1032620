//! [`PermitQueue`]: the algorithm of [`rules`](crate::rules) with its waiters in memory.

use std::fmt;

use crate::{
    error::{CapacityError, EnqueueError, HoldError, WeightError},
    rules::Permits,
    waiter_list::{Entry, WaiterKey, WaiterList, Want},
};

/// A weighted FIFO permit queue (rules Q1 to Q7).
///
/// `W` is whatever the caller needs to reach a waiter: a waker, a token, an id. The queue keeps it
/// while the waiter is queued and hands it back exactly once: on the grant, or when it leaves.
///
/// Whatever frees permits takes a sink `on_grant(key, weight, waiter)` and calls it for each
/// waiter it grants, in queue order, before it returns. When the sink is called, the permits are
/// already the waiter's (rule Q3). A caller that runs foreign code for a grant, such as a waker,
/// collects the waiters in the sink and runs it after unlocking. A sink must not panic: the
/// permits of the waiter it was given would stay taken.
///
/// No operation scans waiters, save those that are about them all: [`iter`](Self::iter),
/// [`drain_waiters`](Self::drain_waiters) and a shrinking [`resize`](Self::resize).
pub struct PermitQueue<W> {
    pub(crate) permits: Permits,
    pub(crate) waiters: WaiterList<W>,
    /// What the one upgradable holder holds, as part of the permits used (rule Q7).
    pub(crate) upgradable: Option<u32>,
    /// No queued waiter needs a larger capacity than this. Kept so that [`PermitQueue::resize`]
    /// looks for waiters that can never fit only if there may be some.
    pub(crate) heaviest: u32,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use = "the request either holds permits or waits for them"]
pub enum Enqueued<W> {
    /// It holds its permits; here is what it came with.
    Granted(W),
    /// It waits under this key.
    Queued(WaiterKey),
}

impl<W> PermitQueue<W> {
    /// An idle queue with that capacity.
    ///
    /// # Errors
    ///
    /// A capacity of 0 or above [`CAPACITY_MAX`](crate::CAPACITY_MAX) is refused (rule Q5).
    pub const fn new(capacity: u32) -> Result<Self, CapacityError> {
        match Permits::new(capacity) {
            Ok(permits) => Ok(Self::with_permits(permits)),
            Err(error) => Err(error),
        }
    }

    /// A queue without waiters over permits of which some may be in use. Usable in a `const`.
    #[must_use]
    pub const fn with_permits(permits: Permits) -> Self {
        Self { permits, waiters: WaiterList::new(), upgradable: None, heaviest: 0 }
    }

    /// Capacity and use in one value.
    #[inline]
    #[must_use]
    pub const fn permits(&self) -> Permits {
        self.permits
    }

    /// How many permits there are.
    #[inline]
    #[must_use]
    pub const fn capacity(&self) -> u32 {
        self.permits.capacity()
    }

    /// How many permits are held.
    #[inline]
    #[must_use]
    pub const fn used(&self) -> u32 {
        self.permits.used()
    }

    /// How many permits nobody holds. They may be waited for: a heavy head needs more of them.
    #[inline]
    #[must_use]
    pub const fn free(&self) -> u32 {
        self.permits.free()
    }

    /// How many waiters there are, a pending upgrade included.
    #[inline]
    #[must_use]
    pub const fn queued(&self) -> u32 {
        self.waiters.len()
    }

    /// Whether nothing is held and nobody is queued.
    #[inline]
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        self.used() == 0 && self.waiters.is_empty()
    }

    /// For how many waiters memory is allocated.
    #[must_use]
    pub const fn waiters_allocated(&self) -> usize {
        self.waiters.capacity()
    }

    /// One attempt that never queues (rule W2). False: somebody is queued or the weight does not
    /// fit; it never barges (rule Q3).
    ///
    /// # Errors
    ///
    /// A weight of 0 or above the capacity is refused, also when the lock is busy (rule W6).
    #[inline]
    pub fn acquire_now(&mut self, weight: u32) -> Result<bool, WeightError> {
        self.arrive(weight, Want::Plain)
    }

    /// Grants the request on arrival, or queues it behind everybody (rule Q2).
    ///
    /// # Errors
    ///
    /// A weight of 0 or above the capacity is refused, and so is a waiter beyond 2^32 − 1. The
    /// waiter comes back with the error.
    #[inline]
    pub fn enqueue(&mut self, weight: u32, waiter: W) -> Result<Enqueued<W>, (EnqueueError, W)> {
        self.arrive_or_queue(weight, Want::Plain, waiter)
    }

    /// Gives permits back and hands them to the waiters at the head (rules Q2 and Q3).
    ///
    /// # Errors
    ///
    /// A weight of 0, or more than is held besides the upgradable holder's share, is refused, and
    /// nothing changes (rule Q4).
    #[inline]
    pub fn release(
        &mut self,
        weight: u32,
        mut on_grant: impl FnMut(WaiterKey, u32, W),
    ) -> Result<(), HoldError> {
        self.check_held(weight)?;
        self.permits.release(weight)?;
        self.grant_on(&mut on_grant);
        Ok(())
    }

    /// Keeps `to` of `from` held permits and hands on the difference (rule Q7): write to read.
    ///
    /// # Errors
    ///
    /// Keeping 0, keeping more than `from`, or a `from` above what is held besides the upgradable
    /// holder's share is refused, and nothing changes.
    #[inline]
    pub fn downgrade(
        &mut self,
        from: u32,
        to: u32,
        mut on_grant: impl FnMut(WaiterKey, u32, W),
    ) -> Result<(), HoldError> {
        self.check_held(from)?;
        self.keep(from, to)?;
        self.grant_on(&mut on_grant);
        Ok(())
    }

    /// Takes a waiter out of the queue, wherever it is, and lets in those it blocked (rules Q2
    /// and Q4). `None`: it has been granted or has left already, and nothing changes.
    #[inline]
    pub fn cancel(
        &mut self,
        key: WaiterKey,
        mut on_grant: impl FnMut(WaiterKey, u32, W),
    ) -> Option<W> {
        let entry = self.waiters.remove(key)?;
        self.grant_on(&mut on_grant);
        Some(entry.waiter)
    }

    /// Takes out every waiter, in queue order, and hands each to `on_waiter`. Holders stay, and
    /// nobody is granted, since nobody is left to be.
    pub fn drain_waiters(&mut self, mut on_waiter: impl FnMut(WaiterKey, u32, W)) {
        while let Some((key, entry)) = self.waiters.pop_front() {
            on_waiter(key, entry.weight, entry.waiter);
        }
    }

    /// The head of the queue, with the weight it waits for.
    #[inline]
    #[must_use]
    pub fn peek(&self) -> Option<(WaiterKey, u32, &W)> {
        self.waiters.front().map(|(key, entry)| (key, entry.weight, &entry.waiter))
    }

    /// Every waiter in queue order, with the weight it waits for.
    pub fn iter(&self) -> impl Iterator<Item = (WaiterKey, u32, &W)> {
        self.waiters.iter().map(|(key, entry)| (key, entry.weight, &entry.waiter))
    }

    /// A waiter that is still queued.
    #[inline]
    #[must_use]
    pub fn get(&self, key: WaiterKey) -> Option<&W> {
        self.waiters.get(key).map(|entry| &entry.waiter)
    }

    /// A waiter that is still queued, to be changed: a new waker, say.
    #[inline]
    #[must_use]
    pub fn get_mut(&mut self, key: WaiterKey) -> Option<&mut W> {
        self.waiters.get_mut(key).map(|entry| &mut entry.waiter)
    }

    /// Replaces the count of permits in use, for a lock that counts elsewhere while nobody is
    /// queued: in one atomic word, say.
    ///
    /// # Errors
    ///
    /// Refused while somebody is queued, who might fit by then, and if the upgradable holder alone
    /// holds more. Nothing changes then.
    #[inline]
    pub fn set_used(&mut self, used: u32) -> Result<(), HoldError> {
        if !self.waiters.is_empty() {
            return Err(HoldError::WaitersQueued);
        }
        match self.upgradable {
            Some(weight) if weight > used => Err(HoldError::NotHeld { weight, held: used }),
            _ => {
                self.permits = self.permits.with_used(used);
                Ok(())
            }
        }
    }

    #[inline]
    pub(crate) fn arrive(&mut self, weight: u32, want: Want) -> Result<bool, WeightError> {
        self.permits.check_weight(weight)?;
        let admitted = self.permits.admits_on_arrival(!self.waiters.is_empty(), weight);
        Ok(admitted && self.take(weight, want))
    }

    #[inline]
    pub(crate) fn arrive_or_queue(
        &mut self,
        weight: u32,
        want: Want,
        waiter: W,
    ) -> Result<Enqueued<W>, (EnqueueError, W)> {
        match self.arrive(weight, want) {
            Ok(true) => return Ok(Enqueued::Granted(waiter)),
            Ok(false) => {}
            Err(error) => return Err((error.into(), waiter)),
        }
        match self.waiters.push_back(Entry { weight, want, waiter }) {
            Ok(key) => {
                self.note_weight(weight);
                Ok(Enqueued::Queued(key))
            }
            Err(entry) => Err((EnqueueError::Full, entry.waiter)),
        }
    }

    /// The grant loop of [`rules`](crate::rules): from the head until the first that does not fit.
    #[inline]
    pub(crate) fn grant_on(&mut self, on_grant: &mut impl FnMut(WaiterKey, u32, W)) {
        while let Some((_, head)) = self.waiters.front() {
            let (weight, want) = (head.weight, head.want);
            if !self.take(weight, want) {
                return;
            }
            if let Some((key, entry)) = self.waiters.pop_front() {
                on_grant(key, weight, entry.waiter);
            }
        }
    }

    /// Takes all that the request wants if it fits now, else nothing.
    #[inline]
    pub(crate) fn take(&mut self, weight: u32, want: Want) -> bool {
        if want == Want::Upgradable && self.upgradable.is_some() {
            return false;
        }
        if !self.permits.grant(weight) {
            return false;
        }
        match want {
            Want::Plain => {}
            Want::Upgradable => self.upgradable = Some(weight),
            // An upgraded holder is one like any other, so the slot is free again.
            Want::Upgrade => self.upgradable = None,
        }
        true
    }

    /// Reduces a hold from one weight to a smaller one that is not 0.
    #[inline]
    pub(crate) fn keep(&mut self, from: u32, to: u32) -> Result<(), HoldError> {
        match from.checked_sub(to) {
            _ if to == 0 => Err(HoldError::Zero),
            None => Err(HoldError::WrongWay { from, to }),
            Some(0) => Ok(()),
            Some(freed) => self.permits.release(freed),
        }
    }

    /// Remembers the capacity that a newly queued waiter needs.
    #[inline]
    pub(crate) fn note_weight(&mut self, weight: u32) {
        let alone = self.waiters.len() == 1;
        self.heaviest = if alone { weight } else { self.heaviest.max(weight) };
    }

    /// Checks that plain holders, together, hold that much.
    #[inline]
    fn check_held(&self, weight: u32) -> Result<(), HoldError> {
        let held = self.used() - self.upgradable.unwrap_or(0);
        if weight > held {
            return Err(HoldError::NotHeld { weight, held });
        }
        Ok(())
    }
}

/// Shows the counts only: a waiter may be or contain a secret (rule T5).
impl<W> fmt::Debug for PermitQueue<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PermitQueue")
            .field("capacity", &self.capacity())
            .field("used", &self.used())
            .field("upgradable", &self.upgradable)
            .field("queued", &self.queued())
            .finish()
    }
}
