//! The store: shards of locks, entered for one step at a time.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use super::{
    alarm::Bell,
    shard::{Entry, Noted, Shard},
};
use crate::{
    ClientId, Clock, Fault, FaultKind, LockId, LockState, Namespace, defaults,
    machine::{LockMachine, Step, Timeline},
};

/// Locks of different names seldom meet at one mutex.
pub(super) const SHARDS: usize = 32;

/// What all clients of a store share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) timeline: Timeline,
    shards: Box<[Slot]>,
}

/// A shard on cache lines of its own.
#[repr(align(128))]
struct Slot(Mutex<Shard>);

/// A client: whatever asks in its name is refused once it is closed.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) id: ClientId,
    closed: AtomicBool,
}

impl Client {
    pub(super) fn new() -> Self {
        Self { id: ClientId::random(), closed: AtomicBool::new(false) }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Call it inside of the shard's mutex: the client is marked as closed before its death visits
    /// the shard, so either this sees the mark or the visit sees what is done now.
    fn check(&self) -> Result<(), Fault> {
        if self.is_closed() {
            return Err(closed());
        }
        Ok(())
    }
}

#[cold]
fn closed() -> Fault {
    Fault::new(FaultKind::Closed, "this client of the memory store was closed")
}

impl Shared {
    pub(super) fn new(clock: Arc<dyn Clock>, shards: usize) -> Arc<Self> {
        let shards = (0..shards).map(|_| Slot(Mutex::new(Shard::new()))).collect();
        Arc::new(Self { timeline: Timeline::starting_now(clock), shards })
    }

    /// One step on a lock, which is made when it is not there.
    #[inline]
    pub(super) fn create<R>(
        self: &Arc<Self>,
        client: &Client,
        id: &Arc<LockId>,
        work: impl FnOnce(&mut LockMachine, &mut Step<'_>) -> Result<R, Fault>,
    ) -> Result<R, Fault> {
        let mut step = Step::new(&self.timeline);
        let mut guard = self.shard(id);
        client.check()?;
        let shard = &mut *guard;
        let entry = match shard.find(id) {
            Some(entry) => entry,
            None => shard.insert(id, &self.timeline),
        };
        let result = work(&mut entry.lock, &mut step);
        let noted = self.settle(entry, &mut step);
        shard.note(noted, &self.timeline);
        drop(guard);
        step.finish();
        result
    }

    /// One step on a lock that is there; `none`: nobody uses it.
    #[inline]
    pub(super) fn find<R>(
        self: &Arc<Self>,
        client: &Client,
        id: &LockId,
        none: R,
        work: impl FnOnce(&mut LockMachine, &mut Step<'_>) -> R,
    ) -> Result<R, Fault> {
        let mut step = Step::new(&self.timeline);
        let mut guard = self.shard(id);
        client.check()?;
        let shard = &mut *guard;
        let Some(entry) = shard.find(id) else { return Ok(none) };
        let result = work(&mut entry.lock, &mut step);
        let noted = self.settle(entry, &mut step);
        shard.note(noted, &self.timeline);
        drop(guard);
        step.finish();
        Ok(result)
    }

    /// What a lock's timer does: the step itself is all there is to do (rule T3).
    pub(super) fn ring(self: &Arc<Self>, id: &LockId) {
        let mut step = Step::new(&self.timeline);
        let mut guard = self.shard(id);
        let shard = &mut *guard;
        if let Some(entry) = shard.find(id) {
            entry.alarm.clear(self.timeline.clock());
            entry.lock.tick(&mut step);
            let noted = self.settle(entry, &mut step);
            shard.note(noted, &self.timeline);
        }
        drop(guard);
        step.finish();
    }

    /// Ends what is bound to a client, which is refused from now on. The one thing that looks at
    /// every lock: it saves each request the upkeep of an index by client.
    pub(super) fn forget(self: &Arc<Self>, client: &Client) {
        client.closed.store(true, Ordering::Release);
        self.each(|lock, step| lock.forget_client(client.id, step));
    }

    /// Every lock in use, by namespace, name and kind.
    pub(super) fn survey(
        self: &Arc<Self>,
        client: &Client,
        namespace: Option<&Namespace>,
    ) -> Result<Vec<LockState>, Fault> {
        client.check()?;
        let mut found = Vec::new();
        self.each(|lock, step| {
            if namespace.is_none_or(|namespace| lock.id().namespace() == namespace) {
                found.extend(lock.inspect(step));
            }
        });
        found.sort_by(|a, b| {
            let key =
                |state: &LockState| (state.lock.namespace().clone(), state.lock.name().clone());
            key(a).cmp(&key(b)).then(a.lock.kind().cmp(&b.lock.kind()))
        });
        Ok(found)
    }

    /// One step on each lock, shard by shard.
    fn each(self: &Arc<Self>, mut work: impl FnMut(&mut LockMachine, &mut Step<'_>)) {
        for slot in &self.shards {
            let mut step = Step::new(&self.timeline);
            let mut guard = slot.lock();
            let mut noted = Noted::default();
            for entry in guard.entries() {
                work(&mut entry.lock, &mut step);
                noted += self.settle(entry, &mut step);
            }
            guard.note(noted, &self.timeline);
            drop(guard);
            step.finish();
        }
    }

    /// The end of each step: the timer, and whether the entry is idle. Inlined always: as a call it
    /// would cost a few per cent of an uncontended pair.
    #[inline(always)]
    fn settle(self: &Arc<Self>, entry: &mut Entry, step: &mut Step<'_>) -> Noted {
        if entry.lock.is_awaited() || entry.alarm.at().is_some() {
            self.settle_awaited(entry, step);
        }
        let idle = entry.lock.is_idle(step);
        let before = std::mem::replace(&mut entry.counted_idle, idle);
        Noted {
            became_idle: usize::from(idle && !before),
            in_use_again: usize::from(before && !idle),
        }
    }

    #[inline(never)]
    fn settle_awaited(self: &Arc<Self>, entry: &mut Entry, step: &mut Step<'_>) {
        // Each round drops at least one grant, so this ends.
        while !self.set_alarm(entry, step) {
            step.renew();
            entry.lock.tick(step);
        }
    }

    /// False: an expiry has passed meanwhile, so the lock must be looked at again.
    fn set_alarm(self: &Arc<Self>, entry: &mut Entry, step: &mut Step<'_>) -> bool {
        let clock = self.timeline.clock();
        let Entry { lock, alarm, .. } = entry;
        let awaited = lock.is_awaited();
        match lock.next_expiry() {
            Some(at) if awaited => alarm.ring_by(at, clock, || Bell::waker(self, lock.id())),
            _ => {
                // After a hand-off the next waiter comes soon, and setting a timer costs more than
                // the hand-off; one that rings for nobody rings once. In any other case nothing
                // is left behind.
                let handed_on =
                    lock.is_handed_on(step) && alarm.at() <= Some(step.now().after(defaults::TTL));
                if !handed_on {
                    alarm.clear(clock);
                }
                true
            }
        }
    }

    fn shard(&self, id: &LockId) -> MutexGuard<'_, Shard> {
        // The map within the shard uses the lowest and the highest bits.
        let index = (id.hash_value() >> 32) as usize % self.shards.len();
        self.shards[index].lock()
    }

    #[cfg(test)]
    pub(super) fn entries(&self) -> usize {
        self.shards.iter().map(|slot| slot.lock().len()).sum()
    }
}

impl Slot {
    fn lock(&self) -> MutexGuard<'_, Shard> {
        // A step that panicked would be a bug of ours; the locks of others go on.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Slot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Shard")
    }
}
