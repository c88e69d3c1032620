//! A part of the store's locks, under one mutex.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
    ops::AddAssign,
    sync::Arc,
};

use super::alarm::Alarm;
use crate::{
    FencingToken, LockId,
    machine::{LockMachine, Step, Timeline},
};

/// How many idle entries a shard keeps for those who come back. Taking and releasing a lock over
/// and over must not make and drop its entry each time; a name that is never used again must not
/// stay for ever.
const IDLE_KEPT: usize = 512;

/// Below this many entries a shard is not swept because it grows.
const GROWTH_MIN: usize = 64;

/// See the module.
pub(super) struct Shard {
    locks: HashMap<Arc<LockId>, Box<Entry>, BuildHasherDefault<Prehashed>>,
    /// How many of them are known to be idle.
    idle: usize,
    /// At how many entries the forgotten ones are looked for: those whose grants ran out and whose
    /// names nobody touches again. Twice what the last sweep left, so a sweep costs O(1) per entry
    /// made since.
    sweep_at: usize,
    /// New entries count on from here, so a name that was dropped as idle does not start again
    /// behind its last fencing token (rule L8).
    fence_floor: FencingToken,
}

/// A lock and its timer.
pub(super) struct Entry {
    pub(super) lock: LockMachine,
    pub(super) alarm: Alarm,
    /// Whether its shard counts it as idle.
    pub(super) counted_idle: bool,
}

impl Shard {
    pub(super) fn new() -> Self {
        Self {
            locks: HashMap::default(),
            idle: 0,
            sweep_at: GROWTH_MIN,
            fence_floor: FencingToken(0),
        }
    }

    #[inline]
    pub(super) fn find(&mut self, id: &LockId) -> Option<&mut Entry> {
        self.locks.get_mut(id).map(|entry| &mut **entry)
    }

    #[cold]
    pub(super) fn insert(&mut self, id: &Arc<LockId>, timeline: &Timeline) -> &mut Entry {
        if self.locks.len() >= self.sweep_at {
            self.sweep(timeline);
        }
        let lock = LockMachine::new(Arc::clone(id), self.fence_floor);
        let entry = Box::new(Entry { lock, alarm: Alarm::default(), counted_idle: false });
        self.locks.entry(Arc::clone(id)).or_insert(entry)
    }

    pub(super) fn entries(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.locks.values_mut().map(|entry| &mut **entry)
    }

    /// Notes that entries became idle or are in use again, and sweeps when too many are idle. A
    /// sweep visits at most twice as many entries as it drops, so it costs O(1) per release.
    #[inline]
    pub(super) fn note(&mut self, noted: Noted, timeline: &Timeline) {
        self.idle = self.idle + noted.became_idle - noted.in_use_again;
        if noted.became_idle > 0 && self.idle > IDLE_KEPT.max(self.locks.len() - self.idle) {
            self.sweep(timeline);
        }
    }

    /// Drops every entry that nothing would be lost with.
    #[cold]
    fn sweep(&mut self, timeline: &Timeline) {
        let Self { locks, fence_floor, .. } = self;
        locks.retain(|_, entry| {
            let Entry { lock, alarm, .. } = &mut **entry;
            let mut step = Step::new(timeline);
            if !lock.is_awaited() {
                // Who is awaited has a timer, which grants on; here nobody can be granted.
                lock.tick(&mut step);
            }
            let idle = lock.is_idle(&mut step);
            if idle {
                alarm.clear(timeline.clock());
                *fence_floor = lock.last_fencing().max(*fence_floor);
            }
            !idle
        });
        self.idle = 0;
        self.sweep_at = GROWTH_MIN.max(2 * self.locks.len());
        self.locks.shrink_to(self.sweep_at);
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.locks.len()
    }
}

/// How many entries a step made idle, or took into use again.
#[derive(Clone, Copy, Default)]
pub(super) struct Noted {
    pub(super) became_idle: usize,
    pub(super) in_use_again: usize,
}

impl AddAssign for Noted {
    fn add_assign(&mut self, other: Self) {
        self.became_idle += other.became_idle;
        self.in_use_again += other.in_use_again;
    }
}

/// Takes over the hash that a [`LockId`] was made with.
#[derive(Default)]
pub(super) struct Prehashed(u64);

impl Hasher for Prehashed {
    fn write(&mut self, _: &[u8]) {
        unreachable!("a lock id hashes as one number");
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
