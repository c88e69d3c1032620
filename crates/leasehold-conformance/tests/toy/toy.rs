//! A store for the clients of one process: naive, but right (docs/writing-a-backend.md).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak, atomic::AtomicBool, atomic::Ordering::SeqCst};

use leasehold_core::{clock::TimerId, defaults::CLAIM, *};

type Id = Arc<LockId>;
type Answer<R> = std::result::Result<R, Fault>;

/// The store: the clock that decides expiry, and every lock under one mutex.
#[derive(Debug)]
pub(crate) struct Toy(Arc<dyn Clock>, Mutex<HashMap<Id, Lock>>);

#[derive(Debug, Default)]
struct Lock {
    now: LocalTime,             // of the step that runs
    capacity: Option<Capacity>, // while somebody holds, waits or watches
    generation: Generation,
    last_fencing: u64,
    line: Vec<Entry>, // in the order of arrival, which is the order of grants as well
    watchers: Vec<Watcher>,
    timer: Option<TimerId>,
    wakes: Vec<Wake>, // to be set after the step
}

#[derive(Debug)]
struct Entry {
    ask: Acquire, // with the TTL and the binding that count now
    client: ClientId,
    wake: Wake,
    state: State,
    since: LocalTime,
    expiry: Option<LocalTime>,
    grant: Grant,
}

#[derive(Clone, Debug, PartialEq)]
enum State {
    Waits,
    Claims,
    Holds,
    Rejected(Rejection),
}

#[derive(Debug)]
struct Watcher {
    id: Token,
    client: ClientId,
    what: WatchFor,
    wake: Wake,
    done: bool,
}

impl Toy {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self(clock, Mutex::default()))
    }

    /// One atomic step on one lock.
    fn step<R>(self: &Arc<Self>, id: &Id, work: impl FnOnce(&mut Lock) -> R) -> R {
        let mut locks = self.1.lock().expect("no step panics");
        let lock = locks.entry(Arc::clone(id)).or_default();
        lock.now = self.0.now();
        lock.settle();
        let answer = work(lock);
        lock.settle();
        lock.timer.take().into_iter().for_each(|timer| self.0.clear_timer(timer));
        if let Some(at) = lock.line.iter().filter_map(|entry| entry.expiry).min() {
            let bell = Arc::new(Bell(Arc::downgrade(self), Arc::clone(id)));
            lock.timer = Some(self.0.set_timer(at, bell.into()));
        }
        let wakes = std::mem::take(&mut lock.wakes);
        drop(locks); // before the wakers, which may run anything
        wakes.iter().for_each(Wake::notify);
        answer
    }

    /// One step on every lock, by namespace, name and kind.
    fn each<R>(self: &Arc<Self>, work: impl Fn(&Id, &mut Lock) -> R) -> Vec<R> {
        let mut ids: Vec<_> = self.1.lock().expect("no step panics").keys().cloned().collect();
        ids.sort_by_key(|id| (id.namespace().clone(), id.name().clone(), id.kind()));
        ids.iter().map(|id| self.step(id, |lock| work(id, lock))).collect()
    }
}

/// What a timer does: an empty step, since every step drops what is overdue.
struct Bell(Weak<Toy>, Id);

impl std::task::Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.upgrade().into_iter().for_each(|toy| toy.step(&self.1, |_| ()));
    }
}

impl Entry {
    fn new(ask: &Acquire, client: ClientId, lock: &Lock, capacity: Capacity) -> Self {
        let (fencing, generation) = (FencingToken(0), lock.generation);
        Self {
            ask: ask.clone(),
            client,
            wake: Wake::new(),
            state: State::Waits,
            since: lock.now,
            expiry: None,
            grant: Grant { fencing, remaining: None, ttl: None, at: None, generation, capacity },
        }
    }

    fn holds(&self) -> bool {
        matches!(self.state, State::Claims | State::Holds)
    }

    fn weight(&self) -> u32 {
        self.ask.share.weight(self.grant.capacity)
    }

    fn start(&mut self, ttl: Option<Ttl>, now: LocalTime) {
        (self.ask.ttl, self.expiry) = (ttl, ttl.map(|ttl| now.after(ttl.get())));
    }

    fn renew(&mut self, now: LocalTime) {
        self.expiry = self.expiry.max(self.ask.ttl.map(|ttl| now.after(ttl.get())));
    }

    fn confirm(&mut self, now: LocalTime) -> Grant {
        (self.state, self.expiry) = (State::Holds, self.expiry.filter(|_| self.ask.ttl.is_some()));
        self.renew(now);
        self.told(now)
    }

