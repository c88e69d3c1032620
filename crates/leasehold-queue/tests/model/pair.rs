//! Runs each step on the queue and on the model, and compares all that can be seen.

use leasehold_queue::{Enqueued, PermitQueue, WaiterKey};

use crate::{
    naive::{Holder, Id, Model, Waiter, Want},
    program::Step,
};

/// The queue and its model, in step.
pub(crate) struct Pair {
    pub(crate) queue: PermitQueue<Id>,
    pub(crate) model: Model,
    /// Every key there ever was.
    keys: Vec<(Id, WaiterKey)>,
    next_id: Id,
}

impl Pair {
    pub(crate) fn new(capacity: u32) -> Self {
        Self {
            queue: PermitQueue::new(capacity).unwrap(),
            model: Model { capacity, holders: Vec::new(), waiters: Vec::new() },
            keys: Vec::new(),
            next_id: 0,
        }
    }

    pub(crate) fn run(&mut self, step: &Step) {
        let id = self.next_id;
        self.next_id += 1;
        match *step {
            Step::Enqueue { weight, upgradable } => {
                self.arrive(Waiter { id, weight, want: want(upgradable) }, true);
            }
            Step::Try { weight, upgradable } => {
                self.arrive(Waiter { id, weight, want: want(upgradable) }, false);
            }
            Step::Release { holder } => self.release(holder),
            Step::ReleaseTooMuch { extra } => self.release_too_much(extra),
            Step::Downgrade { holder, to } => self.downgrade(holder, to),
            Step::Upgrade { to } => self.upgrade(id, to),
            Step::CancelAnyKey { key } => {
                if let Some(&(id, _)) = pick(&self.keys, key) {
                    self.cancel(id);
                }
            }
            Step::Cancel { waiter } => {
                if let Some(&waiter) = pick(&self.model.waiters, waiter) {
                    self.cancel(waiter.id);
                }
            }
            Step::Resize { capacity } => self.resize(capacity),
            Step::Drain => {
                let mut left = Vec::new();
                self.queue.drain_waiters(|_, weight, id| left.push((id, weight)));
                let expected = self.model.waiters.drain(..);
                assert_eq!(left, expected.map(|w| (w.id, w.weight)).collect::<Vec<_>>());
            }
        }
        self.compare();
    }

    fn arrive(&mut self, request: Waiter, may_wait: bool) {
        let Waiter { id, weight, want } = request;
        let queue = &mut self.queue;
        let outcome = match (may_wait, want) {
            (true, Want::Plain) => queue.enqueue(weight, id).map_err(|(_, back)| back),
            (true, _) => queue.enqueue_upgradable(weight, id).map_err(|(_, back)| back),
            (false, Want::Plain) => tried(queue.acquire_now(weight), id),
            (false, _) => tried(queue.acquire_upgradable_now(weight), id),
        };
        let valid = (1..=self.model.capacity).contains(&weight);
        let admitted = valid && self.model.waiters.is_empty() && self.model.fits(request);
        match outcome {
            Ok(Enqueued::Granted(back)) => {
                assert_eq!((admitted, back), (true, id));
                self.model.hold(request);
            }
            Ok(Enqueued::Queued(key)) => {
                assert!(valid && !admitted && may_wait);
                self.keys.push((id, key));
                self.model.waiters.push(request);
            }
            Err(back) => {
                assert!(!valid || !admitted && !may_wait);
                assert_eq!(back, id);
            }
        }
    }

    fn release(&mut self, holder: usize) {
        let Some(&holder) = pick(&self.model.holders, holder) else { return };
        let mut granted = Vec::new();
        let on_grant = |_, weight, id| granted.push((id, weight));
        let released = match holder.upgradable {
            true => self.queue.release_upgradable(on_grant),
            false => self.queue.release(holder.weight, on_grant),
        };
        if holder.upgradable && self.model.upgrade_pending() {
            assert!(released.is_err() && granted.is_empty());
            return;
        }
        released.unwrap();
        self.model.holders.retain(|other| *other != holder);
        assert_eq!(granted, self.model.grant_on());
    }

    fn release_too_much(&mut self, extra: u32) {
        let plain: u32 =
            self.model.holders.iter().filter(|h| !h.upgradable).map(|h| h.weight).sum();
        let refused = self.queue.release(plain + 1 + extra, |_, _, _| panic!("a grant"));
        assert!(refused.is_err());
        assert!(self.queue.release(0, |_, _, _| panic!("a grant")).is_err());
    }

    fn downgrade(&mut self, holder: usize, to: u32) {
        let Some(&holder) = pick(&self.model.holders, holder) else { return };
        let mut granted = Vec::new();
        let on_grant = |_, weight, id| granted.push((id, weight));
        let done = match holder.upgradable {
            true => self.queue.downgrade_upgradable(to, on_grant),
            false => self.queue.downgrade(holder.weight, to, on_grant),
        };
        let pinned = holder.upgradable && self.model.upgrade_pending();
        if pinned || !(1..=holder.weight).contains(&to) {
            assert!(done.is_err() && granted.is_empty());
            return;
        }
        done.unwrap();
        let kept = self.model.holders.iter_mut().find(|other| **other == holder).unwrap();
        *kept = Holder { weight: to, upgradable: false, ..holder };
        assert_eq!(granted, self.model.grant_on());
    }

