//! Plain locks, and leases without a TTL, in one order; leases with one wherever it happens, also
//! against that order. Such a program always comes to its end, so nothing may be told.

use std::{
    any::Any,
    cell::{Cell, RefCell},
    rc::Rc,
    sync::Arc,
};

use leasehold::{
    InCurrentScope, scope,
    sync::{Mutex, RwLock},
};

use crate::{
    kit::{Random, Task, join, poll, polls},
    leases::{End, Leased, Leases},
};

/// How many locks there are, in their order.
const LOCKS: usize = 5;
/// How many locks are taken with a TTL, in any order.
const EXPIRING: usize = 3;
/// How many polls the whole test makes.
const STEPS: usize = 1_000_000;
/// How many tasks a program starts with.
const TASKS: usize = 6;
/// How deep a program nests.
const DEPTH: usize = 5;

enum Lock {
    Mutex(Arc<Mutex<u32>>),
    ReadWrite(Arc<RwLock<u32>>),
    Lease(Leased),
}

/// What the tasks of one program share.
struct World {
    locks: Vec<Lock>,
    expiring: Vec<Leased>,
    leases: Leases,
    random: RefCell<Random>,
    spawned: RefCell<Vec<Task<'static>>>,
    /// Guards that were moved out of where they were taken; the executor drops them.
    parked: RefCell<Vec<Box<dyn Any>>>,
    counts: Rc<Counts>,
}

#[derive(Default)]
struct Counts {
    granted: Cell<usize>,
    leased: Cell<usize>,
    ran_out: Cell<usize>,
    timed_out: Cell<usize>,
}

/// Where a work stands: what it may take.
#[derive(Clone, Copy)]
struct At {
    /// The first lock of the order that it may take.
    from: usize,
    /// Which of the others are held by its frames, a bit for each: those would be reentrant.
    inside: usize,
    depth: usize,
}

impl At {
    const START: Self = Self { from: 0, inside: 0, depth: DEPTH };

    const fn deeper(self) -> Self {
        Self { depth: self.depth - 1, ..self }
    }
}

fn one_more(count: &Cell<usize>) {
    count.set(count.get() + 1);
}

impl World {
    fn new(seed: u64, counts: &Rc<Counts>) -> Rc<Self> {
        let (mut random, leases) = (Random::new(seed), Leases::new(seed));
        let locks = (0..LOCKS).map(|at| match random.below(4) {
            0 | 1 => Lock::Mutex(Arc::new(Mutex::new(0))),
            2 => Lock::ReadWrite(Arc::new(RwLock::new(0))),
            _ => Lock::Lease(leases.lock(&format!("in order {at}"))),
        });
        let locks = locks.collect();
        let expiring = (0..EXPIRING).map(|at| leases.lock(&format!("with a TTL {at}"))).collect();
        Rc::new(Self {
            locks,
            expiring,
            leases,
            random: RefCell::new(random),
            spawned: RefCell::default(),
            parked: RefCell::default(),
            counts: Rc::clone(counts),
        })
    }

    fn below(&self, below: usize) -> usize {
        self.random.borrow_mut().below(below)
    }

