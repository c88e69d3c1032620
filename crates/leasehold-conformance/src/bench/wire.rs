//! A wire between a client and its store that can be made late and made to say things twice, as
//! networks do (rule L7).

use std::{
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Wake as WakeByStd, Waker},
};

use leasehold_core::{
    Acquire, Acquired, Backend, Binding, Call, Capabilities, ClientId, Clock, Confirmed, Destroyed,
    Extended, Fault, Generation, Grant, LocalTime, LockCounts, LockId, LockState, Namespace, Place,
    Released, Remaining, Renewal, Renewed, StoreTime, Token, Ttl, Wake, WatchFor, Watched,
};

use super::block::{answer, outcome};

/// How many acquisitions may be held back at once.
const LATE_MAX: usize = 1000;

/// A client that a case can keep acquisitions back from, and whose requests may arrive twice.
/// Everything else goes through as it is.
#[derive(Debug)]
pub struct Wire {
    inner: Arc<dyn Backend>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    doubles: bool,
    holds_back: bool,
    late: Vec<Arc<Late>>,
}

/// An acquisition that is on its way.
#[derive(Debug)]
struct Late {
    request: Acquire,
    answer: Mutex<Option<Result<Acquired, Fault>>>,
    arrived: Wake,
}

impl Late {
    fn arrives(&self, store: &dyn Backend) {
        *self.answer() = Some(outcome(store.acquire(&self.request)));
        self.arrived.notify();
    }

    /// The answer, once there is one.
    async fn delivered(&self) -> Result<Acquired, Fault> {
        self.arrived.notified().await;
        self.answer().take().expect("it was put there before the flag was set")
    }