    fn upgrade(&mut self, id: Id, to: u32) {
        let mut granted = Vec::new();
        let outcome = self.queue.upgrade(to, id, |_, weight, id| granted.push((id, weight)));
        let holder = self.model.upgradable().filter(|_| !self.model.upgrade_pending());
        let valid = (1..=self.model.capacity).contains(&to);
        let Some(holder) = holder.filter(|holder| valid && to >= holder.weight) else {
            assert!(outcome.unwrap_err().1 == id && granted.is_empty());
            return;
        };
        let request = Waiter { id, weight: to - holder.weight, want: Want::Upgrade };
        match outcome.unwrap() {
            Enqueued::Granted(back) => {
                assert!(self.model.fits(request) && back == id);
                self.model.hold(request);
            }
            Enqueued::Queued(key) => {
                assert!(!self.model.fits(request));
                self.keys.push((id, key));
                self.model.waiters.insert(0, request);
            }
        }
        assert_eq!(granted, self.model.grant_on());
    }

    pub(crate) fn cancel(&mut self, id: Id) {
        let key = self.key(id);
        let place = self.model.waiters.iter().position(|waiter| waiter.id == id);
        assert_eq!(self.queue.get(key).copied(), place.map(|_| id));
        assert_eq!(self.queue.get_mut(key).copied(), place.map(|_| id));
        let mut granted = Vec::new();
        let left = self.queue.cancel(key, |_, weight, id| granted.push((id, weight)));
        assert_eq!(left, place.map(|place| self.model.waiters.remove(place).id));
        assert_eq!(granted, self.model.grant_on());
    }

    fn resize(&mut self, capacity: u32) {
        let (mut granted, mut rejected) = (Vec::new(), Vec::new());
        let on_grant = |_, weight, id| granted.push((id, weight));
        let done =
            self.queue.resize(capacity, on_grant, |_, weight, id| rejected.push((id, weight)));
        assert_eq!(done.is_ok(), capacity > 0);
        if done.is_err() {
            return;
        }
        self.model.capacity = capacity;
        let upgradable = self.model.upgradable().map_or(0, |holder| holder.weight);
        let too_heavy = |waiter: &Waiter| match waiter.want {
            Want::Upgrade => waiter.weight + upgradable > capacity,
            _ => waiter.weight > capacity,
        };
        let (leave, stay) = self.model.waiters.iter().partition(|waiter| too_heavy(waiter));
        let leave: Vec<Waiter> = leave;
        self.model.waiters = stay;
        assert_eq!(rejected, leave.iter().map(|w| (w.id, w.weight)).collect::<Vec<_>>());
        assert_eq!(granted, self.model.grant_on());
    }

    /// Ids grow, so the list of keys is sorted.
    fn key(&self, id: Id) -> WaiterKey {
        self.keys[self.keys.binary_search_by_key(&id, |(id, _)| *id).unwrap()].1
    }

    /// What must hold after every step.
    fn compare(&self) {
        let (queue, model) = (&self.queue, &self.model);
        // No permit is lost, and none is given twice (rule Q4).
        assert_eq!(queue.used(), model.used());
        assert_eq!(queue.capacity(), model.capacity);
        assert_eq!(queue.free(), model.capacity.saturating_sub(model.used()));
        assert_eq!(queue.has_upgradable(), model.upgradable().is_some());
        assert!(model.holders.iter().filter(|holder| holder.upgradable).count() <= 1);
        // Who waits, in which order, under which key.
        let expected: Vec<_> =
            model.waiters.iter().map(|w| (self.key(w.id), w.weight, w.id)).collect();
        let queued: Vec<_> = queue.iter().map(|(key, weight, id)| (key, weight, *id)).collect();
        assert_eq!(queued, expected);
        assert_eq!(
            queue.peek().map(|(key, weight, id)| (key, weight, *id)),
            queued.first().copied()
        );
        assert_eq!(queue.queued() as usize, queued.len());
        assert_eq!(queue.is_idle(), model.holders.is_empty() && queued.is_empty());
        // The head never fits while it is queued (rule Q2).
        assert!(model.waiters.first().is_none_or(|head| !model.fits(*head)));
        // FIFO: ids grow with the arrival, only a pending upgrade stands before them.
        let plain = model.waiters.iter().filter(|waiter| waiter.want != Want::Upgrade);
        assert!(plain.map(|waiter| waiter.id).is_sorted());
    }
}

fn want(upgradable: bool) -> Want {
    if upgradable { Want::Upgradable } else { Want::Plain }
}

/// A try in the shape of an enqueue: refused and busy both hand the request back.
fn tried<E>(outcome: Result<bool, E>, id: Id) -> Result<Enqueued<Id>, Id> {
    match outcome {
        Ok(true) => Ok(Enqueued::Granted(id)),
        Ok(false) | Err(_) => Err(id),
    }
}

fn pick<T>(list: &[T], index: usize) -> Option<&T> {
    list.get(index % list.len().max(1))
}
