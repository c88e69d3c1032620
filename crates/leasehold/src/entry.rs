//! A live lock of one manager: what all handles of one kind and name share (rule N1).

use std::sync::{
    Arc, PoisonError, Weak,
    atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
};

use leasehold_core::{
    Capacity, CapacityClaim, Error, ErrorKind, Generation, LockCounts, LockId, LockKind, LockName,
    LockState, Operation, Result,
};

use crate::core::Core;

/// No generation is known yet.
const UNKNOWN: u64 = u64::MAX;

#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) id: Arc<LockId>,
    pub(crate) core: Arc<Core>,
    claim: CapacityClaim,
    /// The capacity in effect, as the store last said.
    effective: AtomicU32,
    generation: AtomicU64,
    destroyed: AtomicBool,
}

impl Entry {
    /// The live lock of this kind and name, or a new one.
    ///
    /// # Errors
    /// `ShutDown`, and `ConfigMismatch` when the live one has another capacity (rule N2).
    pub(crate) fn open(
        core: &Arc<Core>,
        kind: LockKind,
        name: LockName,
        claim: CapacityClaim,
    ) -> Result<Arc<Self>> {
        let id = LockId::new(core.namespace.clone(), kind, name);
        if core.life.refuses() {
            return Err(Error::new(ErrorKind::ShutDown, Operation::Open).on(&id));
        }
        let entry = Self::live_or_new(core, id, claim);
        let registered = entry.capacity();
        if claim.accepts(registered) {
            return Ok(entry);
        }
        let kind = ErrorKind::ConfigMismatch { registered, requested: claim.initial() };
        Err(Error::new(kind, Operation::Open).on(&entry.id))
    }

    /// The live lock that a grant belongs to, or a new one; the grant says the capacity.
    pub(crate) fn adopt(core: &Arc<Core>, id: &LockId, capacity: Capacity) -> Arc<Self> {
        let claim = match id.kind() {
            LockKind::RwLock => CapacityClaim::Registered { otherwise: capacity },
            _ => CapacityClaim::Exactly(capacity),
        };
        Self::live_or_new(core, id.clone(), claim)
    }

    fn live_or_new(core: &Arc<Core>, id: LockId, claim: CapacityClaim) -> Arc<Self> {
        let mut entries = loop {
            let entries = core.entries.lock().unwrap_or_else(PoisonError::into_inner);
            let live = entries.get(&id).and_then(Weak::upgrade);
            match live {
                None => break entries,
                Some(live) if !live.is_destroyed() => return live,
                Some(destroyed) => {
                    let mut entries = entries;
                    entries.remove(&id);
                    // Not dropped under the lock of the map, which its drop takes; and then looked
                    // again, for somebody else may have been faster.
                    drop(entries);
                    drop(destroyed);
                }
            }
        };
        let id = Arc::new(id);
        let entry = Arc::new(Self {
            id: Arc::clone(&id),
            core: Arc::clone(core),
            claim,
            effective: AtomicU32::new(claim.initial().get()),
            generation: AtomicU64::new(UNKNOWN),
            destroyed: AtomicBool::new(false),
        });
        entries.insert(id, Arc::downgrade(&entry));
        entry
    }

    pub(crate) const fn claim(&self) -> CapacityClaim {
        self.claim
    }

    /// The capacity in effect, as well as it is known here.
    pub(crate) fn capacity(&self) -> Capacity {
        Capacity::new(self.effective.load(Ordering::Relaxed)).unwrap_or(Capacity::ONE)
    }

    pub(crate) fn generation(&self) -> Option<Generation> {
        match self.generation.load(Ordering::Relaxed) {
            UNKNOWN => None,
            known => Some(Generation(known)),
        }
    }

    /// Notes what the store said about the lock. A handle belongs to the generation that it met
    /// first (rule N5).
    pub(crate) fn note(&self, generation: Generation, capacity: Capacity) {
        // Two loads are cheaper than two writes to a line that every handle shares.
        if self.effective.load(Ordering::Relaxed) != capacity.get() {
            self.effective.store(capacity.get(), Ordering::Relaxed);
        }
        if self.generation.load(Ordering::Relaxed) == UNKNOWN {
            let _ = self.generation.compare_exchange(
                UNKNOWN,
                generation.0,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
        }
    }

    pub(crate) fn is_destroyed(&self) -> bool {
        self.destroyed.load(Ordering::Acquire)
    }

    pub(crate) fn mark_destroyed(&self) {
        self.destroyed.store(true, Ordering::Release);
    }

    pub(crate) async fn counts(&self) -> Result<Option<LockCounts>> {
        self.check(Operation::Inspect)?;
        let answer = self.core.backend.counts(&self.id).await;
        answer.map_err(|fault| Error::from_fault(fault, Operation::Inspect).on(&self.id))
    }

    pub(crate) async fn inspect(&self) -> Result<Option<LockState>> {
        self.check(Operation::Inspect)?;
        let answer = self.core.backend.inspect(&self.id).await;
        answer.map_err(|fault| Error::from_fault(fault, Operation::Inspect).on(&self.id))
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut entries = self.core.entries.lock().unwrap_or_else(PoisonError::into_inner);
        // A newer entry of the same name stays.
        if entries.get(&self.id).is_some_and(|entry| entry.strong_count() == 0) {
            entries.remove(&self.id);
        }
    }
}
