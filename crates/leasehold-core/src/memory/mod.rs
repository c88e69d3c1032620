//! The memory store: the reference of the [`Backend`](crate::Backend) contract, inline in the
//! caller (rule W8).
//!
//! ```text
//! MemoryBackend   backend.rs    one client: the trait, method by method
//!      |
//! Shared          store.rs      one step at a time: mutex, work, settle, unlock, wake
//!   Shard         shard.rs      the locks of some names, and when to drop idle ones
//!     Alarm       alarm.rs      the timer of one lock, while somebody waits for an expiry
//!     LockMachine               what a step does to a lock: see [`machine`](crate::machine)
//! ```
//!
//! Expiry is decided by the clock at each step; a timer only makes sure that there is a step when
//! nobody calls (rule T3).

mod alarm;
mod backend;
mod shard;
mod store;

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
        f.debug_struct("MemoryStore")
            .field("clock", self.0.timeline.clock())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
