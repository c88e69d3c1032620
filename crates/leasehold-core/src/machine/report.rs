//! A lock as others may see it (rules N4, E2).

use leasehold_queue::WaiterKey;

use super::{lock::Lock, step::Step};
use crate::{Capacity, HolderState, LockCounts, LockState, Obstacle, Share, WaiterState};

/// How far from the head a place is counted exactly. Farther back it is told as it was on arrival,
/// less those granted since: a count would grow with the queue (rule Q6).
const COUNTED: usize = 128;

impl Lock {
    /// What stands in the way: the oldest grant, and how many wait ahead.
    pub(super) fn obstacle(&self, ahead: u64, step: &mut Step<'_>) -> Obstacle {
        let holder = self.book.grants.first();
        let holder = holder.map(|holder| ((*holder.info).clone(), step.now().since(holder.since)));
        Obstacle { holder, ahead: Some(ahead) }
    }

    /// How many wait ahead of a waiter; far from the head, at most how many.
    pub(super) fn ahead_of(&self, key: WaiterKey) -> u64 {
        let near = self.queue.iter().take(COUNTED).zip(0..).find(|((other, ..), _)| *other == key);
        if let Some((_, ahead)) = near {
            return ahead;
        }
        let waiter = self.queue.get(key).expect("who is in the index is queued");
        let granted = self.book.claims - waiter.claims_before;
        waiter.ahead.saturating_sub(granted).min(self.queued() - 1)
    }

    /// See [`Backend::counts`](crate::Backend::counts).
    pub(super) fn counts(&self) -> Option<LockCounts> {
        let whole = |share| share == Share::Whole;
        Some(LockCounts {
            capacity: self.effective()?,
            used: self.queue.used(),
            queued: self.queued(),
            // One that holds the whole lock holds it alone.
            whole: self.book.grants.first().is_some_and(|holder| whole(holder.share)),
            generation: self.generation,
        })
    }

    /// See [`Backend::inspect`](crate::Backend::inspect).
    pub(super) fn inspect(&self, step: &mut Step<'_>) -> Option<LockState> {
        let capacity = self.effective()?;
        let now = step.now();
        let holders = self.book.grants.iter().map(|holder| HolderState {
            short_id: holder.token.short_id(),
            info: (*holder.info).clone(),
            share: holder.share,
            fencing: holder.fencing,
            held_for: now.since(holder.since),
            ttl_left: holder.expiry.map(|expiry| expiry.since(now)),
            binding: holder.binding,
            claimed: holder.claimed,
        });
        let waiters = self.queue.iter().map(|(_, _, waiter)| WaiterState {
            short_id: waiter.token.short_id(),
            info: (*waiter.info).clone(),
            share: waiter.share,
            waited_for: now.since(waiter.since),
        });
        Some(LockState {
            lock: (*self.id).clone(),
            capacity,
            used: self.queue.used(),
            generation: self.generation,
            holders: holders.collect(),
            waiters: waiters.collect(),
        })
    }

    /// The capacity that counts; `None`: nobody uses the lock, or nobody but a watcher has.
    fn effective(&self) -> Option<Capacity> {
        self.registered.filter(|_| self.in_use())
    }
}
