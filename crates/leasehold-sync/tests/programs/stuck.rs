//! Programs that take their locks in any order get stuck, and whenever they do, the request that
//! made it so is told, and no other.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
};

use leasehold_sync::{Error, Mutex, RwLock};

use crate::{
    Random, Task, join,
    judge::{Expected, Judge},
    poll, polls,
};

const LOCKS: usize = 4;
const TASKS: usize = 5;
const DEPTH: usize = 5;
/// How many polls the whole test makes.
const STEPS: usize = 200_000;

enum Lock {
    Mutex(Mutex<u32>),
    RwLock(RwLock<u32>),
}

struct World {
    locks: Vec<Lock>,
    random: RefCell<Random>,
    judge: Judge,
    told: Rc<Told>,
}

#[derive(Default)]
struct Told {
    deadlocks: Cell<usize>,
    longest: Cell<usize>,
    reentrant: Cell<usize>,
    shared: Cell<usize>,
    granted: Cell<usize>,
}

fn one_more(count: &Cell<usize>) {
    count.set(count.get() + 1);
}

impl World {
    fn new(seed: u64, told: &Rc<Told>) -> Rc<Self> {
        let mut random = Random::new(seed);
        let locks = (0..LOCKS).map(|_| match random.below(2) {
            0 => Lock::Mutex(Mutex::new(0)),
            _ => Lock::RwLock(RwLock::new(0)),
        });
        let (locks, judge) = (locks.collect(), Judge::default());
        Rc::new(Self { locks, random: RefCell::new(random), judge, told: Rc::clone(told) })
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
        let (at, way) = (self.below(LOCKS), self.below(6));
        let writes = matches!(self.locks[at], Lock::Mutex(_)) || way < 3;
        let expected = self.judge.expected(at, writes, parent);
        let seat = self.judge.ask(at, writes, parent);
        let inside = async || {
            seat.granted();
            polls(self.below(2)).await;
            self.work(Some(seat.id), depth).await;
        };
        let gives_up = polls(self.below(30) + 3);
        let end = match &self.locks[at] {
            Lock::Mutex(mutex) if way == 0 => {
                mutex.lock().cancel_on(gives_up).run(async |_| inside().await).await
            }
            Lock::Mutex(mutex) => mutex.run_exclusive(async |_| inside().await).await,
            Lock::RwLock(lock) if writes && way == 0 => {
                lock.write().cancel_on(gives_up).run(async |_| inside().await).await
            }
            Lock::RwLock(lock) if writes => lock.run_exclusive(async |_| inside().await).await,
            Lock::RwLock(lock) => lock.run_shared(async |_| inside().await).await,
        };
        self.judged(&end, &expected, seat.id);
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
                let leasehold_sync::ErrorKind::Deadlock { cycle } = error.kind() else {
                    unreachable!("as it said")
                };
                assert!(cycle.len() > 1 && cycle.len() <= LOCKS * 2 + TASKS, "{error}");
                told.longest.set(told.longest.get().max(cycle.len()));
                one_more(&told.deadlocks);
            }
            Err(error) if error.is_reentrant() => {
                assert_eq!(*expected, Expected::Reentrant, "{error}");
                one_more(&told.reentrant);
            }
            Err(error) => assert!(error.is_cancelled(), "{error}"),
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
        assert!(!world.judge.anybody_stuck(), "program {seed} is stuck, and nobody was told");
    }
    steps
}

#[test]
fn whoever_makes_the_others_stuck_is_told_and_nobody_else() {
    let told = Rc::new(Told::default());
    let (mut steps, mut seed) = (0, 0);
    while steps < STEPS {
        seed += 1;
        steps += run(seed, &told);
    }
    let counts = [&told.deadlocks, &told.reentrant, &told.shared, &told.granted].map(Cell::get);
    assert!(counts.iter().all(|count| *count > 500), "{counts:?} in {seed} programs");
    assert!(told.longest.get() > 3, "the longest cycle was of {}", told.longest.get());
}
