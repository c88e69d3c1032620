//! Locks in any order: whoever makes the others stuck is told, and whoever waits for a lease with a
//! TTL, or for somebody who does, is not.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
};

use leasehold::sync::{Error, ErrorKind, Mutex, RwLock};

use crate::{
    judge::{Expected, Judge},
    kit::{Random, Task, join, poll, polls},
    leases::{End, Leased, Leases},
};

/// The plain ones come first.
const PLAIN: usize = 3;
const LOCKS: usize = PLAIN + 3;
const TASKS: usize = 5;
const DEPTH: usize = 5;
/// How many polls the whole test makes.
const STEPS: usize = 200_000;

enum Lock {
    Mutex(Mutex<u32>),
    RwLock(RwLock<u32>),
    Lease(Leased),
}

struct World {
    locks: Vec<Lock>,
    leases: Leases,
    random: RefCell<Random>,
    judge: Judge,
    told: Rc<Told>,
}

#[derive(Default)]
struct Told {
    deadlocks: Cell<usize>,
    reentrant: Cell<usize>,
    shared: Cell<usize>,
    granted: Cell<usize>,
    leased: Cell<usize>,
    ran_out: Cell<usize>,
}

fn one_more(count: &Cell<usize>) {
    count.set(count.get() + 1);
}

impl World {
    fn new(seed: u64, told: &Rc<Told>) -> Rc<Self> {
        let mut random = Random::new(seed);
        let leases = Leases::new(seed);
        let locks = (0..LOCKS).map(|at| match random.below(2) {
            _ if at >= PLAIN => Lock::Lease(leases.lock(&at.to_string())),
            0 => Lock::Mutex(Mutex::new(0)),
            _ => Lock::RwLock(RwLock::new(0)),
        });
        let (locks, judge) = (locks.collect(), Judge::of_leases(PLAIN..LOCKS));
        Rc::new(Self { locks, leases, random: RefCell::new(random), judge, told: Rc::clone(told) })
    }

    fn below(&self, below: usize) -> usize {
        self.random.borrow_mut().below(below)
    }

    fn work<'a>(self: &'a Rc<Self>, parent: Option<u64>, depth: usize) -> Task<'a> {
        Box::pin(async move {
            polls(self.below(3)).await;
            if depth == 0 {
                return;
            }
            if self.below(4) == 0 {
                let branches = (0..2).map(|_| self.work(parent, depth - 1));
                join(branches.collect()).await;
            } else {
                self.locked(parent, depth - 1).await;
                self.work(parent, depth - 1).await;
            }
        })
    }

    async fn locked(self: &Rc<Self>, parent: Option<u64>, depth: usize) {
        let at = self.below(LOCKS);
        let writes = match &self.locks[at] {
            Lock::Mutex(_) => true,
            Lock::Lease(lease) if lease.is_mutex() => true,
            Lock::RwLock(_) | Lock::Lease(_) => self.below(2) == 0,
        };
        let expected = self.judge.expected(at, writes, parent);
        let seat = self.judge.ask(at, writes, parent);
        let inside = async || {
            seat.granted();
            polls(self.below(2)).await;
            self.work(Some(seat.id), depth).await;
        };
        let end = match &self.locks[at] {
            Lock::Mutex(mutex) => mutex.run_exclusive(async |_| inside().await).await,
            Lock::RwLock(lock) if writes => lock.run_exclusive(async |_| inside().await).await,
            Lock::RwLock(lock) => lock.run_shared(async |_| inside().await).await,
            Lock::Lease(lease) => {
                let request = lease.ask(writes).ttl(self.leases.ttl()).timeout(None);
                let end = End::of(request.run(async |_| inside().await).await);
                return self.leased(&end, &expected);
            }
        };
        self.judged(&end, &expected, seat.id);
    }

    fn leased(&self, end: &End, expected: &Expected) {
        match end {
            End::Done => one_more(&self.told.leased),
            End::RanOut => one_more(&self.told.ran_out),
            End::Refused(error) => {
                assert!(error.is_reentrant(), "told of what is not: {error}");
                assert_eq!(*expected, Expected::Reentrant);
                return;
            }
        }
        assert_ne!(*expected, Expected::Reentrant);
    }

    fn judged(&self, end: &Result<(), Error>, expected: &Expected, id: u64) {
        let told = &self.told;
        match end {
            Ok(()) => {
                assert_ne!(*expected, Expected::Reentrant);
                one_more(if *expected == Expected::Shares { &told.shared } else { &told.granted });
            }
            Err(error) if error.is_deadlock() => {
                assert_eq!(*expected, Expected::Waits);
                assert!(self.judge.is_stuck(id), "told of what is not: {error}");
                let ErrorKind::Deadlock { cycle } = error.kind() else {
                    unreachable!("as it said")
                };
                assert!(cycle.iter().all(|step| step.of == "u32"), "over a lease: {error}");
                one_more(&told.deadlocks);
            }
            Err(error) => {
                assert!(error.is_reentrant(), "{error}");
                assert_eq!(*expected, Expected::Reentrant, "{error}");
                one_more(&told.reentrant);
            }
        }
    }
}

/// Runs one program to its end, and says in how many polls.
fn run(seed: u64, told: &Rc<Told>) -> usize {
    let world = World::new(seed, told);
    let mut tasks = (0..TASKS).map(|_| world.work(None, DEPTH)).collect::<Vec<_>>();
    let mut steps = 0;
    while !tasks.is_empty() {
        assert!(steps < 1_000_000, "program {seed} is stuck, and nobody was told");
        let at = world.below(tasks.len());
        steps += 1;
        let ends = world.below(1000) == 0 || poll(tasks[at].as_mut()).is_ready();
        if ends {
            drop(tasks.swap_remove(at));
        }
        world.leases.pass();
        assert!(!world.judge.anybody_stuck(), "program {seed} is stuck, and nobody was told");
    }
    steps
}

#[test]
fn r4_a_lease_that_runs_out_makes_nobody_stuck_and_hides_nobody_who_is() {
    let told = Rc::new(Told::default());
    let (mut steps, mut seed) = (0, 0);
    while steps < STEPS {
        seed += 1;
        steps += run(seed, &told);
    }
    let Told { deadlocks, reentrant, shared, granted, leased, ran_out } = &*told;
    let counts = [deadlocks, reentrant, shared, granted, leased, ran_out].map(Cell::get);
    assert!(counts.iter().all(|count| *count > 100), "{counts:?} in {seed} programs");
}