    fn told(&self, now: LocalTime) -> Grant {
        let remaining = self.expiry.map(|expiry| expiry.since(now));
        Grant { remaining, ttl: self.ask.ttl, at: Some(now), ..self.grant }
    }
}

impl Lock {
    fn holders(&self) -> impl Iterator<Item = &Entry> {
        self.line.iter().filter(|entry| entry.holds())
    }

    fn waiters(&self) -> impl Iterator<Item = &Entry> {
        self.line.iter().filter(|entry| entry.state == State::Waits)
    }

    fn used(&self) -> u32 {
        self.holders().map(Entry::weight).sum()
    }

    fn find(&self, token: &Token) -> Option<usize> {
        self.line.iter().position(|entry| entry.ask.token == *token)
    }

    /// Drops what is overdue, then grants from the head, then completes watchers: in this order,
    /// so that no watcher sees a permit that is handed on.
    fn settle(&mut self) {
        let now = self.now;
        self.line.retain(|entry| !entry.holds() || entry.expiry.is_none_or(|end| end > now));
        let mut used = self.used();
        for head in self.line.iter_mut().filter(|entry| entry.state == State::Waits) {
            if used + head.weight() > head.grant.capacity.get() {
                break;
            }
            used += head.weight();
            self.last_fencing = now.0.max(self.last_fencing + 1);
            head.grant.fencing = FencingToken(self.last_fencing);
            let claim = head.ask.ttl.map_or(CLAIM, |ttl| ttl.get().min(CLAIM));
            (head.state, head.since) = (State::Claims, now);
            head.expiry = Some(now.after(claim));
            self.wakes.push(head.wake.clone());
        }
        let free = self.capacity.is_none_or(|capacity| used < capacity.get());
        let readable = free && self.waiters().next().is_none();
        self.complete(|what| match what {
            WatchFor::Unlocked => used == 0,
            WatchFor::AnyPermit => free,
            WatchFor::Readable => readable,
            WatchFor::Destroyed => false,
        });
        if used == 0 && self.watchers.iter().all(|watcher| watcher.done) {
            self.capacity = None;
        }
    }

    fn complete(&mut self, is_true: impl Fn(WatchFor) -> bool) {
        let waiting = self.watchers.iter_mut().filter(|watcher| !watcher.done);
        for watcher in waiting.filter(|watcher| is_true(watcher.what)) {
            watcher.done = true;
            self.wakes.push(watcher.wake.clone());
        }
    }

    /// Each arm is one line of the contract, in its order.
    fn acquire(&mut self, ask: &Acquire, client: ClientId) -> Acquired {
        let registered = self.capacity.unwrap_or(ask.capacity.initial());
        let (capacity, limit) = (registered, ask.queue_limit);
        let (weight, ahead) = (ask.share.weight(capacity), self.waiters().count() as u64);
        let busy = ahead > 0 || self.used() + weight > capacity.get();
        Acquired::Refused(match self.find(&ask.token) {
            _ if ask.not_after.is_some_and(|end| end.0 <= self.now.0) => Refusal::Stale,
            Some(at) if self.line[at].ask.attempt == ask.attempt => return self.replay(at),
            Some(_) => Refusal::TokenInUse,
            None if ask.generation.is_some_and(|of| of < self.generation) => Refusal::Destroyed,
            None if !ask.capacity.accepts(registered) => Refusal::ConfigMismatch { registered },
            None if weight > capacity.get() => Refusal::TooHeavy { capacity },
            None if busy && !ask.wait => return Acquired::Busy(Obstacle::default()),
            None if busy && ahead >= limit => Refusal::QueueFull { limit },
            None => {
                self.capacity = Some(capacity);
                self.line.push(Entry::new(ask, client, self, capacity));
                self.settle();
                return self.replay(self.line.len() - 1);
            }
        })
    }

    /// The answer to a request that is in the line.
    fn replay(&mut self, at: usize) -> Acquired {
        let (entry, now) = (&mut self.line[at], self.now);
        match entry.state {
            State::Holds => Acquired::Granted(entry.told(now)),
            // Who gets this answer does not ask again.
            State::Claims => Acquired::Granted(entry.confirm(now)),
            State::Waits | State::Rejected(_) => Acquired::Queued(Place {
                wake: entry.wake.clone(),
                obstacle: Obstacle::default(),
                generation: entry.grant.generation,
                capacity: entry.grant.capacity,
            }),
        }
    }

