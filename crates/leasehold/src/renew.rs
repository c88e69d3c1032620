//! Renewal: one thread per manager, in batches, while there is something to renew (rule L2).
//!
//! A lease is due every third of its TTL. The thread starts with the first renewed lease, sleeps
//! until the earliest is due, renews all that are due about then in one request, and sleeps without
//! a timer while there are none: an idle manager wakes nothing. A failed renewal is tried again
//! until the lease's own deadline, which the lease judges by itself (rule L3). Renewals of several
//! parts of a store travel side by side.

use std::{
    collections::BTreeMap,
    fmt,
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak, atomic::Ordering},
    task::{Context, Poll},
    thread,
    time::Duration,
};

use leasehold_core::{
    Backend, Call, Clock, Fault, FaultKind, LocalTime, Renewal, Renewed, Sleep, Ttl, Wake, defaults,
};
use slab::Slab;

use crate::{
    core::Core,
    lease_state::{Tracked, UNKNOWN_TO_THE_STORE},
    observe,
};

/// The most leases of one request.
const BATCH_MAX: usize = 1024;
/// Leases that are due this much later are renewed along; a fraction of the soonest TTL's third
/// would save no request.
const ALONG: Duration = Duration::from_millis(5);
/// How soon a failed renewal is tried again: a tenth of what is left, within these.
const RETRY_MIN: Duration = Duration::from_millis(20);
const RETRY_MAX: Duration = Duration::from_secs(1);

pub(crate) struct Renewer {
    core: Weak<Core>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    wake: Wake,
}

#[derive(Default)]
struct State {
    /// What was tracked since the thread looked last, in no order: most leases are released before
    /// it looks again, and so never pay for their place in the order.
    fresh: Slab<Arc<Tracked>>,
    due: BTreeMap<(LocalTime, u64), Arc<Tracked>>,
    serial: u64,
    thread_runs: bool,
    /// The thread looks no later than this.
    promised: LocalTime,
    closed: bool,
}

impl Renewer {
    pub(crate) fn new(core: Weak<Core>) -> Self {
        Self { core, shared: Arc::default() }
    }

    /// Renews a lease from now on, every third of `ttl` from `sent`.
    pub(crate) fn track(&self, lease: &Arc<Tracked>, sent: LocalTime, ttl: Ttl) {
        let mut state = self.shared.lock();
        let due = sent.after(third(ttl.get()));
        if state.schedule(lease, due) {
            self.look_in_time(state, due);
        }
    }

    /// The TTL of a lease changed. One that is renewed goes on with the new one, also when a renewal
    /// is on its way just now; without a TTL it rests until it is given one again.
    pub(crate) fn retime(&self, lease: &Arc<Tracked>, sent: LocalTime, ttl: Option<Ttl>) {
        let mut state = self.shared.lock();
        if lease.place.load(Ordering::Relaxed) == NEVER {
            return;
        }
        let listed = state.remove(lease, RESTING);
        if let Some(ttl) = ttl {
            let due = sent.after(third(ttl.get()));
            if state.schedule(lease, due) {
                self.look_in_time(state, due);
            }
        }
        drop(listed);
    }

    /// Renews a lease no more.
    pub(crate) fn forget(&self, lease: &Tracked) {
        let gone = self.shared.lock().remove(lease, NEVER);
        drop(gone);
    }

    /// Sees to it that the thread runs and looks by `due`.
    fn look_in_time(&self, mut state: MutexGuard<'_, State>, due: LocalTime) {
        if !state.thread_runs {
            state.thread_runs = true;
            drop(state);
            self.start_thread();
        } else if due < state.promised {
            state.promised = due;
            drop(state);
            self.shared.wake.notify();
        }
    }