    fn answer(&self) -> MutexGuard<'_, Option<Result<Acquired, Fault>>> {
        self.answer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wire {
    pub(super) fn new(inner: Arc<dyn Backend>) -> Self {
        Self { inner, state: Mutex::default() }
    }

    /// From now on every request that may be sent again arrives twice, and its sender sees one of
    /// the answers.
    pub fn double(&self) {
        self.state().doubles = true;
    }

    /// From now on acquisitions are held back.
    pub fn hold_back(&self) {
        self.state().holds_back = true;
    }

    /// Delivers what was held back, in the order in which it was sent, and answers it.
    ///
    /// # Panics
    /// When the store does not answer.
    #[track_caller]
    pub fn deliver(&self) {
        let late = {
            let mut state = self.state();
            state.holds_back = false;
            mem::take(&mut state.late)
        };
        for late in late {
            late.arrives(&*self.inner);
        }
    }

    /// A copy of an acquisition arrives. Its sender knows nothing of it and has the flag of its
    /// first answer, so a wake that this copy brings about is passed on to that.
    ///
    /// # Panics
    /// When the store does not answer.
    #[track_caller]
    pub fn copy_arrives(&self, request: &Acquire, seen_by_sender: Option<&Place>) -> Acquired {
        let said = answer(self.inner.acquire(request));
        if let (Acquired::Queued(place), Some(sender)) = (&said, seen_by_sender) {
            pass_on(&place.wake, &sender.wake);
        }
        said
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn doubles(&self) -> bool {
        self.state().doubles
    }

    /// Sends a request, and once more where that is safe; `keep` chooses what the sender sees.
    fn twice<T: Send + 'static>(
        &self,
        send: impl Fn(&dyn Backend) -> Call<T>,
        keep: fn(T, T) -> T,
    ) -> Call<T> {
        let first = send(&*self.inner);
        if !self.doubles() {
            return first;
        }
        let copy = send(&*self.inner);
        Call::pending(async move {
            let first = first.await?;
            Ok(keep(first, copy.await?))
        })
    }
}

/// Sets one flag when the other is set.
fn pass_on(from: &Wake, to: &Wake) {
    let waker = Waker::from(Arc::new(Hop(to.clone())));
    if from.poll_notified(&Context::from_waker(&waker)).is_ready() {
        to.notify();
    }
}

struct Hop(Wake);

impl WakeByStd for Hop {
    fn wake(self: Arc<Self>) {
        self.0.notify();
    }
}

#[deny(clippy::missing_trait_methods)]
impl Backend for Wire {
    fn store(&self) -> &'static str {
        self.inner.store()
    }
    fn capabilities(&self) -> Capabilities {
        Capabilities { inline: false, ..self.inner.capabilities() }
    }
    fn client(&self) -> ClientId {
        self.inner.client()
    }
    fn clock(&self) -> &Arc<dyn Clock> {
        self.inner.clock()
    }
    fn store_time(&self, local: LocalTime) -> StoreTime {
        self.inner.store_time(local)
    }
    fn part(&self, lock: &LockId) -> u64 {
        self.inner.part(lock)
    }
    fn acquire(&self, request: &Acquire) -> Call<Acquired> {
        {
            let mut state = self.state();
            if state.holds_back {
                assert!(state.late.len() < LATE_MAX, "too much is held back");
                let late = Arc::new(Late {
                    request: request.clone(),
                    answer: Mutex::default(),
                    arrived: Wake::new(),
                });
                state.late.push(Arc::clone(&late));
                return Call::pending(async move { late.delivered().await });
            }
        }
        // The flag that the last answer told is the one that works.
        self.twice(|inner| inner.acquire(request), |_, last| last)
    }
    fn confirm(&self, lock: &Arc<LockId>, token: &Token) -> Call<Confirmed> {
        // A rejection is told once.
        self.twice(|inner| inner.confirm(lock, token), |first, _| first)
    }
    fn renew(&self, leases: Vec<Renewal>) -> Call<Vec<Renewed>> {
        self.twice(|inner| inner.renew(leases.clone()), |_, last| last)
    }
    fn extend(&self, lock: &Arc<LockId>, token: &Token, ttl: Option<Ttl>) -> Call<Extended> {
        self.twice(|inner| inner.extend(lock, token, ttl), |_, last| last)
    }
    fn rebind(
        &self,
        lock: &Arc<LockId>,
        token: &Token,
        binding: Binding,
        ttl: Option<Ttl>,
    ) -> Call<Option<Grant>> {
        self.twice(|inner| inner.rebind(lock, token, binding, ttl), |_, last| last)
    }
    fn release(&self, lock: &Arc<LockId>, token: &Token) -> Call<Released> {
        // The second time it finds nothing.
        self.twice(|inner| inner.release(lock, token), |first, _| first)
    }
    fn abandon(&self, lock: &Arc<LockId>, token: &Token) {
        self.inner.abandon(lock, token);
        if self.doubles() {
            self.inner.abandon(lock, token);
        }
    }
    fn remaining(&self, lock: &Arc<LockId>, token: &Token) -> Call<Remaining> {
        self.inner.remaining(lock, token)
    }
    fn watch(
        &self,
        lock: &Arc<LockId>,
        generation: Option<Generation>,
        id: &Token,
        what: WatchFor,
    ) -> Call<Watched> {
        self.inner.watch(lock, generation, id, what)
    }
    fn unwatch(&self, lock: &Arc<LockId>, id: &Token) {
        self.inner.unwatch(lock, id);
    }
    fn cancel_all(&self, lock: &Arc<LockId>, reason: &str) -> Call<u64> {
        self.inner.cancel_all(lock, reason)
    }
    fn destroy(
        &self,
        lock: &Arc<LockId>,
        generation: Option<Generation>,
        reason: &str,
    ) -> Call<Destroyed> {
        self.inner.destroy(lock, generation, reason)
    }
    fn counts(&self, lock: &Arc<LockId>) -> Call<Option<LockCounts>> {
        self.inner.counts(lock)
    }
    fn inspect(&self, lock: &Arc<LockId>) -> Call<Option<LockState>> {
        self.inner.inspect(lock)
    }
    fn survey(&self, namespace: Option<&Namespace>) -> Call<Vec<LockState>> {
        self.inner.survey(namespace)
    }
    fn close(&self) -> Call<()> {
        self.inner.close()
    }
}
