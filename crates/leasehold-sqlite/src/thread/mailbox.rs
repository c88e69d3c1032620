//! How callers reach the client's thread, asleep or not.

use std::{
    collections::VecDeque,
    os::fd::OwnedFd,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering::SeqCst},
    },
};

use leasehold_core::{Fault, FaultKind};
use rustix::io::write;

use super::Work;
use crate::members::MESSAGE;

/// How many calls may be on their way at once.
const MESSAGES_MAX: usize = 1_000_000;

/// Messages for the thread, and whether it has to be woken for them.
#[derive(Debug)]
pub(crate) struct Mailbox {
    state: Mutex<State>,
    /// Messages that are queued or being worked on.
    busy: AtomicUsize,
    /// Counts what the thread must know before it sleeps.
    epoch: AtomicU64,
    asleep: AtomicBool,
    /// When the thread wakes by itself.
    wakes_at: AtomicI64,
}

#[derive(Debug, Default)]
struct State {
    messages: VecDeque<Box<dyn Work>>,
    runs: bool,
    quits: bool,
    ended: bool,
}

impl Default for Mailbox {
    fn default() -> Self {
        Self {
            state: Mutex::default(),
            busy: AtomicUsize::new(0),
            epoch: AtomicU64::new(0),
            asleep: AtomicBool::new(false),
            wakes_at: AtomicI64::new(i64::MAX),
        }
    }
}

impl Mailbox {
    /// Whether something is under way that came before.
    pub(crate) fn is_busy(&self) -> bool {
        self.busy.load(SeqCst) > 0
    }

    /// Adds a message and wakes the thread.
    pub(crate) fn push(&self, work: Box<dyn Work>, pipe: &OwnedFd) -> Result<(), Fault> {
        {
            let mut state = self.lock();
            if state.ended {
                drop(state);
                work.too_late();
                return Ok(());
            }
            if state.messages.len() >= MESSAGES_MAX {
                return Err(Fault::new(FaultKind::Unavailable, "too many calls are on their way"));
            }
            state.messages.push_back(work);
            self.busy.fetch_add(1, SeqCst);
        }
        self.kick(i64::MIN, pipe);
        Ok(())
    }

    /// Tells the thread that there is something to do at that time, if it would sleep longer.
    pub(crate) fn kick(&self, at: i64, pipe: &OwnedFd) {
        self.epoch.fetch_add(1, SeqCst);
        if self.asleep.load(SeqCst) && at < self.wakes_at.load(SeqCst) {
            // A full pipe wakes as well.
            let _ = write(pipe, &[MESSAGE]);
        }
    }

    /// The thread is to end the client when it has nothing else to do.
    pub(crate) fn quit(&self, pipe: &OwnedFd) {
        self.lock().quits = true;
        self.kick(i64::MIN, pipe);
    }

    /// `true`: the thread did not run, and the caller starts it now.
    pub(super) fn begin(&self) -> bool {
        let mut state = self.lock();
        let begins = !state.runs && !state.ended;
        state.runs |= begins;
        begins
    }

    /// The thread could not be started.
    pub(super) fn began_not(&self) {
        self.lock().runs = false;
    }

    pub(super) fn epoch(&self) -> u64 {
        self.epoch.load(SeqCst)
    }

    /// Takes the oldest messages, no more than `limit`.
    pub(super) fn take(&self, limit: usize) -> VecDeque<Box<dyn Work>> {
        let messages = &mut self.lock().messages;
        let count = messages.len().min(limit);
        messages.drain(..count).collect()
    }

    /// Takes the oldest messages that only read, no more than `limit`.
    pub(super) fn take_readers(&self, limit: usize) -> Vec<Box<dyn Work>> {
        let messages = &mut self.lock().messages;
        let mut readers = Vec::new();
        if messages.iter().any(|work| work.reads()) {
            for work in std::mem::take(messages) {
                if work.reads() && readers.len() < limit {
                    readers.push(work);
                } else {
                    messages.push_back(work);
                }
            }
        }
        readers
    }

    pub(super) fn has_messages(&self) -> bool {
        !self.lock().messages.is_empty()
    }

    /// So many messages were worked off.
    pub(super) fn done(&self, count: usize) {
        self.busy.fetch_sub(count, SeqCst);
    }

    /// Callers are to leave the database to the thread until [`done`](Self::done).
    pub(super) fn claim(&self) {
        self.busy.fetch_add(1, SeqCst);
    }

    pub(super) fn is_to_quit(&self) -> bool {
        self.lock().quits
    }

    /// Announces the sleep. `false`: something has come since `epoch`.
    pub(super) fn fall_asleep(&self, epoch: u64, wakes_at: Option<i64>) -> bool {
        self.wakes_at.store(wakes_at.unwrap_or(i64::MAX), SeqCst);
        self.asleep.store(true, SeqCst);
        let stays = self.epoch.load(SeqCst) == epoch && !self.has_messages();
        if !stays {
            self.asleep.store(false, SeqCst);
        }
        stays
    }

    pub(super) fn wake_up(&self) {
        self.asleep.store(false, SeqCst);
    }

    /// The thread ends; whoever still comes is answered at once.
    pub(super) fn finish(&self) {
        let messages = {
            let mut state = self.lock();
            state.ended = true;
            std::mem::take(&mut state.messages)
        };
        for work in messages {
            work.too_late();
            self.done(1);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
