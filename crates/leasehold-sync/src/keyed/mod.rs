//! [`KeyedLock`]: a read-write lock for every key there may be, and for all of them at once.

mod acquire;
pub(crate) mod ask;
#[cfg(not(leasehold_loom))]
mod checked;
#[cfg(not(leasehold_loom))]
pub(crate) mod checking;
pub(crate) mod guard;
mod hash;
mod nodes;
mod requests;
mod shard;
mod sys;
pub(crate) mod table;
mod wakers;
mod whole;

use std::{
    fmt,
    hash::{BuildHasher, Hash},
};

use self::table::{Table, Wanted};

#[cfg(not(leasehold_loom))]
pub use self::checked::CheckedKeyedLock;
pub use self::{
    acquire::{AcquireKeyed, AcquireKeyedWith},
    guard::{KeyedGuard, KeyedSource},
    hash::{KeyHash, KeyHasher},
};

/// A fair read-write lock for every key, and for the whole set of keys.
///
/// Two requests conflict if one of them writes and they are for the same key, or one of them is
/// for the whole set. A request is granted as soon as no earlier request, held or queued, conflicts
/// with it. So different keys have nothing to do with each other, each key has a queue in the
/// order of arrival, a queued write of the whole set holds up everything that comes later, a
/// queued read of the whole set every later write, and nobody starves.
///
/// Memory is kept only for keys that are held or waited for. Keys are spread over shards: requests
/// for different keys hardly ever meet. A request for the whole set visits every shard, and while
/// there is one, all requests meet; it is meant to be rare.
///
/// Keys are compared under an internal lock: their `Eq` must not use this very keyed lock.
///
/// # Examples
///
/// ```
/// use leasehold_sync::KeyedLock;
///
/// # pollster::block_on(async {
/// let accounts = KeyedLock::new();
/// let one = accounts.write("alice").await;
/// let other = accounts.write("bob").await; // another key: nothing in the way
/// assert!(accounts.try_read("alice").is_none());
/// drop((one, other));
///
/// let _audit = accounts.read_all().await; // nobody writes any key
/// assert!(accounts.try_read("alice").is_some());
/// assert!(accounts.try_write("alice").is_none());
/// # });
/// ```
pub struct KeyedLock<K, S = KeyHash> {
    table: Table<K>,
    hash: S,
}

impl<K> KeyedLock<K> {
    /// Nothing held. It allocates its shards: about 1 KiB per processor, 16 KiB at most.
    #[must_use]
    pub fn new() -> Self {
        Self::with_hasher(KeyHash::default())
    }
}

impl<K, S> KeyedLock<K, S> {
    /// As [`new`](KeyedLock::new), with a hasher of your own; a poor one will do.
    #[must_use]
    pub fn with_hasher(hash: S) -> Self {
        Self { table: Table::new(shards()), hash }
    }

    /// How many keys are held or waited for at this moment.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether at this moment nothing is held or waited for: no key, and not the whole set.
    pub fn is_empty(&self) -> bool {
        self.table.len() == 0 && self.table.whole() == 0
    }

    /// How many requests wait at this moment, for keys and for the whole set.
    pub fn queued(&self) -> usize {
        self.table.queued()
    }
}

impl<K: Hash, S: BuildHasher> KeyedLock<K, S> {
    #[inline]
    fn wanted(&self, ask: ask::Ask, key: K) -> Wanted<K> {
        // Here, and never under a lock of the table: it is foreign code.
        let hash = self.hash.hash_one(&key);
        Wanted::key(ask, key, hash)
    }
}

impl<K, S: Default> Default for KeyedLock<K, S> {
    fn default() -> Self {
        Self::with_hasher(S::default())
    }
}

impl<K, S> fmt::Debug for KeyedLock<K, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedLock").field("table", &self.table).finish_non_exhaustive()
    }
}

/// Enough that threads on different keys seldom meet; few enough to visit all of them.
#[cfg(not(leasehold_loom))]
pub(crate) fn shards() -> usize {
    static SHARDS: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    *SHARDS.get_or_init(|| {
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        (threads * 16).next_power_of_two().clamp(16, 256)
    })
}

/// Two, so that there is more than one and every interleaving can be visited.
#[cfg(leasehold_loom)]
pub(crate) const fn shards() -> usize {
    2
}
