//! The end of locks: one, or all of a manager (rules N5, N6, W5).

use std::sync::{Arc, PoisonError, Weak};

use leasehold_core::{Error, ErrorKind, LockId, LockKind, LockState, Operation, Result};

use crate::{core::Core, entry::Entry};

/// A live lock of a manager, as [`LockManager::list`](crate::LockManager::list) tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LockInfo {
    /// Namespace, kind and name.
    pub lock: LockId,
    /// How many permits a semaphore has, or how many readers a read-write lock admits; `None` for a
    /// mutex.
    pub capacity: Option<u32>,
    /// What kind of store it lives on.
    pub store: &'static str,
    /// Whether it was destroyed.
    pub is_destroyed: bool,
}

/// A live lock of a manager with its state in the store, as
/// [`LockManager::snapshot`](crate::LockManager::snapshot) tells it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LockSnapshot {
    /// The lock.
    pub info: LockInfo,
    /// Its holders and waiters, read in one step; `None`: nobody uses it.
    pub state: Option<LockState>,
}

impl Entry {
    /// # Errors
    /// `Destroyed` on a handle of a lock that was destroyed (rule N5).
    pub(crate) fn check(&self, operation: Operation) -> Result<()> {
        if self.is_destroyed() {
            return Err(Error::new(ErrorKind::Destroyed, operation).on(&self.id));
        }
        Ok(())
    }

    pub(crate) fn info(&self) -> LockInfo {
        LockInfo {
            lock: LockId::clone(&self.id),
            capacity: (self.id.kind() != LockKind::Mutex).then(|| self.capacity().get()),
            store: self.core.backend.store(),
            is_destroyed: self.is_destroyed(),
        }
    }

    pub(crate) async fn cancel_all(&self, reason: &str) -> Result<u64> {
        self.check(Operation::Cancel)?;
        let answer = self.core.backend.cancel_all(&self.id, reason).await;
        answer.map_err(|fault| Error::from_fault(fault, Operation::Cancel).on(&self.id))
    }

    pub(crate) async fn destroy(&self, reason: &str) -> Result<()> {
        if self.is_destroyed() {
            return Ok(());
        }
        let answer = self.core.backend.destroy(&self.id, self.generation(), reason).await;
        answer.map_err(|fault| Error::from_fault(fault, Operation::Destroy).on(&self.id))?;
        self.mark_destroyed();
        // Leases that wait for their loss look again.
        self.core.ends.look_again();
        Ok(())
    }
}

impl Core {
    /// The live locks, by kind and name.
    pub(crate) fn live(&self) -> Vec<Arc<Entry>> {
        let mut live: Vec<_> = {
            let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
            entries.values().filter_map(Weak::upgrade).collect()
        };
        // Outside of the lock of the map, which the drop of an entry takes.
        live.retain(|entry| !entry.is_destroyed());
        live.sort_by(|one, two| {
            (one.id.kind(), one.id.name()).cmp(&(two.id.kind(), two.id.name()))
        });
        live
    }

    pub(crate) async fn destroy_all(&self, reason: &str) -> Result<()> {
        let mut failures = Vec::new();
        for entry in self.live() {
            if let Err(error) = entry.destroy(reason).await {
                failures.push(error);
            }
        }
        several(failures, Operation::Destroy)
    }
}

/// Everything was tried; what failed is told in one error (rule E3).
pub(crate) fn several(mut failures: Vec<Error>, operation: Operation) -> Result<()> {
    match failures.len() {
        0 => Ok(()),
        1 => Err(failures.remove(0)),
        _ => Err(Error::new(ErrorKind::Several { failures }, operation)),
    }
}
