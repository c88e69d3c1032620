//! One process of a history: it enters sections of random locks through the crate `leasehold`, and
//! meets its fates.

use std::{
    io::{self, BufRead as _, Write as _},
    process,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, channel},
    },
    thread,
    time::Duration,
};

use leasehold::{Acquire as Acquiring, Lease, LockManager};
use leasehold_core::{Backend, HolderInfo, LockKind, Sleep, Wake};

use super::{
    event::{Doing, GaveUp, Id, What},
    log::Log,
    plan::{Assignment, Fate, LockPlan, Order, Rng, Tells},
    recorder::Recorder,
    rogue::{Rogue, request},
    storage,
};
use crate::bench::block::{block_on, outcome};

/// Who waits in earnest gives up after this many TTLs, and then somebody is stranded.
const PATIENCE_TTLS: u32 = 80;
/// How often a fate that needs a queue is tried for.
const TRIES_MAX: u32 = 2_000;
/// A driver that does not come back is dead, and so is the history.
const DRIVER_BOUND: Duration = Duration::from_secs(60);

/// Lives the life that it is assigned; the process ends with it.
pub(super) fn live(assignment: &Assignment, backend: Arc<dyn Backend>) -> ! {
    let log = Log::create(&assignment.directory, assignment.process).expect("a new log");
    let recorder = Recorder::new(backend, Arc::new(log));
    let info = HolderInfo::here().labelled(&assignment.process.to_string()).expect("a label");
    let manager = LockManager::builder().info(info.clone()).backend(recorder.clone());
    let (orders, finish) = listen();
    let ttl = assignment.locks.first().expect("a history has locks").ttl;
    let mut worker = Worker {
        assignment,
        ttl,
        recorder,
        manager,
        info: Arc::new(info),
        rng: Rng::new(assignment.seed),
        orders,
        finish,
        exclusive: false,
    };
    worker.recorder.log().note(What::Started);
    tell(&Tells::Ready);
    worker.live();
    let ended = block_on(worker.manager.shutdown().into_future(), worker.patience());
    ended.expect("a shutdown ends").expect("the store lets go");
    worker.recorder.log().note(What::Ended);
    process::exit(0)
}

/// Orders are read on a thread of their own, so that one to finish is seen between sections.
fn listen() -> (Receiver<Order>, Arc<AtomicBool>) {
    let (sender, orders) = channel();
    let finish = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&finish);
    thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            let order = serde_json::from_str(&line).expect("an order");
            if order == Order::Finish {
                flag.store(true, Ordering::Release);
            } else if sender.send(order).is_err() {
                return;
            }
        }
        // Nobody is left to tell about the rest.
        process::exit(0);
    });
    (orders, finish)
}

fn tell(tells: &Tells) {
    let mut line = serde_json::to_string(tells).expect("it is data");
    line.push('\n');
    let mut out = io::stdout().lock();
    if out.write_all(line.as_bytes()).and_then(|()| out.flush()).is_err() {
        process::exit(0);
    }
}

struct Worker<'a> {
    assignment: &'a Assignment,
    /// Of every grant.
    ttl: Duration,
    recorder: Recorder,
    manager: LockManager,
    info: Arc<HolderInfo>,
    rng: Rng,
    orders: Receiver<Order>,
    finish: Arc<AtomicBool>,
    /// Whether what was asked for last excludes everybody else.
    exclusive: bool,
}

/// What happens inside of a section.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Inside {
    Work,
    Fate,
}

