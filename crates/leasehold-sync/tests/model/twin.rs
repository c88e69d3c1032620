//! The naive model and `leasehold-queue` in step: what a lock has to agree with.

use std::collections::HashMap;

use leasehold_queue::{Enqueued, PermitQueue, WaiterKey};

use crate::naive::{Holder, Id, Model, Waiter, Want};

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Granted,
    Queued,
    Refused,
}

pub(crate) struct Twin {
    pub(crate) model: Model,
    queue: PermitQueue<Id>,
    keys: HashMap<Id, WaiterKey>,
}

impl Twin {
    pub(crate) fn new(capacity: u32) -> Self {
        Self {
            model: Model { capacity, holders: Vec::new(), waiters: Vec::new() },
            queue: PermitQueue::new(capacity).unwrap(),
            keys: HashMap::new(),
        }
    }

    pub(crate) fn arrive(&mut self, id: Id, weight: u32, want: Want, may_wait: bool) -> Outcome {
        let request = Waiter { id, weight, want };
        let valid = (1..=self.model.capacity).contains(&weight);
        let queued = match (may_wait, want) {
            (true, Want::Plain) => self.queue.enqueue(weight, id).map_err(|_| ()),
            (true, _) => self.queue.enqueue_upgradable(weight, id).map_err(|_| ()),
            (false, Want::Plain) => tried(self.queue.acquire_now(weight), id),
            (false, _) => tried(self.queue.acquire_upgradable_now(weight), id),
        };
        let admitted = valid && self.model.waiters.is_empty() && self.model.fits(request);
        let outcome = match queued {
            Ok(Enqueued::Granted(_)) => Outcome::Granted,
            Ok(Enqueued::Queued(key)) => {
                self.keys.insert(id, key);
                Outcome::Queued
            }
            Err(()) => Outcome::Refused,
        };
        let expected = match (admitted, valid && may_wait) {
            (true, _) => Outcome::Granted,
            (false, true) => Outcome::Queued,
            (false, false) => Outcome::Refused,
        };
        assert_eq!(outcome, expected);
        match outcome {
            Outcome::Granted => self.model.hold(request),
            Outcome::Queued => self.model.waiters.push(request),
            Outcome::Refused => {}
        }
        outcome
    }

    /// The holder, wherever it has come from, holds no more. Gives who is granted by that.
    pub(crate) fn release(&mut self, id: Id) -> Vec<Id> {
        let place = self.holder_place(id);
        let holder = self.model.holders.remove(place);
        let mut granted = Vec::new();
        let on_grant = |_, _, id| granted.push(id);
        match holder.upgradable {
            true => self.queue.release_upgradable(on_grant).unwrap(),
            false => self.queue.release(holder.weight, on_grant).unwrap(),
        }
        self.granted(granted)
    }

    /// A holder keeps one permit, and the upgradable slot no more.
    pub(crate) fn downgrade(&mut self, id: Id) -> Vec<Id> {
        let place = self.holder_place(id);
        let holder = self.model.holders[place];
        let mut granted = Vec::new();
        let on_grant = |_, _, id| granted.push(id);
        match holder.upgradable {
            true => self.queue.downgrade_upgradable(1, on_grant).unwrap(),
            false => self.queue.downgrade(holder.weight, 1, on_grant).unwrap(),
        }
        self.model.holders[place] = Holder { weight: 1, upgradable: false, ..holder };
        self.granted(granted)
    }

    /// The upgradable holder asks for all; the request has an id of its own.
    pub(crate) fn upgrade(&mut self, id: Id) -> Outcome {
        let capacity = self.model.capacity;
        let request = Waiter { id, weight: capacity - 1, want: Want::Upgrade };
        let fits = self.model.fits(request);
        match self.queue.upgrade(capacity, id, |_, _, _| panic!("nothing is free")).unwrap() {
            Enqueued::Granted(_) => {
                assert!(fits);
                self.model.hold(request);
                Outcome::Granted
            }
            Enqueued::Queued(key) => {
                assert!(!fits);
                self.keys.insert(id, key);
                self.model.waiters.insert(0, request);
                Outcome::Queued
            }
        }
    }

    /// A waiter leaves. Gives who is granted by that.
    pub(crate) fn cancel(&mut self, id: Id) -> Vec<Id> {
        let place = self.model.waiters.iter().position(|waiter| waiter.id == id).unwrap();
        self.model.waiters.remove(place);
        let mut granted = Vec::new();
        let key = self.keys[&id];
        assert_eq!(self.queue.cancel(key, |_, _, id| granted.push(id)), Some(id));
        self.granted(granted)
    }

    /// Another capacity. Gives who is granted and who is rejected.
    pub(crate) fn resize(&mut self, capacity: u32) -> (Vec<Id>, Vec<Id>) {
        let (mut granted, mut rejected) = (Vec::new(), Vec::new());
        let on_grant = |_, _, id| granted.push(id);
        self.queue.resize(capacity, on_grant, |_, _, id| rejected.push(id)).unwrap();
        self.model.capacity = capacity;
        let too_heavy = |waiter: &Waiter| waiter.weight > capacity;
        let leave: Vec<Id> =
            self.model.waiters.iter().filter(|w| too_heavy(w)).map(|w| w.id).collect();
        self.model.waiters.retain(|waiter| !too_heavy(waiter));
        assert_eq!(rejected, leave);
        (self.granted(granted), rejected)
    }

    /// What a holder holds goes away: to the queue, a shrink, which makes nothing free, and then a
    /// release.
    pub(crate) fn forget(&mut self, id: Id) -> (Vec<Id>, Vec<Id>) {
        let rest = self.model.capacity - self.holder(id).weight;
        let (granted, rejected) = self.resize(rest);
        (granted.into_iter().chain(self.release(id)).collect(), rejected)
    }

    /// A holder gives a part of its permits to a new one.
    pub(crate) fn split(&mut self, id: Id, permits: u32, new: Id) {
        let place = self.holder_place(id);
        self.model.holders[place].weight -= permits;
        self.model.holders.push(Holder { id: new, weight: permits, upgradable: false });
    }

    /// A holder takes over what another holds.
    pub(crate) fn merge(&mut self, id: Id, other: Id) {
        let other = self.holder_place(other);
        let weight = self.model.holders.remove(other).weight;
        let place = self.holder_place(id);
        self.model.holders[place].weight += weight;
    }

    pub(crate) fn holder(&self, id: Id) -> Holder {
        self.model.holders[self.holder_place(id)]
    }

    pub(crate) fn free(&self) -> u32 {
        assert_eq!(self.queue.used(), self.model.used());
        assert_eq!(self.queue.queued() as usize, self.model.waiters.len());
        self.model.capacity - self.model.used()
    }

    fn granted(&mut self, granted: Vec<Id>) -> Vec<Id> {
        let expected: Vec<Id> = self.model.grant_on().into_iter().map(|(id, _)| id).collect();
        assert_eq!(granted, expected);
        granted
    }

    fn holder_place(&self, id: Id) -> usize {
        self.model.holders.iter().position(|holder| holder.id == id).expect("a holder")
    }
}

/// A try in the shape of an enqueue.
fn tried<E>(outcome: Result<bool, E>, id: Id) -> Result<Enqueued<Id>, ()> {
    if matches!(outcome, Ok(true)) { Ok(Enqueued::Granted(id)) } else { Err(()) }
}
