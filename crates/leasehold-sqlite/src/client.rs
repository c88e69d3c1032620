//! One client of a store: its database connection, its waits, its thread's mailbox, its life.
//!
//! A call runs inline, in the caller's thread, when neither another thread of this client nor
//! another process is at the store at that moment. Otherwise it goes to the client's own thread,
//! which may wait.

use std::{
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, TryLockError,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use leasehold_core::{Call, ClientId, Clock, Fault, FaultKind, defaults};

use crate::{
    answer::later,
    desk::{Context, Desk, closed},
    effects::Effects,
    error::{Stop, at, from_io},
    guard::{Guard, PATIENCE, Pauses},
    members::Members,
    steps::{Bury, Step},
    thread::{Mailbox, PROBE_US, Task, start},
    tx::Mode,
    waits::Waits,
};

/// How often a caller looks whether another one has ended its step: for about 20 µs.
const LANE_SPINS: u32 = 500;

/// What the backend and the client's thread share.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) id: ClientId,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) members: Members,
    pub(crate) waits: Waits,
    pub(crate) mailbox: Mailbox,
    /// The read and the write end of this client's pipe.
    pub(crate) pipe: OwnedFd,
    path: PathBuf,
    pid: u32,
    closed: AtomicBool,
    lane: Mutex<Lane>,
    /// Last, so that it is dropped last: the rest ends before the client counts as dead.
    alive: Mutex<Option<OwnedFd>>,
}

/// The one way to the database, and the guard on it.
#[derive(Debug)]
struct Lane {
    guard: Guard,
    desk: Desk,
}

/// What opening has put together.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) id: ClientId,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) members: Members,
    pub(crate) waits: Waits,
    pub(crate) pipe: OwnedFd,
    pub(crate) alive: OwnedFd,
    pub(crate) path: PathBuf,
    pub(crate) guard: Guard,
    pub(crate) desk: Desk,
}

