//! Programs that take their locks in one order cannot get stuck, so nothing may be told.

use std::{
    any::Any,
    cell::{Cell, RefCell},
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use leasehold_sync::{Error, InCurrentScope, Mutex, RwLock, Semaphore, scope};

use crate::{Random, Task, join, poll, polls};

/// How many locks there are, in their order.
const LOCKS: usize = 6;
/// How many polls the whole test makes.
const STEPS: usize = 1_000_000;
/// How many tasks a program starts with.
const TASKS: usize = 6;
/// How deep a program nests.
const DEPTH: usize = 4;

#[allow(clippy::enum_variant_names, reason = "they are called after the locks")]
enum Lock {
    Mutex(Arc<Mutex<u32>>),
    RwLock(Arc<RwLock<u32>>),
    Semaphore(Arc<Semaphore>),
}

/// What the tasks of one program share.
struct World {
    locks: Vec<Lock>,
    random: RefCell<Random>,
    spawned: RefCell<Vec<Task<'static>>>,
    /// Guards that were moved out of where they were taken; the executor drops them.
    parked: RefCell<Vec<Box<dyn Any>>>,
    granted: Cell<usize>,
    given_up: Cell<usize>,
}

impl World {
    fn new(seed: u64) -> Rc<Self> {
        let mut random = Random::new(seed);
        let locks = (0..LOCKS).map(|_| match random.below(5) {
            0 | 1 => Lock::Mutex(Arc::new(Mutex::new(0))),
            2 => Lock::RwLock(Arc::new(RwLock::new(0))),
            3 => Lock::RwLock(Arc::new(RwLock::with_max_readers(0, 2).unwrap())),
            _ => Lock::Semaphore(Arc::new(Semaphore::new(2).unwrap())),
        });
        Rc::new(Self {
            locks: locks.collect(),
            random: RefCell::new(random),
            spawned: RefCell::default(),
            parked: RefCell::default(),
            granted: Cell::new(0),
            given_up: Cell::new(0),
        })
    }

    fn below(&self, below: usize) -> usize {
        self.random.borrow_mut().below(below)
    }

    /// A work that uses locks from `from` on, in their order.
    fn work(self: &Rc<Self>, from: usize, depth: usize) -> Task<'static> {
        let world = Rc::clone(self);
        Box::pin(async move {
            polls(world.below(3)).await;
            if depth == 0 {
                return;
            }
            match world.below(8) {
                0 => {
                    let branches = (0..2).map(|_| world.work(from, depth - 1));
                    join(branches.collect()).await;
                }
                // A task that nobody waits for may begin with the first lock again.
                1 => world.spawn(world.work(0, depth - 1)),
                2 => scope(world.work(from, depth - 1)).await,
                // One that is waited for may not.
                3 => world.child(from, depth).await,
                _ if from < LOCKS => {
                    let at = from + world.below(LOCKS - from);
                    world.locked(at, depth - 1).await;
                    world.work(at + 1, depth - 1).await;
                }
                _ => {}
            }
        })
    }

    fn spawn(&self, task: Task<'static>) {
        self.spawned.borrow_mut().push(task);
    }

    /// Spawns, and waits for the end.
    async fn child(self: &Rc<Self>, from: usize, depth: usize) {
        let done = Rc::new(Cell::new(false));
        let (told, work) = (Rc::clone(&done), self.work(from, depth - 1));
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

    /// Uses one lock in one of many ways, with the locks behind it inside.
    async fn locked(self: &Rc<Self>, at: usize, depth: usize) {
        let way = self.below(8);
        let told = match &self.locks[at] {
            Lock::Mutex(mutex) => self.mutex(mutex, at, depth, way).await,
            Lock::RwLock(lock) if self.below(2) == 0 => self.read(lock, at, depth, way).await,
            Lock::RwLock(lock) => self.write(lock, at, depth, way).await,
            Lock::Semaphore(semaphore) => {
                let permit = Arc::clone(semaphore).acquire_owned().await;
                self.hand_on(permit, at, depth, way).await;
                Ok(())
            }
        };
        match told {
            Ok(()) => self.granted.set(self.granted.get() + 1),
            Err(error) => {
                assert!(error.is_cancelled(), "told of what is not: {error}");
                self.given_up.set(self.given_up.get() + 1);
            }
        }
    }

    async fn mutex(
        self: &Rc<Self>,
        mutex: &Arc<Mutex<u32>>,
        at: usize,
        depth: usize,
        way: usize,
    ) -> Result<(), Error> {
        let inside = async |n: &mut u32| {
            *n += 1;
            self.work(at + 1, depth).await;
        };
        match way {
            0 | 1 => {
                let guard = Arc::clone(mutex).lock_owned().await;
                self.hand_on(guard, at, depth, way).await;
                Ok(())
            }
            2 => mutex.lock().cancel_on(polls(self.below(20) + 3)).run(inside).await,
            3 => mutex.lock().timeout(Duration::from_secs(3600)).run(inside).await,
            _ => mutex.run_exclusive(inside).await,
        }
    }

    async fn write(
        self: &Rc<Self>,
        lock: &Arc<RwLock<u32>>,
        at: usize,
        depth: usize,
        way: usize,
    ) -> Result<(), Error> {
        let inside = async |n: &mut u32| {
            *n += 1;
            self.work(at + 1, depth).await;
        };
        match way {
            0 | 1 => {
                let guard = Arc::clone(lock).write_owned().await;
                self.hand_on(guard, at, depth, way).await;
                Ok(())
            }
            2 => lock.write().cancel_on(polls(self.below(20) + 3)).run(inside).await,
            _ => lock.run_exclusive(inside).await,
        }
    }

    async fn read(
        self: &Rc<Self>,
        lock: &Arc<RwLock<u32>>,
        at: usize,
        depth: usize,
        way: usize,
    ) -> Result<(), Error> {
        let inside = async |_: &u32| self.work(at + 1, depth).await;
        match way {
            0 | 1 => {
                let guard = Arc::clone(lock).read_owned().await;
                self.hand_on(guard, at, depth, way).await;
                Ok(())
            }
            2 => lock.read().cancel_on(polls(self.below(20) + 3)).run(inside).await,
            // A read within a read, behind whoever waits to write.
            3 | 4 => {
                let again = async |_: &u32| {
                    self.work(at + 1, depth).await;
                    lock.run_shared(inside).await
                };
                lock.run_shared(again).await?
            }
            _ => lock.run_shared(inside).await,
        }
    }

    /// A guard in the hand: kept for the work, or moved to somewhere else.
    async fn hand_on(self: &Rc<Self>, guard: impl Any, at: usize, depth: usize, way: usize) {
        if way == 0 {
            self.parked.borrow_mut().push(Box::new(guard));
        } else {
            self.work(at + 1, depth).await;
        }
    }
}

/// Runs one program to its end, and says in how many polls.
fn run(seed: u64) -> usize {
    let world = World::new(seed);
    let mut tasks = (0..TASKS).map(|_| world.work(0, DEPTH)).collect::<Vec<_>>();
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
        if world.below(10) == 0 {
            let parked = world.parked.borrow_mut().pop();
            drop(parked);
        }
    }
    world.parked.borrow_mut().clear();
    steps
}

#[test]
fn a_million_steps_of_programs_without_deadlocks_are_told_of_none() {
    let (mut steps, mut seed) = (0, 0);
    while steps < STEPS {
        seed += 1;
        steps += run(seed);
    }
    assert!(seed > 1_000, "{seed} programs are too few");
}
