//! Growing and shrinking the capacity (rule Q7).

use crate::{
    error::CapacityError,
    permit_queue::PermitQueue,
    waiter_list::{WaiterKey, Want},
};

impl<W> PermitQueue<W> {
    /// Changes the capacity, takes out the waiters that can never fit any more, then grants on.
    ///
    /// What is held stays held: after a shrink below it, nothing is free until enough is released.
    /// Waiters that leave are handed to `on_reject(key, weight, waiter)` in queue order, before
    /// anybody is granted. A pending upgrade leaves if the holder could never hold that much; it
    /// stays an upgradable holder.
    ///
    /// Growing costs O(1) per grant. Shrinking visits the waiters only if one may weigh too much.
    ///
    /// # Errors
    ///
    /// A capacity of 0 or above [`CAPACITY_MAX`](crate::CAPACITY_MAX) is refused, and nothing
    /// changes (rule Q5).
    pub fn resize(
        &mut self,
        capacity: u32,
        mut on_grant: impl FnMut(WaiterKey, u32, W),
        mut on_reject: impl FnMut(WaiterKey, u32, W),
    ) -> Result<(), CapacityError> {
        self.permits.resize(capacity)?;
        if self.heaviest > capacity {
            self.reject_heavier(capacity, &mut on_reject);
            // All that is left fits into the new capacity, so the next shrink need not look above.
            self.heaviest = capacity;
        }
        self.grant_on(&mut on_grant);
        Ok(())
    }

    fn reject_heavier(&mut self, capacity: u32, on_reject: &mut impl FnMut(WaiterKey, u32, W)) {
        let upgradable = self.upgradable.unwrap_or(0);
        let mut at = self.waiters.front().map(|(key, _)| key);
        while let Some(key) = at {
            at = self.waiters.behind(key);
            let too_heavy = self.waiters.get(key).is_some_and(|entry| {
                // An upgrade waits for the rest only; what counts is all that it would hold.
                let held = if entry.want == Want::Upgrade { upgradable } else { 0 };
                entry.weight > capacity.saturating_sub(held)
            });
            if let Some(entry) = too_heavy.then(|| self.waiters.remove(key)).flatten() {
                on_reject(key, entry.weight, entry.waiter);
            }
        }
    }
}
