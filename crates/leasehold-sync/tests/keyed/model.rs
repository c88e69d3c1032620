//! Random programs, step by step against the naive model: a million steps in all.

use std::{
    cell::Cell,
    future::{Future, pending},
    hash::{BuildHasher, RandomState},
    pin::Pin,
    rc::Rc,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use leasehold_sync::{AcquireKeyed, Error, KeyedLock};

use crate::{
    Count,
    naive::{Id, Model, Request},
};

const PROGRAMS: u64 = 5_000;
const STEPS: usize = 200;
/// Every so many steps everything that the lock tells is compared, and not only who was let in.
const BETWEEN: usize = 16;

/// Fresh programs every time; a failure names its seed, and `LEASEHOLD_MODEL_SEED` runs that one
/// alone.
#[test]
fn a_keyed_lock_does_what_the_rules_say() {
    let chosen = std::env::var("LEASEHOLD_MODEL_SEED").ok();
    let seeds = match chosen.map(|seed| seed.parse().expect("a number")) {
        Some(seed) => seed..seed + 1,
        None => {
            let first = RandomState::new().hash_one(0) >> 1;
            first..first + PROGRAMS
        }
    };
    for seed in seeds {
        let failed = NamesSeed(seed);
        run(Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1));
        drop(failed);
    }
}

struct NamesSeed(u64);

impl Drop for NamesSeed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("LEASEHOLD_MODEL_SEED={}", self.0);
        }
    }
}

/// Small, quick and the same for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).expect("31 bits") % end
    }
}

type Lock = KeyedLock<u32>;

/// What holds, and releases when it is dropped: a guard, or work in a frame.
trait Held {}

impl<T> Held for T {}

/// A request, plain or checked.
enum Asked<'a> {
    Plain(Pin<Box<AcquireKeyed<&'a Lock>>>),
    /// Its work begins with the grant and never ends.
    Runs(Pin<Box<dyn Future<Output = Result<(), Error>> + 'a>>, Rc<Cell<bool>>),
}

struct Waiting<'a> {
    id: Id,
    future: Asked<'a>,
    woken: Arc<Count>,
    granted: bool,
}

struct Pair<'a> {
    lock: &'a Lock,
    model: Model,
    holders: Vec<(Id, Box<dyn Held + 'a>)>,
    waiting: Vec<Waiting<'a>>,
}

fn run(mut dice: Dice) {
    let lock = Lock::new();
    let mut pair =
        Pair { lock: &lock, model: Model::default(), holders: Vec::new(), waiting: Vec::new() };
    // Few keys meet often, many keys spread; some programs hardly ask for the whole set.
    let (keys, whole) = (1 + dice.below(6), [1, 4, 16][dice.below(3)]);
    for id in 0..STEPS {
        pair.step(&mut dice, u32::try_from(id).expect("few steps"), keys, whole);
        if id % BETWEEN == 0 {
            pair.compare();
        }
    }
    pair.compare();
    // Whatever happened, giving everything back lets everybody in, and then nothing is left.
    while !pair.holders.is_empty() || !pair.waiting.is_empty() {
        (0..pair.waiting.len()).rev().for_each(|place| pair.poll(place));
        pair.release(0);
    }
    pair.compare();
    assert!(lock.is_empty() && lock.queued() == 0);
}

impl<'a> Pair<'a> {
    fn step(&mut self, dice: &mut Dice, id: Id, keys: usize, whole: usize) {
        match dice.below(100) {
            0..40 => {
                let request = random(dice, id, keys, whole);
                self.acquire(request, dice.below(4) == 0);
            }
            40..52 => {
                let request = random(dice, id, keys, whole);
                self.attempt(dice, request);
            }
            52..76 => self.release(dice.below(1000)),
            76..86 if !self.waiting.is_empty() => self.cancel(dice.below(self.waiting.len())),
            86..96 if !self.waiting.is_empty() => self.poll(dice.below(self.waiting.len())),
            _ => (0..self.waiting.len()).rev().for_each(|place| self.poll(place)),
        }
    }