    fn work(self: &Rc<Self>, at: At) -> Task<'static> {
        let world = Rc::clone(self);
        Box::pin(async move {
            polls(world.below(3)).await;
            if at.depth == 0 {
                return;
            }
            match world.below(10) {
                0 => {
                    let branches = (0..2).map(|_| world.work(at.deeper()));
                    join(branches.collect()).await;
                }
                // A task that nobody waits for may begin with the first lock again.
                1 => {
                    let start = At { depth: at.depth - 1, ..At::START };
                    world.spawn(world.work(start));
                }
                2 => scope(world.work(at.deeper())).await,
                // One that is waited for may not.
                3 => world.child(at.deeper()).await,
                4..=6 => {
                    world.expiring(at.deeper()).await;
                    world.work(at.deeper()).await;
                }
                _ if at.from < LOCKS => {
                    let lock = at.from + world.below(LOCKS - at.from);
                    let at = At { from: lock + 1, ..at.deeper() };
                    world.locked(lock, at).await;
                    world.work(at).await;
                }
                _ => {}
            }
        })
    }

    fn spawn(&self, task: Task<'static>) {
        self.spawned.borrow_mut().push(task);
    }

    /// Spawns, and waits for the end.
    async fn child(self: &Rc<Self>, at: At) {
        let done = Rc::new(Cell::new(false));
        let (told, work) = (Rc::clone(&done), self.work(at));
        let child = async move {
            work.await;
            told.set(true);
        };
        if self.below(2) == 0 {
            self.spawn(Box::pin(child.in_current_scope()));
        } else {
            self.spawn(Box::pin(child));
        }
        // A child that the executor drops never tells.
        let mut patience = 500;
        while !done.get() && patience > 0 {
            polls(1).await;
            patience -= 1;
        }
    }

    /// A lock of the order, with those behind it inside.
    async fn locked(self: &Rc<Self>, lock: usize, at: At) {
        let inside = async || self.work(at).await;
        let told = match &self.locks[lock] {
            Lock::Mutex(mutex) if self.below(5) == 0 => {
                let guard = Arc::clone(mutex).lock_owned().await;
                return self.hand_on(guard, at).await;
            }
            Lock::Mutex(mutex) => mutex.run_exclusive(async |_| inside().await).await,
            Lock::ReadWrite(lock) if self.below(2) == 0 => {
                lock.run_shared(async |_| inside().await).await
            }
            Lock::ReadWrite(lock) => lock.run_exclusive(async |_| inside().await).await,
            Lock::Lease(lease) => {
                let request = lease.ask(self.below(2) == 0).ttl(None);
                return self.end(End::of(request.run(async |_| inside().await).await));
            }
        };
        told.unwrap_or_else(|error| panic!("told of what is not: {error}"));
        one_more(&self.counts.granted);
    }

    /// A lock that is free again in time, whoever holds it and whatever its holder waits for.
    async fn expiring(self: &Rc<Self>, at: At) {
        let lock = self.below(EXPIRING);
        let request = self.expiring[lock].ask(self.below(2) == 0).ttl(self.leases.ttl());
        let is_inside = at.inside & 1 << lock != 0;
        if is_inside || self.below(4) == 0 {
            // Not checked: it may even wait for itself, until the TTL of the outer one is over.
            match request.await {
                Ok(guard) => self.hand_on(guard, at).await,
                Err(error) => self.end(End::Refused(error)),
            }
            return;
        }
        let at = At { inside: at.inside | 1 << lock, ..at };
        self.end(End::of(request.run(async |_| self.work(at).await).await));
    }

    fn end(&self, end: End) {
        one_more(match end {
            End::Done => &self.counts.leased,
            End::RanOut => &self.counts.ran_out,
            End::Refused(error) => {
                assert!(error.is_timeout(), "told of what is not: {error}");
                &self.counts.timed_out
            }
        });
    }

    /// A guard in the hand: kept for the work, or moved to somewhere else.
    async fn hand_on(self: &Rc<Self>, guard: impl Any, at: At) {
        if self.below(3) == 0 {
            self.parked.borrow_mut().push(Box::new(guard));
        } else {
            self.work(at).await;
        }
    }
}

/// Runs one program to its end, and says in how many polls.
fn run(seed: u64, counts: &Rc<Counts>) -> usize {
    let world = World::new(seed, counts);
    let mut tasks = (0..TASKS).map(|_| world.work(At::START)).collect::<Vec<_>>();
    let mut steps = 0;
    while !tasks.is_empty() {
        assert!(steps < 1_000_000, "program {seed} is stuck: it is not free of deadlocks");
        let at = world.below(tasks.len());
        steps += 1;
        if world.below(500) == 0 {
            // Dropped where it is, outside of any poll.
            drop(tasks.swap_remove(at));
        } else if poll(tasks[at].as_mut()).is_ready() {
            drop(tasks.swap_remove(at));
        }
        tasks.append(&mut world.spawned.borrow_mut());
        world.leases.pass();
        if world.below(10) == 0 {
            let parked = world.parked.borrow_mut().pop();
            drop(parked);
        }
    }
    world.parked.borrow_mut().clear();
    steps
}

#[test]
fn r4_a_million_steps_of_programs_with_ttls_are_told_of_nothing() {
    let counts = Rc::new(Counts::default());
    let (mut steps, mut seed) = (0, 0);
    while steps < STEPS {
        seed += 1;
        steps += run(seed, &counts);
    }
    let Counts { granted, leased, ran_out, timed_out } = &*counts;
    let counts = [granted, leased, ran_out].map(Cell::get);
    assert!(counts.iter().all(|count| *count > 1_000), "{counts:?} in {seed} programs");
    // They wait for up to a minute, in which a TTL is over a thousand times.
    assert!(timed_out.get() * 1_000 < leased.get(), "{timed_out:?} of {leased:?}");
}
