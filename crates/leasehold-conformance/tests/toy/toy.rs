//! A store for the clients of one process: naive, but right (docs/writing-a-backend.md).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak, atomic::AtomicBool, atomic::Ordering::SeqCst};

use leasehold_core::{clock::TimerId, machine::LockMachine as Lock, machine::*, *};

type Id = Arc<LockId>;
type Answer<R> = std::result::Result<R, Fault>;

/// The store: the time that decides expiry, and every lock with its timer under one mutex.
#[derive(Debug)]
pub(crate) struct Toy(Timeline, Mutex<HashMap<Id, (Lock, Option<TimerId>)>>);

impl Toy {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self(Timeline::starting_now(clock), Mutex::default()))
    }

    /// One atomic step on one lock.
    fn step<R>(self: &Arc<Self>, id: &Id, work: impl FnOnce(&mut Lock, &mut Step) -> R) -> R {
        let mut step = Step::new(&self.0);
        let mut locks = self.1.lock().expect("no step panics");
        let new = || (Lock::new(Arc::clone(id), FencingToken(0)), None);
        let (lock, timer) = locks.entry(Arc::clone(id)).or_insert_with(new);
        let answer = work(lock, &mut step);
        timer.take().into_iter().for_each(|timer| self.0.clock().clear_timer(timer));
        let bell = || Arc::new(Bell(Arc::downgrade(self), Arc::clone(id))).into();
        *timer = lock.next_expiry().map(|at| self.0.clock().set_timer(at, bell()));
        drop(locks); // before the wakers, which may run anything
        step.finish();
        answer
    }

    /// One step on every lock, by namespace, name and kind.
    fn each<R>(self: &Arc<Self>, mut work: impl FnMut(&mut Lock, &mut Step) -> R) -> Vec<R> {
        let mut ids: Vec<_> = self.1.lock().expect("no step panics").keys().cloned().collect();
        ids.sort_by_key(|id| (id.namespace().clone(), id.name().clone(), id.kind()));
        ids.iter().map(|id| self.step(id, &mut work)).collect()
    }
}

/// What a timer does: it drops what is overdue, which lets the next in.
struct Bell(Weak<Toy>, Id);

impl std::task::Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.upgrade().into_iter().for_each(|toy| toy.step(&self.1, Lock::tick));
    }
}

/// One client; the flag says that it was closed.
#[derive(Debug)]
pub(crate) struct Client(Arc<Toy>, ClientId, AtomicBool);

impl Client {
    pub(crate) fn of(toy: &Arc<Toy>) -> Self {
        Self(Arc::clone(toy), ClientId::random(), AtomicBool::new(false))
    }

    /// The flag is looked at within the step: what `close` has visited stays as it left it.
    fn check(&self) -> Answer<()> {
        let fault = || Fault::new(FaultKind::Closed, "this client of the toy store was closed");
        if self.2.load(SeqCst) { Err(fault()) } else { Ok(()) }
    }

    fn step<R>(&self, id: &Id, work: impl FnOnce(&mut Lock, &mut Step) -> R) -> Answer<R> {
        self.0.step(id, |lock, step| self.check().map(|()| work(lock, step)))
    }
}

impl Backend for Client {
    fn store(&self) -> &'static str {
        "toy"
    }
    fn capabilities(&self) -> Capabilities {
        Capabilities { proves_death: true, cross_process: false, inline: true }
    }
    fn client(&self) -> ClientId {
        self.1
    }
    fn clock(&self) -> &Arc<dyn Clock> {
        self.0.0.clock()
    }
    fn store_time(&self, local: LocalTime) -> StoreTime {
        self.0.0.store_time(local)
    }

    // Each is one step on its lock. Those about no single lock come last.
    fn acquire(&self, ask: &Acquire) -> Call<Acquired> {
        Call::ready(self.step(&ask.lock, |lock, s| lock.acquire(ask, self.1, s)).flatten())
    }
    fn confirm(&self, id: &Id, token: &Token) -> Call<Confirmed> {
        Call::ready(self.step(id, |lock, s| lock.confirm(token, s)))
    }
    fn renew(&self, leases: Vec<Renewal>) -> Call<Vec<Renewed>> {
        let one = |lease: &Renewal| self.step(&lease.lock, |lock, s| lock.renew(&lease.token, s));
        Call::ready(leases.iter().map(one).collect())
    }
    fn extend(&self, id: &Id, token: &Token, ttl: Option<Ttl>) -> Call<Extended> {
        Call::ready(self.step(id, |lock, s| lock.extend(token, ttl, s)))
    }
    fn rebind(&self, id: &Id, token: &Token, to: Binding, ttl: Option<Ttl>) -> Call<Option<Grant>> {
        Call::ready(self.step(id, |lock, s| lock.rebind(token, to, ttl, self.1, s)).flatten())
    }
    fn release(&self, id: &Id, token: &Token) -> Call<Released> {
        Call::ready(self.step(id, |lock, s| lock.release(token, s)))
    }
    fn abandon(&self, id: &Id, token: &Token) {
        drop(self.step(id, |lock, s| lock.abandon(token, s)));
    }
    fn remaining(&self, id: &Id, token: &Token) -> Call<Remaining> {
        Call::ready(self.step(id, |lock, s| lock.remaining(token, s)))
    }
    fn watch(&self, on: &Id, of: Option<Generation>, id: &Token, what: WatchFor) -> Call<Watched> {
        Call::ready(self.step(on, |lock, s| lock.watch(of, id, what, self.1, s)))
    }
    fn unwatch(&self, on: &Id, id: &Token) {
        drop(self.step(on, |lock, s| lock.unwatch(id, s)));
    }
    fn cancel_all(&self, id: &Id, reason: &str) -> Call<u64> {
        Call::ready(self.step(id, |lock, s| lock.cancel_all(reason, s)))
    }
    fn destroy(&self, id: &Id, of: Option<Generation>, reason: &str) -> Call<Destroyed> {
        Call::ready(self.step(id, |lock, s| lock.destroy(of, reason, s)))
    }
    fn counts(&self, id: &Id) -> Call<Option<LockCounts>> {
        Call::ready(self.step(id, Lock::counts))
    }
    fn inspect(&self, id: &Id) -> Call<Option<LockState>> {
        Call::ready(self.step(id, Lock::inspect))
    }
    fn survey(&self, namespace: Option<&Namespace>) -> Call<Vec<LockState>> {
        let states = self.0.each(Lock::inspect).into_iter().flatten();
        let asked = |state: &LockState| namespace.is_none_or(|all| state.lock.namespace() == all);
        Call::ready(self.check().map(|()| states.filter(asked).collect()))
    }
    fn close(&self) -> Call<()> {
        self.2.store(true, SeqCst);
        self.0.each(|lock, s| lock.forget_client(self.1, s));
        Call::ready(Ok(()))
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.close());
    }
}