    fn ask(&self, Request { key, writes, .. }: Request) -> AcquireKeyed<&'a Lock> {
        match (key, writes) {
            (Some(key), false) => self.lock.read(key),
            (Some(key), true) => self.lock.write(key),
            (None, false) => self.lock.read_all(),
            (None, true) => self.lock.write_all(),
        }
    }

    fn acquire(&mut self, request: Request, runs: bool) {
        let asked = self.ask(request);
        let mut future = if runs {
            let begun = Rc::new(Cell::new(false));
            let begins = Rc::clone(&begun);
            let work = async move || {
                begins.set(true);
                pending().await
            };
            Asked::Runs(Box::pin(asked.run(work)), begun)
        } else {
            Asked::Plain(Box::pin(asked))
        };
        let woken = Arc::new(Count::default());
        let answer = future.poll(&Waker::from(woken.clone()));
        match (self.model.arrive(request, true), answer) {
            (true, Some(held)) => self.hold(request.id, future, held),
            (false, None) => {
                self.waiting.push(Waiting { id: request.id, future, woken, granted: false });
            }
            (expected, _) => panic!("{request:?}: expected {expected}"),
        }
    }

    /// What the poll gave holds, or the work that goes on.
    fn hold(&mut self, id: Id, future: Asked<'a>, held: Option<Box<dyn Held + 'a>>) {
        self.holders.push((id, held.unwrap_or_else(|| Box::new(future))));
    }

    /// Without waiting, in either way.
    fn attempt(&mut self, dice: &mut Dice, request: Request) {
        let guard = if dice.below(2) == 0 {
            match (request.key, request.writes) {
                (Some(key), false) => self.lock.try_read(key),
                (Some(key), true) => self.lock.try_write(key),
                (None, false) => self.lock.try_read_all(),
                (None, true) => self.lock.try_write_all(),
            }
        } else {
            let mut once = Box::pin(self.ask(request).timeout(Duration::ZERO));
            match poll(once.as_mut(), Waker::noop()) {
                Poll::Ready(answer) => answer.inspect_err(|e| assert!(e.is_timeout())).ok(),
                Poll::Pending => panic!("a timeout of zero waits"),
            }
        };
        assert_eq!(guard.is_some(), self.model.arrive(request, false), "{request:?}");
        self.holders.extend(guard.map(|guard| (request.id, Box::new(guard) as Box<dyn Held>)));
    }

    fn release(&mut self, holder: usize) {
        if !self.holders.is_empty() {
            let place = holder % self.holders.len();
            let (id, guard) = self.holders.swap_remove(place);
            drop(guard);
            let granted = self.model.release(id);
            self.note(&granted);
        }
    }

    fn cancel(&mut self, place: usize) {
        let Waiting { id, future, granted, .. } = self.waiting.remove(place);
        drop(future);
        let next = if granted { self.model.release(id) } else { self.model.cancel(id) };
        self.note(&next);
    }

    fn poll(&mut self, place: usize) {
        let waiting = &mut self.waiting[place];
        match (waiting.future.poll(&Waker::from(waiting.woken.clone())), waiting.granted) {
            (None, false) => {}
            (Some(held), true) => {
                let Waiting { id, future, .. } = self.waiting.remove(place);
                self.hold(id, future, held);
            }
            (_, granted) => panic!("granted: {granted}"),
        }
    }

    fn note(&mut self, granted: &[Id]) {
        for waiting in &mut self.waiting {
            waiting.granted |= granted.contains(&waiting.id);
            // Exactly those who were granted were woken, once.
            assert_eq!(waiting.woken.get(), usize::from(waiting.granted));
        }
    }

    fn compare(&self) {
        assert_eq!(self.lock.len(), self.model.keys());
        assert_eq!(self.lock.queued(), self.model.queue.len());
        let nothing = self.model.holders.is_empty() && self.model.queue.is_empty();
        assert_eq!(self.lock.is_empty(), nothing);
        for waiting in &self.waiting {
            assert_eq!(waiting.woken.get(), usize::from(waiting.granted));
        }
    }
}

impl<'a> Asked<'a> {
    /// `Some`: it was granted; with the guard, if there is one.
    fn poll(&mut self, waker: &Waker) -> Option<Option<Box<dyn Held + 'a>>> {
        match self {
            Asked::Plain(future) => match poll(future.as_mut(), waker) {
                Poll::Ready(guard) => Some(Some(Box::new(guard))),
                Poll::Pending => None,
            },
            Asked::Runs(future, begun) => match poll(future.as_mut(), waker) {
                Poll::Ready(told) => panic!("the work goes on: {told:?}"),
                Poll::Pending => begun.get().then_some(None),
            },
        }
    }
}

fn random(dice: &mut Dice, id: Id, keys: usize, whole: usize) -> Request {
    let key = (dice.below(20) >= whole).then(|| u32::try_from(dice.below(keys)).expect("few keys"));
    Request { id, key, writes: dice.below(2) == 0 }
}

fn poll<F: Future + ?Sized>(future: Pin<&mut F>, waker: &Waker) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(waker))
}
