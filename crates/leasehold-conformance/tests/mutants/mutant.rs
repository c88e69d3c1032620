//! A store that does as the memory store does, but for one fault.

use std::{
    fmt,
    sync::{Arc, Mutex},
    task::{Context, Wake as WakeByStd, Waker},
    time::Duration,
};

use leasehold_conformance::{Cannot, StoreUnderTest, WallStep};
use leasehold_core::{
    Acquire, Acquired, Backend, Binding, Call, Capabilities, ClientId, Clock, Confirmed, Destroyed,
    Extended, Generation, Grant, LocalTime, LockCounts, LockId, LockState, ManualClock,
    MemoryStore, Namespace, Released, Remaining, Renewal, Renewed, StoreTime, Token, Ttl, Wake,
    WatchFor, Watched,
};

pub(crate) type Inner = Arc<dyn Backend>;

/// What is broken: every method does as the healthy store does until a fault says otherwise. One
/// value serves all clients of a store.
pub(crate) trait Fault: fmt::Debug + Send + Sync + 'static {
    fn capabilities(&self, inner: &Inner) -> Capabilities {
        inner.capabilities()
    }
    fn acquire(&self, inner: &Inner, request: &Acquire) -> Call<Acquired> {
        inner.acquire(request)
    }
    fn confirm(&self, inner: &Inner, lock: &Arc<LockId>, token: &Token) -> Call<Confirmed> {
        inner.confirm(lock, token)
    }
    fn renew(&self, inner: &Inner, leases: Vec<Renewal>) -> Call<Vec<Renewed>> {
        inner.renew(leases)
    }
    fn extend(
        &self,
        inner: &Inner,
        lock: &Arc<LockId>,
        token: &Token,
        ttl: Option<Ttl>,
    ) -> Call<Extended> {
        inner.extend(lock, token, ttl)
    }
    fn rebind(
        &self,
        inner: &Inner,
        lock: &Arc<LockId>,
        token: &Token,
        binding: Binding,
        ttl: Option<Ttl>,
    ) -> Call<Option<Grant>> {
        inner.rebind(lock, token, binding, ttl)
    }
    fn release(&self, inner: &Inner, lock: &Arc<LockId>, token: &Token) -> Call<Released> {
        inner.release(lock, token)
    }
    fn abandon(&self, inner: &Inner, lock: &Arc<LockId>, token: &Token) {
        inner.abandon(lock, token);
    }
    fn watch(
        &self,
        inner: &Inner,
        lock: &Arc<LockId>,
        generation: Option<Generation>,
        id: &Token,
        what: WatchFor,
    ) -> Call<Watched> {
        inner.watch(lock, generation, id, what)
    }
    fn cancel_all(&self, inner: &Inner, lock: &Arc<LockId>, reason: &str) -> Call<u64> {
        inner.cancel_all(lock, reason)
    }
    fn destroy(
        &self,
        inner: &Inner,
        lock: &Arc<LockId>,
        generation: Option<Generation>,
        reason: &str,
    ) -> Call<Destroyed> {
        inner.destroy(lock, generation, reason)
    }
    fn survey(&self, inner: &Inner, namespace: Option<&Namespace>) -> Call<Vec<LockState>> {
        inner.survey(namespace)
    }
    fn close(&self, inner: &Inner) -> Call<()> {
        inner.close()
    }
    /// What becomes of a client that dies.
    fn dies(&self, client: Arc<dyn Backend>) {
        drop(client);
    }
    fn disconnect(&self, _: &dyn Backend) -> Result<(), Cannot> {
        Err(Cannot::new("pushes of this store need no connection"))
    }
    fn fill_wake(&self, _: &dyn Backend) -> Result<(), Cannot> {
        Err(Cannot::new("pushes of this store need no room"))
    }
    fn step_wall_clock(&self, _: WallStep) -> Result<(), Cannot> {
        Err(Cannot::new("this store has no wall clock"))
    }
}

/// One client of a broken store.
struct Mutant<F> {
    inner: Inner,
    fault: Arc<F>,
}

impl<F: Fault> fmt::Debug for Mutant<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mutant").finish_non_exhaustive()
    }
}