impl Client {
    pub(crate) fn new(parts: Parts) -> Self {
        let Parts { id, clock, members, waits, pipe, alive, path, guard, desk } = parts;
        Self {
            id,
            clock,
            members,
            waits,
            mailbox: Mailbox::default(),
            pipe,
            path,
            pid: std::process::id(),
            closed: AtomicBool::new(false),
            lane: Mutex::new(Lane { guard, desk }),
            alive: Mutex::new(Some(alive)),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The store's time now.
    pub(crate) fn now(&self) -> i64 {
        self.clock.now().0.cast_signed()
    }

    /// Whether this is the process that opened the client.
    pub(crate) fn is_at_home(&self) -> bool {
        std::process::id() == self.pid
    }

    #[cfg(test)]
    pub(crate) const fn pretend_forked(&mut self) {
        self.pid = 0;
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// A duplicate of the descriptor that holds the liveness lock.
    pub(crate) fn liveness(&self) -> Result<OwnedFd, Fault> {
        self.check_usable()?;
        let alive = self.alive.lock().unwrap_or_else(PoisonError::into_inner);
        let fd = alive.as_ref().ok_or_else(closed)?;
        fd.try_clone().map_err(|error| from_io(error, "duplicate the liveness lock of", &self.path))
    }

    /// Runs a step: here and now if it can be, else in the client's thread.
    pub(crate) fn call<S: Step>(self: &Arc<Self>, step: S) -> Call<S::Answer> {
        if let Err(fault) = self.check_usable() {
            return Call::ready(Err(fault));
        }
        if let Some(answer) = self.run_inline(&step) {
            return Call::ready(answer);
        }
        let (reply, call) = later();
        match self.send(Box::new(Task::new(step, Some(reply)))) {
            Ok(()) => call,
            Err(fault) => Call::ready(Err(fault)),
        }
    }

    /// Runs a step in the client's thread and asks for no answer: for drops.
    pub(crate) fn tell<S: Step>(self: &Arc<Self>, step: S) {
        if self.check_usable().is_ok() {
            // Without a thread now, the message waits for the next one; the client's end has the
            // same effect.
            let _ = self.send(Box::new(Task::new(step, None)));
        }
    }

    /// Puts work into the mailbox of the thread, which is started if it does not run.
    pub(crate) fn send(self: &Arc<Self>, work: Box<dyn crate::thread::Work>) -> Result<(), Fault> {
        start(self)?;
        self.mailbox.push(work, &self.pipe)
    }

    /// Runs a step in the client's thread: waits for its turn, but not for ever.
    pub(crate) fn run_patiently<S: Step>(
        self: &Arc<Self>,
        step: &S,
        deadline: Instant,
    ) -> Result<S::Answer, Fault> {
        let mut pauses = Pauses::default();
        let mut reads = S::READS;
        loop {
            let stop = {
                let mut lane = self.lane();
                let Lane { guard, desk } = &mut *lane;
                let ran = if reads {
                    desk.transact(self.context(), Mode::Read, step)
                } else {
                    let _held = guard.hold_by(deadline)?;
                    desk.transact(self.context(), Mode::Thread, step)
                };
                drop(lane);
                match ran {
                    Ok((answer, effects)) => {
                        self.deliver(effects);
                        return Ok(answer);
                    }
                    Err(stop) => stop,
                }
            };
            match stop {
                Stop::NeedsWrite if reads => reads = false,
                Stop::Busy if Instant::now() < deadline => pauses.pause(),
                stop => return Err(self.named(stop)),
            }
        }
    }

    /// Runs several pieces of work in one transaction, each as if in its own: it pays for the
    /// guard, the commit and the pages they share once. `false`: none of it has happened, for a
    /// reason that may be one of them; each is to be tried alone.
    ///
    /// # Errors
    /// The guard is not to be had, which is true for all of them.
    pub(crate) fn run_together(
        self: &Arc<Self>,
        works: &mut [Box<dyn crate::thread::Work>],
        deadline: Instant,
    ) -> Result<bool, Fault> {
        let mut lane = self.lane();
        let Lane { guard, desk } = &mut *lane;
        let held = guard.hold_by(deadline)?;
        let mut effects = Vec::with_capacity(works.len());
        let ran = desk.begin(Mode::Thread).and_then(|()| {
            for work in works.iter_mut() {
                effects.push(work.join(desk, self.context())?);
            }
            desk.commit()
        });
        if ran.is_err() {
            desk.roll_back();
            for effects in effects {
                effects.revert(&self.waits);
            }
            return Ok(false);
        }
        for effects in &effects {
            desk.note_beat(effects);
        }
        drop(held);
        drop(lane);
        for effects in effects {
            self.deliver(effects);
        }
        Ok(true)
    }

    /// Ends the client in good order (rule N6). Nothing has changed after a failure.
    pub(crate) fn end(self: &Arc<Self>, deadline: Instant) -> Result<(), Fault> {
        if self.is_closed() {
            return Ok(());
        }
        self.run_patiently(&Bury(self.id), deadline)?;
        {
            let mut lane = self.lane();
            let Lane { guard, desk } = &mut *lane;
            // SQLite tidies up when the last connection is closed, which must not meet somebody
            // who opens; if the guard is not to be had, who opens waits for it.
            let _held = guard.hold_by(Instant::now() + defaults::FLUSH);
            desk.conn = None;
        }
        self.give_up();
        self.members.remove(self.id);
        self.alive.lock().unwrap_or_else(PoisonError::into_inner).take();
        Ok(())
    }

    /// Refuses every call from now on, and wakes who waits to be told so.
    pub(crate) fn give_up(&self) {
        self.closed.store(true, Ordering::Release);
        for wake in self.waits.take_all() {
            wake.notify();
        }
    }

    fn run_inline<S: Step>(self: &Arc<Self>, step: &S) -> Option<Result<S::Answer, Fault>> {
        // What is in the mailbox came first.
        if !S::INLINE || self.mailbox.is_busy() {
            return None;
        }
        let mut lane = self.try_lane()?;
        if self.mailbox.is_busy() {
            // Asked again now that the thread cannot come in between: a step that slipped in behind
            // the end of the client would leave a grant that is nobody's.
            return None;
        }
        let Lane { guard, desk } = &mut *lane;
        if S::READS {
            match desk.transact(self.context(), Mode::Read, step) {
                Ok((answer, _)) => return Some(Ok(answer)),
                Err(Stop::NeedsWrite) => {}
                Err(Stop::Fault(fault)) => return Some(Err(self.named(Stop::Fault(fault)))),
                Err(Stop::Busy | Stop::Heavy) => return None,
            }
        }
        let held = match guard.try_hold() {
            Ok(Some(held)) => held,
            Ok(None) => return None,
            Err(fault) => return Some(Err(fault)),
        };
        let ran = desk.transact(self.context(), Mode::Inline, step);
        drop(held);
        drop(lane);
        match ran {
            Ok((answer, effects)) => {
                self.deliver(effects);
                Some(Ok(answer))
            }
            Err(Stop::Fault(fault)) if S::MUST && fault.is_retryable() => None,
            Err(Stop::Fault(fault)) => Some(Err(self.named(Stop::Fault(fault)))),
            Err(Stop::Busy | Stop::Heavy | Stop::NeedsWrite) => None,
        }
    }

    fn deliver(self: &Arc<Self>, effects: Effects) {
        let began = effects.began();
        effects.deliver(&self.waits, &self.members);
        if let Some(due) = began {
            // Without a thread the waiter is woken by this process's own releases only; every
            // later call tries again to start one.
            let _ = start(self);
            let at = self.now() + PROBE_US;
            self.mailbox.kick(due.map_or(at, |due| due.min(at)), &self.pipe);
        }
    }

    fn check_usable(&self) -> Result<(), Fault> {
        if !self.is_at_home() {
            return Err(Fault::new(
                FaultKind::Unsupported,
                format!(
                    "the client of store {} was opened by process {} and is of no use in a fork \
                     of it; open another one",
                    self.path.display(),
                    self.pid
                ),
            ));
        }
        if self.is_closed() { Err(closed()) } else { Ok(()) }
    }

    fn context(&self) -> Context<'_> {
        Context { me: self.id, clock: &self.clock, members: &self.members, waits: &self.waits }
    }

    fn lane(&self) -> MutexGuard<'_, Lane> {
        self.lane.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lane, if it is free now or within the time of one step. Going through the thread costs
    /// more than that, and two switches.
    fn try_lane(&self) -> Option<MutexGuard<'_, Lane>> {
        for _ in 0..LANE_SPINS {
            match self.lane.try_lock() {
                Ok(lane) => return Some(lane),
                Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) => std::hint::spin_loop(),
            }
        }
        None
    }

    /// A fault that names the store.
    fn named(&self, stop: Stop) -> Fault {
        let fault = stop.into_fault();
        if matches!(fault.kind(), FaultKind::Closed | FaultKind::Unsupported) {
            return fault;
        }
        at(&self.path, fault)
    }
}

/// When a call that is made now has waited long enough.
pub(crate) fn patience() -> Instant {
    Instant::now() + PATIENCE
}
