//! The semaphore against the model.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use leasehold_sync::{AcquireWith, Error, Semaphore, SemaphorePermit};

use crate::{
    naive::{Id, Want},
    program::Step,
    twin::{Outcome, Twin},
};

/// Counts how often a waiter is woken: once, by its grant or rejection.
#[derive(Default)]
pub(crate) struct Woken(AtomicU32);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Woken {
    pub(crate) fn times(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }
}

struct Waiting<'a> {
    id: Id,
    future: Pin<Box<AcquireWith<SemaphorePermit<'a>>>>,
    woken: Arc<Woken>,
    granted: bool,
    rejected: bool,
}

struct Pair<'a> {
    semaphore: &'a Semaphore,
    twin: Twin,
    holders: Vec<(Id, SemaphorePermit<'a>)>,
    waiting: Vec<Waiting<'a>>,
    next_id: Id,
}

pub(crate) fn run(capacity: u32, steps: &[Step]) {
    let semaphore = Semaphore::new(capacity).unwrap();
    let mut pair = Pair {
        semaphore: &semaphore,
        twin: Twin::new(capacity),
        holders: Vec::new(),
        waiting: Vec::new(),
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
    assert_eq!(semaphore.available_permits(), semaphore.capacity());
}

impl<'a> Pair<'a> {
    fn run(&mut self, step: &Step) {
        let id = self.next_id;
        self.next_id += 1;
        match *step {
            Step::Acquire { weight, .. } => self.acquire(id, weight),
            Step::Try { weight, .. } => {
                let got = self.semaphore.try_acquire_many(weight);
                self.tried(id, weight, got);
            }
            Step::TryTimeout { weight, .. } => {
                let mut once =
                    Box::pin(self.semaphore.acquire_many(weight).timeout(Duration::ZERO));
                let Poll::Ready(got) = poll(once.as_mut(), Waker::noop()) else {
                    panic!("a timeout of zero waits");
                };
                self.tried(
                    id,
                    weight,
                    got.map(Some).or_else(|e| e.is_timeout().then_some(None).ok_or(e)),
                );
            }
            Step::Release { holder } => {
                if let Some(place) = pick(&self.holders, holder) {
                    let (id, permits) = self.holders.swap_remove(place);
                    drop(permits);
                    let granted = self.twin.release(id);
                    self.note(&granted, &[]);
                }
            }
            Step::Cancel { waiter } => self.cancel(waiter),
            Step::Poll { waiter } => {
                if let Some(place) = pick(&self.waiting, waiter) {
                    self.poll(place);
                }
            }
            Step::PollAll => (0..self.waiting.len()).rev().for_each(|place| {
                self.poll(place);
            }),
            Step::Add { permits } => {
                self.semaphore.add_permits(permits).unwrap();
                let (granted, rejected) = self.twin.resize(self.twin.model.capacity + permits);
                self.note(&granted, &rejected);
            }
            Step::Forget { holder } => self.forget(holder),
            Step::ForgetFree { permits } => {
                let most = self.twin.free().min(self.twin.model.capacity - 1);
                let forgotten = self.semaphore.forget_permits(permits);
                assert_eq!(forgotten, permits.min(most));
                let (granted, rejected) = self.twin.resize(self.twin.model.capacity - forgotten);
                self.note(&granted, &rejected);
            }
            Step::Split { holder, permits } => self.split(id, holder, permits),
            Step::Merge { holder } => {
                if self.holders.len() > 1
                    && let Some(place) = pick(&self.holders, holder)
                {
                    let (other, permits) = self.holders.swap_remove(place);
                    let (id, into) = &mut self.holders[0];
                    into.merge(permits).unwrap();
                    self.twin.merge(*id, other);
                }
            }
            Step::Downgrade { .. } | Step::Upgrade | Step::TryUpgrade => {}
        }
    }

    fn acquire(&mut self, id: Id, weight: u32) {
        let mut future = Box::pin(self.semaphore.acquire_many(weight));
        let woken = Arc::new(Woken::default());
        let answer = poll(future.as_mut(), &Waker::from(woken.clone()));
        match (self.twin.arrive(id, weight, Want::Plain, true), answer) {
            (Outcome::Granted, Poll::Ready(Ok(permits))) => self.holders.push((id, permits)),
            (Outcome::Queued, Poll::Pending) => {
                self.waiting.push(Waiting { id, future, woken, granted: false, rejected: false });
            }
            (Outcome::Refused, Poll::Ready(Err(_))) => {}
            other => panic!("{other:?}"),
        }
    }

    fn tried(&mut self, id: Id, weight: u32, got: Result<Option<SemaphorePermit<'a>>, Error>) {
        let valid = (1..=self.twin.model.capacity).contains(&weight);
        match (self.twin.arrive(id, weight, Want::Plain, false), got) {
            (Outcome::Granted, Ok(Some(permits))) => self.holders.push((id, permits)),
            (Outcome::Refused, Ok(None)) if valid => {}
            (Outcome::Refused, Err(_)) if !valid => {}
            other => panic!("{other:?}"),
        }
    }

    fn cancel(&mut self, waiter: usize) {
        let Some(place) = pick(&self.waiting, waiter) else { return };
        let Waiting { id, future, granted, rejected, .. } = self.waiting.remove(place);
        drop(future);
        let next = match (granted, rejected) {
            (true, _) => self.twin.release(id),
            (_, true) => Vec::new(),
            _ => self.twin.cancel(id),
        };
        self.note(&next, &[]);
    }

    fn poll(&mut self, place: usize) {
        let waiting = &mut self.waiting[place];
        let answer = poll(waiting.future.as_mut(), &Waker::from(waiting.woken.clone()));
        match (answer, waiting.granted, waiting.rejected) {
            (Poll::Pending, false, false) => {}
            (Poll::Ready(Ok(permits)), true, false) => {
                let id = self.waiting.remove(place).id;
                self.holders.push((id, permits));
            }
            (Poll::Ready(Err(_)), false, true) => drop(self.waiting.remove(place)),
            other => panic!("{other:?}"),
        }
    }

    fn forget(&mut self, holder: usize) {
        let Some(place) = pick(&self.holders, holder) else { return };
        let (id, permits) = self.holders.swap_remove(place);
        let all = permits.permits() == self.semaphore.capacity();
        match permits.forget() {
            Ok(()) => {
                assert!(!all);
                let (granted, rejected) = self.twin.forget(id);
                self.note(&granted, &rejected);
            }
            Err(permits) => {
                assert!(all);
                self.holders.push((id, permits));
            }
        }
    }

    fn split(&mut self, new: Id, holder: usize, permits: u32) {
        let Some(place) = pick(&self.holders, holder) else { return };
        let (id, held) = &mut self.holders[place];
        let (id, valid) = (*id, (1..held.permits()).contains(&permits));
        let part = held.split(permits);
        assert_eq!(part.is_some(), valid);
        if let Some(part) = part {
            self.twin.split(id, permits, new);
            self.holders.push((new, part));
        }
    }

    fn note(&mut self, granted: &[Id], rejected: &[Id]) {
        for waiting in &mut self.waiting {
            waiting.granted |= granted.contains(&waiting.id);
            waiting.rejected |= rejected.contains(&waiting.id);
        }
    }

    fn compare(&self) {
        assert_eq!(self.semaphore.available_permits(), self.twin.free());
        assert_eq!(self.semaphore.capacity(), self.twin.model.capacity);
        assert_eq!(self.semaphore.queued(), self.twin.model.waiters.len());
        for (id, permits) in &self.holders {
            assert_eq!(permits.permits(), self.twin.holder(*id).weight);
        }
        // Exactly those who were granted or rejected were woken, once.
        for waiting in &self.waiting {
            let told = u32::from(waiting.granted || waiting.rejected);
            assert_eq!(waiting.woken.times(), told);
        }
    }
}

fn poll<F: Future>(future: Pin<&mut F>, waker: &Waker) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(waker))
}

pub(crate) fn pick<T>(list: &[T], index: usize) -> Option<usize> {
    (!list.is_empty()).then(|| index % list.len())
}