    fn start_thread(&self) {
        let Some(core) = self.core.upgrade() else { return };
        let shared = Arc::clone(&self.shared);
        let (clock, backend) = (Arc::clone(&core.clock), Arc::downgrade(&core.backend));
        drop(core);
        let started = thread::Builder::new()
            .name("leasehold-renewal".into())
            .spawn(move || pollster::block_on(renew_until_closed(&shared, &clock, &backend)));
        if started.is_err() {
            // The next lease tries again; meanwhile the leases run into their deadlines and say so.
            self.shared.lock().thread_runs = false;
        }
    }
}

impl Drop for Renewer {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.wake.notify();
    }
}

impl fmt::Debug for Renewer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.shared.lock();
        let leases = state.due.len() + state.fresh.len();
        f.debug_struct("Renewer").field("leases", &leases).finish()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The leases that are due, at most a batch, and when to look next.
    fn take_due(&self, now: LocalTime) -> (Vec<Arc<Tracked>>, Option<LocalTime>, bool) {
        let mut state = self.lock();
        state.put_in_order();
        let mut batch = Vec::new();
        if state.due.first_key_value().is_some_and(|((due, _), _)| *due <= now) {
            let until = now.after(ALONG);
            while batch.len() < BATCH_MAX {
                match state.due.first_entry() {
                    Some(entry) if entry.key().0 <= until => {
                        let lease = entry.remove();
                        lease.place.store(ON_ITS_WAY, Ordering::Relaxed);
                        batch.push(lease);
                    }
                    _ => break,
                }
            }
        }
        let next = state.due.first_key_value().map(|((due, _), _)| *due);
        state.promised = next.unwrap_or(LocalTime::MAX);
        (batch, next, state.closed)
    }

    fn put_back(&self, lease: &Arc<Tracked>, due: LocalTime) {
        let mut state = self.lock();
        // Not when it was released, lost or extended while the renewal was on its way: no renewal
        // after a release, and an extension has said when the next is due.
        if lease.place.load(Ordering::Relaxed) == ON_ITS_WAY {
            state.schedule(lease, due);
        }
    }
}

/// Places of a lease that is not in a list: never again (or never asked for), until it has a TTL
/// again, until the renewal that is on its way is answered. Below them are serial numbers in the
/// order, and, from `FRESH` on, slots among the fresh.
pub(crate) const NEVER: u64 = u64::MAX;
const RESTING: u64 = u64::MAX - 1;
const ON_ITS_WAY: u64 = u64::MAX - 2;
const FRESH: u64 = 1 << 63;

impl State {
    /// Adds a lease to the fresh ones, and says whether it did.
    fn schedule(&mut self, lease: &Arc<Tracked>, due: LocalTime) -> bool {
        // Past `max_hold` nothing is renewed: the lease runs out with its TTL.
        if due >= lease.renew_until {
            lease.place.store(NEVER, Ordering::Relaxed);
            return false;
        }
        lease.due.store(due.0, Ordering::Relaxed);
        let slot = self.fresh.insert(Arc::clone(lease));
        lease.place.store(FRESH + slot as u64, Ordering::Relaxed);
        true
    }

    fn put_in_order(&mut self) {
        for lease in self.fresh.drain() {
            self.serial += 1;
            lease.place.store(self.serial, Ordering::Relaxed);
            let due = LocalTime(lease.due.load(Ordering::Relaxed));
            self.due.insert((due, self.serial), lease);
        }
    }

    fn remove(&mut self, lease: &Tracked, then: u64) -> Option<Arc<Tracked>> {
        match lease.place.swap(then, Ordering::Relaxed) {
            NEVER | RESTING | ON_ITS_WAY => None,
            slot if slot >= FRESH => {
                self.fresh.try_remove(usize::try_from(slot - FRESH).unwrap_or(usize::MAX))
            }
            serial => self.due.remove(&(LocalTime(lease.due.load(Ordering::Relaxed)), serial)),
        }
    }
}

