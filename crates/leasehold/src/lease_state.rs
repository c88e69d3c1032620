//! What is known here about one grant: its deadline, its renewal, its loss (rule L3).

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use leasehold_core::{
    Error, ErrorKind, FencingToken, Generation, Grant, LocalTime, Operation, Token, Ttl, defaults,
};

use crate::{
    core::{Core, Waits},
    entry::Entry,
    observe,
    shared_op::SharedOp,
};

/// What is known about a lease without asking the store (rule L3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeaseState {
    /// Held, as far as is known.
    Held,
    /// A renewal failed; the deadline has not passed.
    Unknown,
    /// Lost, or released.
    Lost,
}

/// What a lease is told when the store does not have it.
pub(crate) const UNKNOWN_TO_THE_STORE: &str = "the store does not know the grant any more";

#[derive(Debug)]
pub(crate) struct Tracked {
    pub(crate) entry: Arc<Entry>,
    pub(crate) token: Token,
    pub(crate) fencing: FencingToken,
    pub(crate) generation: Generation,
    /// From here on no renewal is sent.
    pub(crate) renew_until: LocalTime,
    /// Where the renewer has it and when it is due; changed under the renewer's lock only.
    pub(crate) place: AtomicU64,
    pub(crate) due: AtomicU64,
    pub(crate) release: SharedOp<bool, Error>,
    /// Futures that wait for the loss of this lease.
    pub(crate) losses: LazyWaits,
    granted: LocalTime,
    deadline: AtomicU64,
    /// When the request was sent whose answer is the deadline.
    answered: Mutex<LocalTime>,
    /// The TTL in milliseconds; 0: none.
    ttl_ms: AtomicU32,
    doubtful: AtomicBool,
    ended: AtomicBool,
    is_lost: AtomicBool,
    lost: Mutex<Option<&'static str>>,
}

impl Tracked {
    pub(crate) fn new(
        entry: Arc<Entry>,
        token: Token,
        grant: Grant,
        sent: LocalTime,
        ttl: Option<Ttl>,
        max_hold: Option<Duration>,
    ) -> Self {
        Self {
            entry,
            token,
            fencing: grant.fencing,
            generation: grant.generation,
            renew_until: max_hold.map_or(LocalTime::MAX, |limit| sent.after(limit)),
            place: AtomicU64::new(crate::renew::NEVER),
            due: AtomicU64::new(0),
            release: SharedOp::default(),
            losses: LazyWaits::default(),
            granted: sent,
            deadline: AtomicU64::new(local_deadline(sent, grant.remaining).0),
            answered: Mutex::new(sent),
            ttl_ms: AtomicU32::new(ttl.map_or(0, Ttl::as_millis)),
            doubtful: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            is_lost: AtomicBool::new(false),
            lost: Mutex::new(None),
        }
    }

    pub(crate) fn core(&self) -> &Core {
        &self.entry.core
    }

    /// When the lease counts as lost unless it is renewed before.
    pub(crate) fn deadline(&self) -> LocalTime {
        LocalTime(self.deadline.load(Ordering::Acquire))
    }

    /// The store gave the grant `left` more, in answer to a request sent at `sent`. An answer that
    /// was overtaken by that to a later request says nothing any more: a renewal that was on its
    /// way must not undo an extension.
    pub(crate) fn set_deadline(&self, sent: LocalTime, left: Option<Duration>) {
        {
            let mut answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
            if *answered > sent {
                return;
            }
            *answered = sent;
            self.deadline.store(local_deadline(sent, left).0, Ordering::Release);
        }
        self.doubtful.store(false, Ordering::Release);
        self.losses.wake();
    }

    pub(crate) fn ttl(&self) -> Option<Ttl> {
        let ms = self.ttl_ms.load(Ordering::Acquire);
        Ttl::new(Duration::from_millis(ms.into())).ok()
    }

    pub(crate) fn set_ttl(&self, ttl: Option<Ttl>) {
        self.ttl_ms.store(ttl.map_or(0, Ttl::as_millis), Ordering::Release);
    }

    pub(crate) fn doubt(&self) {
        self.doubtful.store(true, Ordering::Release);
    }

    pub(crate) fn state(&self) -> LeaseState {
        if self.release.done().is_some() || self.loss().is_some() {
            LeaseState::Lost
        } else if self.doubtful.load(Ordering::Acquire) {
            LeaseState::Unknown
        } else {
            LeaseState::Held
        }
    }

    /// Why the lease is lost, if it is. The clock decides, at each look (rule T3).
    pub(crate) fn loss(&self) -> Option<&'static str> {
        if self.is_lost.load(Ordering::Acquire) {
            return *self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        }
        if self.core().life.ended() {
            return Some("the manager was shut down");
        }
        if self.entry.is_destroyed() {
            self.mark_lost("the lock was destroyed");
            return Some("the lock was destroyed");
        }
        let deadline = self.deadline();
        if deadline != LocalTime::MAX && self.core().clock.now() >= deadline {
            self.mark_lost("its TTL ran out");
            return Some("its TTL ran out");
        }
        None
    }

    /// Whether the lease is known to be lost, without a look at the clock.
    pub(crate) fn known_lost(&self) -> bool {
        self.is_lost.load(Ordering::Acquire) || self.core().life.ended()
    }

    pub(crate) fn mark_lost(&self, why: &'static str) {
        let first = {
            let mut lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
            let first = lost.is_none();
            lost.get_or_insert(why);
            self.is_lost.store(true, Ordering::Release);
            first
        };
        if first {
            observe::lost(&self.entry.id, &self.token, why);
            self.core().renewer.forget(self);
            self.losses.wake();
        }
    }

    /// Released, dropped or handed over.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// The lease is over, by release, drop or hand-over; counted once.
    pub(crate) fn end(&self, held: bool) {
        if self.ended.swap(true, Ordering::AcqRel) {
            return;
        }
        let core = self.core();
        if held {
            let held_for = observe::times_holds().then(|| core.clock.now().since(self.granted));
            observe::released(&self.entry.id, &self.token, held_for);
        }
        core.life.lease_ends();
    }

    pub(crate) fn lost_error(&self, why: &'static str) -> Error {
        Error::new(ErrorKind::Lost { why: why.into() }, Operation::Hold).on(&self.entry.id)
    }
}

/// From before the request was sent, minus what clocks may drift (rule L3).
fn local_deadline(sent: LocalTime, left: Option<Duration>) -> LocalTime {
    left.map_or(LocalTime::MAX, |left| sent.after(left - left / defaults::DRIFT_DIVISOR))
}

/// A registry of waits that costs nothing until somebody waits.
#[derive(Debug, Default)]
pub(crate) struct LazyWaits(Mutex<Option<Waits>>);

impl LazyWaits {
    pub(crate) fn join(&self, wake: leasehold_core::Wake) -> crate::core::Wait {
        let mut waits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waits.get_or_insert_default().join(wake)
    }

    /// Has every waiting future look again.
    fn wake(&self) {
        let waits = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(waits) = waits {
            waits.look_again();
        }
    }
}