    fn reject(&mut self, why: &Rejection) -> u64 {
        let mut count = 0;
        for waiter in self.line.iter_mut().filter(|entry| entry.state == State::Waits) {
            waiter.state = State::Rejected(why.clone());
            self.wakes.push(waiter.wake.clone());
            count += 1;
        }
        count
    }

    fn state(&self, id: &Id) -> Option<LockState> {
        let now = self.now;
        let holders = self.holders().map(|holder| HolderState {
            short_id: holder.ask.token.short_id(),
            info: (*holder.ask.info).clone(),
            share: holder.ask.share,
            fencing: holder.grant.fencing,
            held_for: now.since(holder.since),
            ttl_left: holder.told(now).remaining,
            binding: holder.ask.binding,
            claimed: holder.state == State::Claims,
        });
        let waiters = self.waiters().map(|waiter| WaiterState {
            short_id: waiter.ask.token.short_id(),
            info: (*waiter.ask.info).clone(),
            share: waiter.ask.share,
            waited_for: now.since(waiter.since),
        });
        Some(LockState {
            lock: (**id).clone(),
            capacity: self.capacity?,
            used: self.used(),
            generation: self.generation,
            holders: holders.collect(),
            waiters: waiters.collect(),
        })
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
        let closed = self.2.load(SeqCst);
        let fault = || Fault::new(FaultKind::Closed, "this client of the toy store was closed");
        if closed { Err(fault()) } else { Ok(()) }
    }

    fn step<R>(&self, id: &Id, work: impl FnOnce(&mut Lock) -> Answer<R>) -> Call<R> {
        Call::ready(self.0.step(id, |lock| self.check().and_then(|()| work(lock))))
    }

    /// A step on a grant; `none`: there is none with that token.
    fn on<R>(
        &self,
        id: &Id,
        token: &Token,
        none: R,
        work: impl FnOnce(&mut Entry, LocalTime) -> Answer<R>,
    ) -> Call<R> {
        self.step(id, |lock| match lock.find(token).map(|at| &mut lock.line[at]) {
            Some(entry) if entry.holds() => work(entry, lock.now),
            _ => Ok(none),
        })
    }
}

