//! Ours and the others behind one face.

use std::{collections::HashMap, future::Future, sync::Arc};

use dashmap::DashMap;
use leasehold_sync::KeyedLock;
use lockable::LockPool;
use tokio::sync::{Mutex, OwnedMutexGuard};

/// A table of locks by key.
pub(crate) trait Table: Default + Send + Sync + 'static {
    type Guard<'a>: Send;

    fn lock(&self, key: u64) -> impl Future<Output = Self::Guard<'_>> + Send;

    /// How many keys the table remembers.

    fn entries(&self) -> usize;
}

#[derive(Default)]
pub(crate) struct Ours(KeyedLock<u64>);

pub(crate) struct Lockable(LockPool<u64>);

/// What is built by hand everywhere: an entry is removed by who holds its last share.
#[derive(Default)]
pub(crate) struct Dash(DashMap<u64, Arc<Mutex<()>>>);

pub(crate) struct DashGuard<'a> {
    table: &'a Dash,
    key: u64,
    guard: Option<OwnedMutexGuard<()>>,
}

/// No lock: what two accesses to a locked map cost.
#[derive(Default)]
pub(crate) struct Floor(parking_lot::Mutex<HashMap<u64, ()>>);

pub(crate) struct FloorGuard<'a>(&'a Floor, u64);

impl Table for Ours {
    type Guard<'a> = leasehold_sync::KeyedGuard<&'a KeyedLock<u64>>;

    #[inline]
    fn lock(&self, key: u64) -> impl Future<Output = Self::Guard<'_>> + Send {
        self.0.write(key)
    }

    fn entries(&self) -> usize {
        self.0.len()
    }
}

impl Default for Lockable {
    fn default() -> Self {
        Self(LockPool::new())
    }
}

impl Table for Lockable {
    type Guard<'a> = <LockPool<u64> as lockable::Lockable<u64, ()>>::Guard<'a>;

    fn lock(&self, key: u64) -> impl Future<Output = Self::Guard<'_>> + Send {
        self.0.async_lock(key)
    }

    fn entries(&self) -> usize {
        self.0.num_locked()
    }
}

impl Table for Dash {
    type Guard<'a> = DashGuard<'a>;

    async fn lock(&self, key: u64) -> DashGuard<'_> {
        let lock = Arc::clone(&self.0.entry(key).or_default());
        DashGuard { table: self, key, guard: Some(lock.lock_owned().await) }
    }

    fn entries(&self) -> usize {
        self.0.len()
    }
}

impl Drop for DashGuard<'_> {
    fn drop(&mut self) {
        self.guard = None;
        self.table.0.remove_if(&self.key, |_, lock| Arc::strong_count(lock) == 1);
    }
}

impl Table for Floor {
    type Guard<'a> = FloorGuard<'a>;

    async fn lock(&self, key: u64) -> FloorGuard<'_> {
        // As all others do, or a task would never let others run.
        tokio::task::coop::consume_budget().await;
        self.0.lock().insert(key, ());
        FloorGuard(self, key)
    }

    fn entries(&self) -> usize {
        self.0.lock().len()
    }
}

impl Drop for FloorGuard<'_> {
    fn drop(&mut self) {
        self.0.0.lock().remove(&self.1);
    }
}
