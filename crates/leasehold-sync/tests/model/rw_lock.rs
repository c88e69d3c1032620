//! The read-write lock against the model.

use std::{
    collections::HashSet,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use leasehold_sync::{
    OwnedRwLockReadGuard, OwnedRwLockUpgradableGuard, OwnedRwLockWriteGuard, RwLock,
};

use crate::{
    naive::{Id, Want},
    program::Step,
    semaphore::{Woken, pick},
    twin::{Outcome, Twin},
};

enum Guard {
    Read(OwnedRwLockReadGuard<()>),
    Write(OwnedRwLockWriteGuard<()>),
    Upgradable(OwnedRwLockUpgradableGuard<()>),
}

type Request = Pin<Box<dyn Future<Output = Guard>>>;

struct Waiting {
    id: Id,
    /// The reader that asks for an upgrade.
    upgrades: Option<Id>,
    future: Request,
    woken: Arc<Woken>,
    granted: bool,
}

struct Pair {
    lock: Arc<RwLock<()>>,
    twin: Twin,
    holders: Vec<(Id, Guard)>,
    waiting: Vec<Waiting>,
    /// Who writes, or will once granted.
    writers: HashSet<Id>,
    next_id: Id,
}

pub(crate) fn run(capacity: u32, steps: &[Step]) {
    let lock = Arc::new(RwLock::with_max_readers((), capacity).unwrap());
    let mut pair = Pair {
        lock: lock.clone(),
        twin: Twin::new(capacity),
        holders: Vec::new(),
        waiting: Vec::new(),
        writers: HashSet::new(),
        next_id: 0,
    };
    for step in steps {
        pair.run(step);
        pair.compare();
    }
    // Whatever happened, giving everything back lets everybody in, and then all is free.
    while !pair.holders.is_empty() || !pair.waiting.is_empty() {
        pair.run(&Step::PollAll);
        pair.run(&Step::Release { holder: 0 });
        pair.compare();
    }
    assert!(!lock.is_locked() && lock.try_write().is_some());
}

impl Pair {
    fn run(&mut self, step: &Step) {
        let id = self.next_id;
        self.next_id += 1;
        match *step {
            Step::Acquire { kind, .. } => self.acquire(id, kind),
            Step::Try { kind, .. } => {
                let lock = self.lock.clone();
                let got = match kind {
                    0..4 => lock.try_read_owned().map(Guard::Read),
                    4..6 => lock.try_write_owned().map(Guard::Write),
                    _ => lock.try_upgradable_read_owned().map(Guard::Upgradable),
                };
                self.tried(id, kind, got);
            }
            Step::TryTimeout { kind, .. } => {
                let lock = self.lock.clone();
                let zero = Duration::ZERO;
                let got = match kind {
                    0..4 => at_once(lock.read_owned().timeout(zero)).ok().map(Guard::Read),
                    4..6 => at_once(lock.write_owned().timeout(zero)).ok().map(Guard::Write),
                    _ => {
                        let got = at_once(lock.upgradable_read_owned().timeout(zero));
                        got.ok().map(Guard::Upgradable)
                    }
                };
                self.tried(id, kind, got);
            }
            Step::Release { holder } => {
                if let Some(place) = pick(&self.holders, holder) {
                    let (id, guard) = self.holders.swap_remove(place);
                    drop(guard);
                    let granted = self.twin.release(id);
                    self.note(&granted);
                }
            }
            Step::Downgrade { holder } => self.downgrade(holder),
            Step::Upgrade => self.upgrade(id),
            Step::TryUpgrade => self.try_upgrade(id),
            Step::Cancel { waiter } => self.cancel(waiter),
            Step::Poll { waiter } => {
                if let Some(place) = pick(&self.waiting, waiter) {
                    self.poll(place);
                }
            }
            Step::PollAll => (0..self.waiting.len()).rev().for_each(|place| self.poll(place)),
            _ => {}
        }
    }

    fn arrive(&mut self, id: Id, kind: u8, may_wait: bool) -> Outcome {
        if (4..6).contains(&kind) {
            self.writers.insert(id);
        }
        let (weight, want) = match kind {
            0..4 => (1, Want::Plain),
            4..6 => (self.twin.model.capacity, Want::Plain),
            _ => (1, Want::Upgradable),
        };
        self.twin.arrive(id, weight, want, may_wait)
    }

    fn acquire(&mut self, id: Id, kind: u8) {
        let lock = self.lock.clone();
        let mut future: Request = match kind {
            0..4 => Box::pin(async { Guard::Read(lock.read_owned().await) }),
            4..6 => Box::pin(async { Guard::Write(lock.write_owned().await) }),
            _ => Box::pin(async { Guard::Upgradable(lock.upgradable_read_owned().await) }),
        };
        let woken = Arc::new(Woken::default());
        let answer = poll(&mut future, &Waker::from(woken.clone()));
        match (self.arrive(id, kind, true), answer) {
            (Outcome::Granted, Poll::Ready(guard)) => self.holders.push((id, guard)),
            (Outcome::Queued, Poll::Pending) => {
                let upgrades = None;
                self.waiting.push(Waiting { id, upgrades, future, woken, granted: false });
            }
            (outcome, _) => panic!("the model says {outcome:?}, the lock does not"),
        }
    }

    fn tried(&mut self, id: Id, kind: u8, got: Option<Guard>) {
        let granted = self.arrive(id, kind, false) == Outcome::Granted;
        assert_eq!(got.is_some(), granted);
        self.holders.extend(got.map(|guard| (id, guard)));
    }

    fn downgrade(&mut self, holder: usize) {
        let Some(place) = pick(&self.holders, holder) else { return };
        let (id, guard) = self.holders.swap_remove(place);
        let guard = match guard {
            Guard::Read(guard) => return self.holders.push((id, Guard::Read(guard))),
            Guard::Write(guard) => guard.downgrade(),
            Guard::Upgradable(guard) => guard.downgrade(),
        };
        self.writers.remove(&id);
        self.holders.push((id, Guard::Read(guard)));
        let granted = self.twin.downgrade(id);
        self.note(&granted);
    }

    fn take_upgradable(&mut self) -> Option<(Id, OwnedRwLockUpgradableGuard<()>)> {
        let is_it = |(_, guard): &(Id, Guard)| matches!(guard, Guard::Upgradable(_));
        let place = self.holders.iter().position(is_it)?;
        match self.holders.swap_remove(place) {
            (id, Guard::Upgradable(guard)) => Some((id, guard)),
            _ => unreachable!("it was found to be one"),
        }
    }

    fn upgrade(&mut self, id: Id) {
        let Some((holder, guard)) = self.take_upgradable() else { return };
        let mut future: Request = Box::pin(async { Guard::Write(guard.upgrade().await) });
        let woken = Arc::new(Woken::default());
        let answer = poll(&mut future, &Waker::from(woken.clone()));
        self.writers.insert(id);
        match (self.twin.upgrade(id), answer) {
            (Outcome::Granted, Poll::Ready(guard)) => {
                self.writers.insert(holder);
                self.holders.push((holder, guard));
            }
            (Outcome::Queued, Poll::Pending) => {
                let upgrades = Some(holder);
                self.waiting.push(Waiting { id, upgrades, future, woken, granted: false });
            }
            (outcome, _) => panic!("the model says {outcome:?}, the lock does not"),
        }
    }

    fn try_upgrade(&mut self, id: Id) {
        let Some((holder, guard)) = self.take_upgradable() else { return };
        let alone = self.twin.model.used() == 1;
        match guard.try_upgrade() {
            Ok(guard) => {
                assert!(alone);
                assert_eq!(self.twin.upgrade(id), Outcome::Granted);
                self.writers.insert(holder);
                self.holders.push((holder, Guard::Write(guard)));
            }
            Err(guard) => {
                assert!(!alone);
                self.holders.push((holder, Guard::Upgradable(guard)));
            }
        }
    }

    fn cancel(&mut self, waiter: usize) {
        let Some(place) = pick(&self.waiting, waiter) else { return };
        let Waiting { id, upgrades, future, granted, .. } = self.waiting.remove(place);
        drop(future);
        let mut next = Vec::new();
        if !granted {
            next = self.twin.cancel(id);
        }
        // The guard is part of an upgrade, and goes with it; so does a grant that nobody took.
        if let Some(holder) = upgrades.or(granted.then_some(id)) {
            next.extend(self.twin.release(holder));
        }
        self.note(&next);
    }

    fn poll(&mut self, place: usize) {
        let waiting = &mut self.waiting[place];
        let answer = poll(&mut waiting.future, &Waker::from(waiting.woken.clone()));
        match (answer, waiting.granted) {
            (Poll::Pending, false) => {}
            (Poll::Ready(guard), true) => {
                let waiting = self.waiting.remove(place);
                self.holders.push((waiting.upgrades.unwrap_or(waiting.id), guard));
            }
            (answer, granted) => panic!("ready {}, granted {granted}", answer.is_ready()),
        }
    }

    fn note(&mut self, granted: &[Id]) {
        for waiting in &mut self.waiting {
            if granted.contains(&waiting.id) {
                waiting.granted = true;
                self.writers.extend(waiting.upgrades);
            }
        }
    }

    fn compare(&self) {
        let model = &self.twin.model;
        let writes = model.holders.iter().any(|holder| self.writers.contains(&holder.id));
        let held = model.capacity - self.twin.free();
        assert_eq!(self.lock.is_locked(), held > 0);
        assert_eq!(self.lock.is_write_locked(), writes);
        assert_eq!(self.lock.readers(), if writes { 0 } else { held });
        assert_eq!(self.lock.is_read_locked(), !writes && held > 0);
        assert_eq!(self.lock.queued(), model.waiters.len());
        // Exactly those who were granted were woken, once.
        for waiting in &self.waiting {
            assert_eq!(waiting.woken.times(), u32::from(waiting.granted));
        }
    }
}

fn poll(future: &mut Request, waker: &Waker) -> Poll<Guard> {
    future.as_mut().poll(&mut Context::from_waker(waker))
}

fn at_once<F: Future>(future: F) -> F::Output {
    let mut future = Box::pin(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("a timeout of zero waits"),
    }
}