fn needs_ttl<R>() -> Answer<R> {
    Err(Fault::new(FaultKind::Unsupported, "a grant that is bound to its token needs a TTL"))
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
        &self.0.0
    }

    fn store_time(&self, local: LocalTime) -> StoreTime {
        StoreTime(local.0)
    }

    fn acquire(&self, ask: &Acquire) -> Call<Acquired> {
        self.step(&ask.lock, |lock| match (ask.binding, ask.ttl) {
            (Binding::Token, None) => needs_ttl(),
            _ => Ok(lock.acquire(ask, self.1)),
        })
    }

    fn confirm(&self, id: &Id, token: &Token) -> Call<Confirmed> {
        self.step(id, |lock| {
            let Some(at) = lock.find(token) else { return Ok(Confirmed::Unknown) };
            Ok(match lock.line[at].state.clone() {
                State::Waits => Confirmed::Waiting,
                State::Claims | State::Holds => Confirmed::Granted(lock.line[at].confirm(lock.now)),
                State::Rejected(why) => {
                    lock.line.remove(at);
                    Confirmed::Rejected(why)
                }
            })
        })
    }

    fn renew(&self, leases: Vec<Renewal>) -> Call<Vec<Renewed>> {
        let renew = |holder: &mut Entry, now| {
            holder.renew(now);
            Ok(Renewed::Held { remaining: holder.told(now).remaining })
        };
        let one = |lease: &Renewal| self.on(&lease.lock, &lease.token, Renewed::Unknown, renew);
        Call::ready(leases.iter().map(|lease| one(lease).into_ready().expect("inline")).collect())
    }

    fn extend(&self, id: &Id, token: &Token, ttl: Option<Ttl>) -> Call<Extended> {
        self.on(id, token, Extended::Gone, |holder, now| {
            if ttl.is_none() && holder.ask.binding == Binding::Token {
                return Ok(Extended::NeedsTtl);
            }
            holder.start(ttl, now);
            Ok(Extended::Held)
        })
    }

    fn rebind(&self, id: &Id, token: &Token, to: Binding, ttl: Option<Ttl>) -> Call<Option<Grant>> {
        self.on(id, token, None, |holder, now| {
            if to == Binding::Token && ttl.or(holder.ask.ttl).is_none() {
                return needs_ttl();
            }
            (holder.ask.binding, holder.client) = (to, self.1);
            if ttl.is_some() {
                holder.start(ttl, now);
            }
            Ok(Some(holder.told(now)))
        })
    }

    fn release(&self, id: &Id, token: &Token) -> Call<Released> {
        self.step(id, |lock| {
            let Some(at) = lock.find(token) else { return Ok(Released::Unknown) };
            let entry = lock.line.remove(at);
            lock.wakes.push(entry.wake);
            Ok(match entry.state {
                State::Waits => Released::Waiter(None),
                State::Claims | State::Holds => Released::Holder,
                State::Rejected(_) => Released::Unknown,
            })
        })
    }

    fn abandon(&self, id: &Id, token: &Token) {
        drop(self.release(id, token));
    }

    fn remaining(&self, id: &Id, token: &Token) -> Call<Remaining> {
        self.on(id, token, Remaining::Gone, |holder, now| {
            Ok(holder.told(now).remaining.map_or(Remaining::Never, Remaining::Left))
        })
    }

    fn watch(&self, on: &Id, of: Option<Generation>, id: &Token, what: WatchFor) -> Call<Watched> {
        self.step(on, |lock| {
            let is_it = |watcher: &Watcher| watcher.id == *id;
            if !lock.watchers.iter().any(is_it) {
                if of.is_some_and(|of| of < lock.generation) {
                    return Ok(Watched::Destroyed);
                }
                let (id, client, wake) = (id.clone(), self.1, Wake::new());
                lock.watchers.push(Watcher { id, client, what, wake, done: false });
                lock.settle();
            }
            lock.watchers.retain(|watcher| !(is_it(watcher) && watcher.done));
            let waits = lock.watchers.iter().find(|watcher| is_it(watcher));
            Ok(waits.map_or(Watched::Done, |watcher| Watched::Waiting(watcher.wake.clone())))
        })
    }

    fn unwatch(&self, on: &Id, id: &Token) {
        drop(self.step(on, |lock| {
            lock.watchers.retain(|watcher| watcher.id != *id);
            Ok(())
        }));
    }

    fn cancel_all(&self, id: &Id, reason: &str) -> Call<u64> {
        let why = Rejection::Cancelled { reason: reason.to_owned() };
        self.step(id, |lock| Ok(lock.reject(&why)))
    }

    fn destroy(&self, id: &Id, of: Option<Generation>, reason: &str) -> Call<Destroyed> {
        let why = Rejection::Destroyed { reason: reason.to_owned() };
        self.step(id, |lock| {
            let ended = of.unwrap_or(lock.generation);
            if ended < lock.generation {
                return Ok(Destroyed::Before);
            }
            lock.reject(&why);
            lock.line.retain(|entry| !entry.holds());
            lock.complete(|_| true);
            lock.generation = Generation(ended.0.saturating_add(1));
            Ok(Destroyed::Now { next: lock.generation })
        })
    }

    fn counts(&self, id: &Id) -> Call<Option<LockCounts>> {
        let counts = |state: LockState| LockCounts {
            capacity: state.capacity,
            used: state.used,
            queued: state.waiters.len() as u64,
            whole: state.holders.iter().any(|holder| holder.share == Share::Whole),
            generation: state.generation,
        };
        self.step(id, |lock| Ok(lock.state(id).map(counts)))
    }

    fn inspect(&self, id: &Id) -> Call<Option<LockState>> {
        self.step(id, |lock| Ok(lock.state(id)))
    }

    fn survey(&self, namespace: Option<&Namespace>) -> Call<Vec<LockState>> {
        let is_asked = |id: &Id| namespace.is_none_or(|namespace| id.namespace() == namespace);
        let states = self.0.each(|id, lock| lock.state(id).filter(|_| is_asked(id)));
        Call::ready(self.check().map(|()| states.into_iter().flatten().collect()))
    }

    fn close(&self) -> Call<()> {
        self.2.store(true, SeqCst);
        self.0.each(|_, lock| {
            let stays = |entry: &Entry| entry.holds() && entry.ask.binding == Binding::Token;
            let ends = |entry: &Entry| entry.client == self.1 && !stays(entry);
            let gone = lock.line.extract_if(.., |entry| ends(entry));
            lock.wakes.extend(gone.map(|entry| entry.wake));
            lock.watchers.retain(|watcher| watcher.client != self.1);
        });
        Call::ready(Ok(()))
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.close());
    }
}