impl Worker<'_> {
    fn live(&mut self) {
        for step in &self.assignment.steps {
            for _ in 0..step.sections {
                if self.is_to_finish() {
                    return;
                }
                self.section();
            }
            if !self.meet(step.fate) {
                return;
            }
        }
        while !self.is_to_finish() {
            self.section();
        }
    }

    fn patience(&self) -> Duration {
        PATIENCE_TTLS * self.ttl
    }

    fn is_to_finish(&self) -> bool {
        self.finish.load(Ordering::Acquire)
    }

    fn tell_hand_offs(&self) {
        let count = self.recorder.take_hand_offs();
        if count > 0 {
            tell(&Tells::HandOffs { count });
        }
    }

    /// Tries to do what a fate is about, until it is met; false: the history is over before.
    fn meet(&mut self, fate: Fate) -> bool {
        for _ in 0..TRIES_MAX {
            if self.is_to_finish() {
                return false;
            }
            let met = match fate {
                // The driver comes when it likes.
                Fate::Killed(Doing::Anything) | Fate::Stopped(Doing::Anything) => false,
                Fate::Killed(Doing::Holding) => {
                    let result = self.acquiring(true).blocking();
                    self.enter(result, Inside::Fate)
                }
                Fate::Stopped(Doing::Holding) => {
                    // Of a mutex, so that others write to its storage before the stale holder does.
                    let locks = self.assignment.locks.iter();
                    let mutexes: Vec<_> =
                        locks.filter(|lock| lock.kind == LockKind::Mutex).collect();
                    let plan = (*self.rng.pick(&mutexes)).clone();
                    let result = self.acquiring_of(&plan, true).blocking();
                    self.enter(result, Inside::Fate)
                }
                Fate::Stopped(Doing::Queued) => self.stopped_in_the_queue(),
                Fate::Killed(Doing::Queued) => self.dies_in_the_queue(),
                Fate::Killed(Doing::Claimed) | Fate::Stopped(Doing::Claimed) => {
                    self.does_not_confirm()
                }
            };
            if met {
                return true;
            }
            // Nobody was in its way; the next try is at another moment.
            self.section();
        }
        true
    }

    /// A section, waited for in earnest mostly.
    fn section(&mut self) {
        let manner = self.rng.between(0, 99);
        let some_ms = Duration::from_millis(self.rng.between(1, 20).into());
        let acquiring = self.acquiring(false);
        let result = match manner {
            0..6 => Some(acquiring.timeout(some_ms).blocking()),
            6..10 => {
                let clock = self.recorder.clock();
                let cancelled = Sleep::until(Arc::clone(clock), clock.now().after(some_ms));
                Some(acquiring.cancel_on(cancelled).blocking())
            }
            10..13 => block_on(acquiring.into_future(), some_ms),
            13..16 => Some(acquiring.timeout(Duration::ZERO).blocking()),
            _ => Some(acquiring.blocking()),
        };
        match result {
            Some(result) => {
                self.enter(result, Inside::Work);
            }
            None => self.gave_up(GaveUp::Dropped),
        }
        self.tell_hand_offs();
    }

    /// The section of an acquisition, or why there is none; false then.
    fn enter(&mut self, result: leasehold::Result<Lease>, inside: Inside) -> bool {
        match result {
            Ok(lease) => {
                self.inside(&lease, inside);
                true
            }
            Err(error) => {
                self.gave_up(if error.is_timeout() {
                    GaveUp::TimedOut
                } else if error.is_cancelled() {
                    GaveUp::Cancelled
                } else {
                    GaveUp::Failed
                });
                false
            }
        }
    }

    /// The work, the storage, and what the fate brings.
    fn inside(&mut self, lease: &Lease, inside: Inside) {
        let (id, log) = (self.recorder.id(lease.token()), Arc::clone(self.recorder.log()));
        log.note(What::Entered { id: id.clone() });
        self.store(lease, &id);
        match inside {
            Inside::Work => {
                // sleep: the work of the section; some takes longer than the TTL.
                thread::sleep(match self.rng.between(0, 199) {
                    0 => self.ttl + self.ttl / 2,
                    _ => Duration::from_micros(self.rng.between(0, 2_000).into()),
                });
            }
            Inside::Fate => {
                tell(&Tells::AtFate { id: id.clone(), lock: lease.lock().name().to_string() });
                self.await_go();
            }
        }
        if !lease.is_held() {
            log.note(What::Lost { id: id.clone() });
        }
        // After a stop this is the write of a stale holder, which the storage has to refuse.
        self.store(lease, &id);
        log.note(What::Left { id });
        // A fault is in the log; the drop of the lease releases it then.
        let _ = lease.release_blocking();
    }

    fn store(&self, lease: &Lease, id: &Id) {
        if self.exclusive {
            let (log, lock) = (self.recorder.log(), lease.lock().name().as_str());
            let fencing = lease.fencing_token().get();
            let (accepted, at) =
                storage::write(&self.assignment.directory, lock, fencing, || log.now())
                    .expect("the storage can be written");
            log.note_at(at, log.process(), What::Stored { id: id.clone(), accepted });
        }
    }

    /// A wait in the queue through the library, during which the process is stopped.
    fn stopped_in_the_queue(&mut self) -> bool {
        let told = Arc::new(Mutex::new(false));
        let (recorder, was_told) = (self.recorder.clone(), Arc::clone(&told));
        let plan = self.rng.pick(&self.assignment.locks).clone();
        let lock = plan.name.clone();
        let acquiring = self.acquiring_of(&plan, false).on_queued(move |_| {
            let id = recorder.last_asked().expect("it was asked");
            tell(&Tells::AtFate { id, lock });
            *was_told.lock().unwrap_or_else(PoisonError::into_inner) = true;
        });
        let result = acquiring.blocking();
        self.enter(result, Inside::Work);
        let told = *told.lock().unwrap_or_else(PoisonError::into_inner);
        if told {
            self.await_go();
        }
        told
    }

    fn dies_in_the_queue(&mut self) -> bool {
        let Some((rogue, _)) = self.queues() else { return false };
        tell(&rogue.at_fate());
        self.await_go();
        unreachable!("the driver kills who waits here")
    }

    fn does_not_confirm(&mut self) -> bool {
        let Some((rogue, wake)) = self.queues() else { return false };
        if !rogue.is_claimed(&wake, self.patience()) {
            rogue.leave();
            return false;
        }
        self.recorder.log().note(What::Claimed { id: rogue.id.clone() });
        tell(&rogue.at_fate());
        self.await_go();
        // It was stopped; what it does now comes too late, or just in time.
        rogue.confirm_and_leave();
        true
    }

    /// A place in a queue, asked of the store itself; `None`: nobody was in the way.
    fn queues(&mut self) -> Option<(Rogue, Wake)> {
        let plan = self.rng.pick(&self.assignment.locks).clone();
        let weight = self.rng.between(1, plan.capacity);
        Rogue::queues(&self.recorder, request(&plan, &self.info, weight))
    }

    fn await_go(&self) {
        let go = self.orders.recv_timeout(DRIVER_BOUND).expect("the driver comes back");
        assert_eq!(go, Order::Go);
    }

    fn gave_up(&self, why: GaveUp) {
        if let Some(id) = self.recorder.last_asked() {
            self.recorder.log().note(What::GaveUp { id, why });
        }
    }

    fn acquiring(&mut self, exclusive: bool) -> Acquiring {
        let plan = self.rng.pick(&self.assignment.locks).clone();
        self.acquiring_of(&plan, exclusive)
    }

    /// A renewed lease of this lock; a heavy one when it is to be in everybody's way.
    fn acquiring_of(&mut self, plan: &LockPlan, exclusive: bool) -> Acquiring {
        let name = plan.name.as_str();
        let weight = if exclusive { plan.capacity } else { self.rng.between(1, plan.capacity) };
        let writes = exclusive || self.rng.chance(40);
        self.exclusive = match plan.kind {
            LockKind::Mutex => true,
            LockKind::RwLock => writes,
            // Its holders share; a storage with one highest token is not for them.
            LockKind::Semaphore => false,
        };
        let acquiring = match plan.kind {
            LockKind::Mutex => self.manager.mutex(name).map(|lock| lock.lock()),
            LockKind::Semaphore => {
                self.manager.semaphore(name, plan.capacity).map(|lock| lock.acquire_many(weight))
            }
            LockKind::RwLock => self
                .manager
                .rw_lock_with(name, plan.capacity)
                .map(|lock| if writes { lock.write() } else { lock.read() }),
        };
        let acquiring =
            acquiring.expect("a valid lock").timeout(self.patience()).ttl(self.ttl).renew();
        if self.rng.chance(50) {
            return acquiring;
        }
        let (recorder, lock) = (self.recorder.clone(), request(plan, &self.info, 1).lock);
        // The recorder logs the queue; a fault is in the log as well.
        acquiring.on_queued(move |_| drop(outcome(recorder.inspect(&lock))))
    }
}
