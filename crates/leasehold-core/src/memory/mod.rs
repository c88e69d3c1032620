//! The memory store: the reference of the [`Backend`](crate::Backend) contract, inline in the
//! caller (rule W8).
//!
//! ```text
//! MemoryBackend   backend.rs    one client: the trait, method by method
//!      |
//! Shared          store.rs      one step at a time: mutex, tick, work, settle, unlock, wake
//!   Shard         shard.rs      the locks of some names, and when to drop idle ones
//!     Lock        lock.rs       acquire, confirm, release (rules Q, L7, L10)
//!                 leases.rs     renew, extend, rebind, remaining (rules T4, T8, L2)
//!                 endings.rs    cancel_all, destroy, the end of a client, watch (rules W5, N5, N7)
//!                 report.rs     counts, inspect, obstacles (rules N4, E2)
//!       Grants    grants.rs     holders by token, by expiry, in order
//!       Waiter    waiters.rs    who is queued, who was rejected
//!       Watchers  watchers.rs   who only watches (rules U)
//!       Alarm     alarm.rs      the timer of one lock, while somebody waits for an expiry
//!     Step        step.rs       the time of a step, and whom to wake after it
//! ```
//!
//! The queue itself is [`leasehold_queue::PermitQueue`]. Expiry is decided by the clock at each
//! step; a timer only makes sure that there is a step when nobody calls (rule T3).

mod alarm;
mod backend;
mod endings;
mod grants;
mod leases;
mod lock;
mod report;
mod shard;
mod step;
mod store;
mod waiters;
mod watchers;

use std::{fmt, sync::Arc};

pub use backend::MemoryBackend;

use crate::{Clock, SystemClock};

/// A store in the memory of this process. Clones are one store.
///
/// Its locks live as long as the store; each [`MemoryBackend`] is one client of it.
///
/// # Examples
/// ```
/// use leasehold_core::{Backend, MemoryStore};
///
/// let store = MemoryStore::new();
/// let (here, there) = (store.client(), store.client());
/// assert_ne!(here.client(), there.client());
/// ```
#[derive(Clone)]
pub struct MemoryStore(Arc<store::Shared>);

impl MemoryStore {
    /// An empty store on the machine's clock.
    #[must_use]
    pub fn new() -> Self {
        Self::with_clock(Arc::new(SystemClock::new()))
    }

    /// An empty store on this clock, which decides every expiry (rule L1).
    #[must_use]
    pub fn with_clock(clock: Arc<dyn Clock>) -> Self {
        Self(store::Shared::new(clock, store::SHARDS))
    }

    /// The same for few locks: it is small, and its locks meet at one mutex.
    #[must_use]
    pub fn small(clock: Arc<dyn Clock>) -> Self {
        Self(store::Shared::new(clock, 1))
    }

    /// A new client of this store.
    #[must_use]
    pub fn client(&self) -> MemoryBackend {
        MemoryBackend::of(self.clone())
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").field("clock", &self.0.timeline.clock).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
