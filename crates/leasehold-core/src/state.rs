//! What a lock looks like right now, for people and tools (rule N4).

use std::time::Duration;

use crate::{Binding, Capacity, FencingToken, Generation, HolderInfo, LockId, Share};

/// A lock as a store has it, read in one atomic step.
#[derive(Clone, Debug)]
pub struct LockState {
    /// Namespace, kind and name.
    pub lock: LockId,
    /// How many permits it has.
    pub capacity: Capacity,
    /// How many are held.
    pub used: u32,
    /// Its generation.
    pub generation: Generation,
    /// Who holds, in the order of their grants.
    pub holders: Vec<HolderState>,
    /// Who waits, in the order of the queue.
    pub waiters: Vec<WaiterState>,
}

impl LockState {
    /// How many permits are free.
    #[must_use]
    pub const fn free(&self) -> u32 {
        self.capacity.get().saturating_sub(self.used)
    }
}

/// A grant, as others may see it: without its token.
#[derive(Clone, Debug)]
pub struct HolderState {
    /// Stands for the token (rule T5).
    pub short_id: String,
    /// Who holds.
    pub info: HolderInfo,
    /// How much is held.
    pub share: Share,
    /// The fencing token.
    pub fencing: FencingToken,
    /// How long it has been held.
    pub held_for: Duration,
    /// What is left of the TTL; `None`: no TTL.
    pub ttl_left: Option<Duration>,
    /// What the grant's life is bound to.
    pub binding: Binding,
    /// Granted after a wait and not confirmed yet (rule L10).
    pub claimed: bool,
}

/// A waiter, as others may see it.
#[derive(Clone, Debug)]
pub struct WaiterState {
    /// Stands for the token (rule T5).
    pub short_id: String,
    /// Who waits.
    pub info: HolderInfo,
    /// How much is asked for.
    pub share: Share,
    /// How long it has waited.
    pub waited_for: Duration,
}

/// The counts of a lock, read in one step that does not grow with its holders and waiters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockCounts {
    /// How many permits it has.
    pub capacity: Capacity,
    /// How many are held.
    pub used: u32,
    /// How many wait.
    pub queued: u64,
    /// Whether one grant holds the whole lock.
    pub whole: bool,
    /// Its generation.
    pub generation: Generation,
}