#[deny(clippy::missing_trait_methods)]
impl<F: Fault> Backend for Mutant<F> {
    fn store(&self) -> &'static str {
        self.inner.store()
    }
    fn capabilities(&self) -> Capabilities {
        self.fault.capabilities(&self.inner)
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
        self.fault.acquire(&self.inner, request)
    }
    fn confirm(&self, lock: &Arc<LockId>, token: &Token) -> Call<Confirmed> {
        self.fault.confirm(&self.inner, lock, token)
    }
    fn renew(&self, leases: Vec<Renewal>) -> Call<Vec<Renewed>> {
        self.fault.renew(&self.inner, leases)
    }
    fn extend(&self, lock: &Arc<LockId>, token: &Token, ttl: Option<Ttl>) -> Call<Extended> {
        self.fault.extend(&self.inner, lock, token, ttl)
    }
    fn rebind(
        &self,
        lock: &Arc<LockId>,
        token: &Token,
        binding: Binding,
        ttl: Option<Ttl>,
    ) -> Call<Option<Grant>> {
        self.fault.rebind(&self.inner, lock, token, binding, ttl)
    }
    fn release(&self, lock: &Arc<LockId>, token: &Token) -> Call<Released> {
        self.fault.release(&self.inner, lock, token)
    }
    fn abandon(&self, lock: &Arc<LockId>, token: &Token) {
        self.fault.abandon(&self.inner, lock, token);
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
        self.fault.watch(&self.inner, lock, generation, id, what)
    }
    fn unwatch(&self, lock: &Arc<LockId>, id: &Token) {
        self.inner.unwatch(lock, id);
    }
    fn cancel_all(&self, lock: &Arc<LockId>, reason: &str) -> Call<u64> {
        self.fault.cancel_all(&self.inner, lock, reason)
    }
    fn destroy(
        &self,
        lock: &Arc<LockId>,
        generation: Option<Generation>,
        reason: &str,
    ) -> Call<Destroyed> {
        self.fault.destroy(&self.inner, lock, generation, reason)
    }
    fn counts(&self, lock: &Arc<LockId>) -> Call<Option<LockCounts>> {
        self.inner.counts(lock)
    }
    fn inspect(&self, lock: &Arc<LockId>) -> Call<Option<LockState>> {
        self.inner.inspect(lock)
    }
    fn survey(&self, namespace: Option<&Namespace>) -> Call<Vec<LockState>> {
        self.fault.survey(&self.inner, namespace)
    }
    fn close(&self) -> Call<()> {
        self.fault.close(&self.inner)
    }
}

/// A broken store on a manual clock.
pub(crate) struct MutantStore<F> {
    clock: ManualClock,
    store: MemoryStore,
    fault: Arc<F>,
}

impl<F: Fault> MutantStore<F> {
    pub(crate) fn new(fault: F) -> Self {
        let clock = ManualClock::new();
        let store = MemoryStore::with_clock(Arc::new(clock.clone()));
        Self { clock, store, fault: Arc::new(fault) }
    }
}

impl<F: Fault> StoreUnderTest for MutantStore<F> {
    fn client(&self) -> Arc<dyn Backend> {
        let inner = Arc::new(self.store.client());
        Arc::new(Mutant { inner, fault: Arc::clone(&self.fault) })
    }
    fn kill(&self, client: Arc<dyn Backend>) {
        self.fault.dies(client);
    }
    fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }
    fn step(&self) -> Duration {
        Duration::from_secs(1)
    }
    fn disconnect(&self, client: &dyn Backend) -> Result<(), Cannot> {
        self.fault.disconnect(client)
    }
    fn fill_wake(&self, client: &dyn Backend) -> Result<(), Cannot> {
        self.fault.fill_wake(client)
    }
    fn step_wall_clock(&self, step: WallStep) -> Result<(), Cannot> {
        self.fault.step_wall_clock(step)
    }
}

/// The answer of the memory store, which is always there at once.
pub(crate) fn now<T>(call: Call<T>) -> T {
    let answer = call.into_ready().unwrap_or_else(|_| panic!("the memory store answers inline"));
    answer.unwrap_or_else(|fault| panic!("the memory store failed: {fault}"))
}

/// A changed answer; faults stay as they are.
pub(crate) fn map<T, U: Send + 'static>(call: Call<T>, change: impl FnOnce(T) -> U) -> Call<U> {
    match call.into_ready() {
        Ok(answer) => Call::ready(answer.map(change)),
        Err(_) => panic!("the memory store answers inline"),
    }
}

/// Does something when a flag is set, instead of whoever waits for it.
pub(crate) fn when_set(flag: &Wake, then: impl Fn() + Send + Sync + 'static) {
    let then: Arc<Then> = Arc::new(Then(Mutex::new(Box::new(then))));
    let waker = Waker::from(Arc::clone(&then));
    if flag.poll_notified(&Context::from_waker(&waker)).is_ready() {
        then.wake();
    }
}

struct Then(Mutex<Box<dyn Fn() + Send + Sync>>);

impl WakeByStd for Then {
    fn wake(self: Arc<Self>) {
        (self.0.lock().expect("no panic in a wake"))();
    }
}
