//! The one upgradable reader (rule Q7).
//!
//! An upgradable holder holds permits as any other, and besides them the one upgradable slot. A
//! request for it is queued in the same FIFO and fits once its weight is free and the slot is. Its
//! upgrade waits, before the whole queue, for the rest of the permits. It must: the head may be a
//! write that waits for this very holder. For the same reason there is only one: two upgrades
//! would wait for each other for ever.

use crate::{
    error::{EnqueueError, HoldError, WeightError},
    permit_queue::{Enqueued, PermitQueue},
    waiter_list::{Entry, WaiterKey, Want},
};

impl<W> PermitQueue<W> {
    /// Whether somebody is in the upgradable slot.
    #[inline]
    #[must_use]
    pub const fn has_upgradable(&self) -> bool {
        self.upgradable.is_some()
    }

    /// As [`acquire_now`](Self::acquire_now), for the upgradable slot too: false also while
    /// somebody is in it.
    ///
    /// # Errors
    ///
    /// As [`acquire_now`](Self::acquire_now).
    #[inline]
    pub fn acquire_upgradable_now(&mut self, weight: u32) -> Result<bool, WeightError> {
        self.arrive(weight, Want::Upgradable)
    }

    /// As [`enqueue`](Self::enqueue), for the upgradable slot too. At the head, such a request
    /// blocks those behind it while somebody is in the slot, as any head that does not fit.
    ///
    /// # Errors
    ///
    /// As [`enqueue`](Self::enqueue).
    #[inline]
    pub fn enqueue_upgradable(
        &mut self,
        weight: u32,
        waiter: W,
    ) -> Result<Enqueued<W>, (EnqueueError, W)> {
        self.arrive_or_queue(weight, Want::Upgradable, waiter)
    }

    /// Releases all that the upgradable holder holds, and its slot, and grants on.
    ///
    /// # Errors
    ///
    /// Refused if there is no upgradable holder, or if its upgrade is pending.
    #[inline]
    pub fn release_upgradable(
        &mut self,
        mut on_grant: impl FnMut(WaiterKey, u32, W),
    ) -> Result<(), HoldError> {
        let weight = self.settled_upgradable()?;
        self.permits.release(weight)?;
        self.upgradable = None;
        self.grant_on(&mut on_grant);
        Ok(())
    }

    /// Makes a plain holder of `to` permits of the upgradable one, and grants on.
    ///
    /// # Errors
    ///
    /// Refused if there is no upgradable holder, if its upgrade is pending, or if `to` is 0 or more
    /// than it holds.
    #[inline]
    pub fn downgrade_upgradable(
        &mut self,
        to: u32,
        mut on_grant: impl FnMut(WaiterKey, u32, W),
    ) -> Result<(), HoldError> {
        let from = self.settled_upgradable()?;
        self.keep(from, to)?;
        self.upgradable = None;
        self.grant_on(&mut on_grant);
        Ok(())
    }

    /// Raises the upgradable holder to `to` permits, before everybody who is queued. Until the
    /// rest of the permits is free, nobody else gets in.
    ///
    /// Once granted, it is a plain holder of `to`, to be released or downgraded as such; on a late
    /// grant the sink is told the added weight. While queued, it keeps what it holds; its
    /// [`cancel`](Self::cancel) leaves it an upgradable holder as before. An upgrade granted at
    /// once frees the slot, for which the head may have waited; that is what `on_grant` is for.
    ///
    /// # Errors
    ///
    /// Refused if `to` is 0, above the capacity or less than it holds, if there is no upgradable
    /// holder, or if its upgrade is pending. The waiter comes back with the error.
    #[inline]
    pub fn upgrade(
        &mut self,
        to: u32,
        waiter: W,
        mut on_grant: impl FnMut(WaiterKey, u32, W),
    ) -> Result<Enqueued<W>, (EnqueueError, W)> {
        let weight = match self.check_upgrade(to) {
            Ok(weight) => weight,
            Err(error) => return Err((error, waiter)),
        };
        let want = Want::Upgrade;
        if self.take(weight, want) {
            self.grant_on(&mut on_grant);
            return Ok(Enqueued::Granted(waiter));
        }
        match self.waiters.push_front(Entry { weight, want, waiter }) {
            Ok(key) => {
                self.note_weight(to);
                Ok(Enqueued::Queued(key))
            }
            Err(entry) => Err((EnqueueError::Full, entry.waiter)),
        }
    }

    /// The weight that an upgrade adds, if it may ask for it.
    #[inline]
    fn check_upgrade(&self, to: u32) -> Result<u32, EnqueueError> {
        self.permits.check_weight(to)?;
        let from = self.settled_upgradable()?;
        Ok(to.checked_sub(from).ok_or(HoldError::WrongWay { from, to })?)
    }

    /// What the upgradable holder holds, if it does not wait for more.
    #[inline]
    fn settled_upgradable(&self) -> Result<u32, HoldError> {
        let held = self.upgradable.ok_or(HoldError::NoUpgradable)?;
        match self.waiters.front() {
            Some((_, head)) if head.want == Want::Upgrade => Err(HoldError::UpgradePending),
            _ => Ok(held),
        }
    }
}