async fn renew_until_closed(shared: &Shared, clock: &Arc<dyn Clock>, backend: &Weak<dyn Backend>) {
    let mut flights: Vec<Flight> = Vec::new();
    loop {
        let (batch, next, closed) = shared.take_due(clock.now());
        if closed {
            return;
        }
        if !batch.is_empty()
            && let Some(backend) = backend.upgrade()
        {
            let parts = by_part(&*backend, batch).into_values();
            flights.extend(parts.map(|leases| Flight::start(clock, &*backend, leases)));
        }
        let mut timer = pin!(next.map(|next| Sleep::until(Arc::clone(clock), next)));
        poll_fn(|cx| {
            let in_the_air = flights.len();
            flights.retain_mut(|flight| match flight.poll(cx) {
                Poll::Ready(answer) => {
                    flight.land(shared, clock, answer);
                    false
                }
                Poll::Pending => true,
            });
            // Who has landed is due again some time.
            if flights.len() < in_the_air || shared.wake.poll_notified(cx).is_ready() {
                return Poll::Ready(());
            }
            match timer.as_mut().as_pin_mut() {
                Some(timer) => timer.poll(cx),
                None => Poll::Pending,
            }
        })
        .await;
    }
}

/// The leases of each part of the store: a part that does not answer holds up no other.
fn by_part(backend: &dyn Backend, batch: Vec<Arc<Tracked>>) -> BTreeMap<u64, Vec<Arc<Tracked>>> {
    let mut parts: BTreeMap<u64, Vec<_>> = BTreeMap::new();
    for lease in batch {
        parts.entry(backend.part(&lease.entry.id)).or_default().push(lease);
    }
    parts
}

/// Renewals that are on their way together.
struct Flight {
    leases: Vec<Arc<Tracked>>,
    sent: LocalTime,
    call: Call<Vec<Renewed>>,
    limit: Sleep,
}

impl Flight {
    fn start(clock: &Arc<dyn Clock>, backend: &dyn Backend, leases: Vec<Arc<Tracked>>) -> Self {
        let sent = clock.now();
        let renewals = leases
            .iter()
            .map(|lease| Renewal { lock: Arc::clone(&lease.entry.id), token: lease.token.clone() })
            .collect();
        let limit = Sleep::until(Arc::clone(clock), sent.after(defaults::COMMAND_TIMEOUT));
        Self { leases, sent, call: backend.renew(renewals), limit }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Vec<Renewed>, Fault>> {
        match Pin::new(&mut self.call).poll(cx) {
            Poll::Pending => Pin::new(&mut self.limit).poll(cx).map(|()| {
                Err(Fault::new(FaultKind::Unavailable, "the store did not answer in time"))
            }),
            answer => answer,
        }
    }

    fn land(&self, shared: &Shared, clock: &Arc<dyn Clock>, answer: Result<Vec<Renewed>, Fault>) {
        match answer {
            Ok(answers) => {
                for (lease, answer) in self.leases.iter().zip(answers) {
                    settle(shared, lease, self.sent, answer);
                }
            }
            Err(fault) => {
                let now = clock.now();
                for lease in &self.leases {
                    lease.doubt();
                    observe::renewal_failed(&lease.entry.id, &lease.token, &fault);
                    let left = lease.deadline().since(now);
                    if left.is_zero() {
                        // Asking marks it as lost.
                        let _ = lease.loss();
                    } else {
                        let pause = (left / 10).clamp(RETRY_MIN, RETRY_MAX);
                        shared.put_back(lease, now.after(pause));
                    }
                }
            }
        }
    }
}

fn settle(shared: &Shared, lease: &Arc<Tracked>, sent: LocalTime, answer: Renewed) {
    match answer {
        Renewed::Held { remaining } => {
            lease.set_deadline(sent, remaining);
            if let Some(remaining) = remaining {
                shared.put_back(lease, sent.after(third(remaining)));
            }
        }
        // "Unknown" is a loss at once (rule L3), unless the lease was released meanwhile.
        Renewed::Unknown => {
            if lease.release.done().is_none() {
                lease.mark_lost(UNKNOWN_TO_THE_STORE);
            }
        }
    }
}

fn third(ttl: Duration) -> Duration {
    ttl / defaults::RENEWALS_PER_TTL
}
