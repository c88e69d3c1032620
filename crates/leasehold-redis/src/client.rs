//! One client of a store: what its backend and its thread share.

use std::{
    fmt,
    future::Future,
    pin::pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::Duration,
};

use leasehold_core::{
    Acquire, Acquired, Binding, Call, ClientId, Confirmed, Fault, FaultKind, LocalTime, LockId,
    Place, Refusal, Released, Sleep, Wake, WatchFor, Watched, defaults,
};
use tokio::{sync::Notify, task::coop::unconstrained};

use crate::{
    book::{Book, Name},
    checks::Facts,
    desk::{Desk, Order},
    dial::Dial,
    fleet::{Fleet, Node},
    lane::{Lane, ended},
    script::{
        self, AcquireReply, ConfirmReply, Copies, Keyspace, LockKeys, Request, Sender, Waiting,
    },
    site::Site,
    slots::slot_of,
    time::before,
    trip::{Once, Trip},
};

/// How often an acquisition without a limit of its own is sent again because the server's clock
/// was not where it was thought to be.
const CLOCK_TRIES: u32 = 3;
/// How long a wait outlives a server that does not answer, at most.
const CONFIRM_PATIENCE: Duration = Duration::from_secs(10);
/// A look is this much later than the expiry that it looks for, for the server counts from its own
/// now.
pub(crate) const AFTER_EXPIRY: Duration = Duration::from_millis(1);
/// How often who is not pushed looks: it has to see its grant before the claim is over (rule L10).
pub(crate) const POLL: Duration = Duration::from_secs(1);

/// What a client's backend and its thread share.
pub(crate) struct Client {
    pub(crate) id: ClientId,
    pub(crate) dial: Arc<Dial>,
    /// The server whose clock is this client's time of the store.
    pub(crate) site: Arc<Site>,
    pub(crate) fleet: Fleet,
    /// The way over which pushes come. In a cluster it leads to any of the servers: what a script
    /// publishes on one reaches all.
    pub(crate) ear: Arc<Lane>,
    pub(crate) space: Keyspace,
    pub(crate) book: Arc<Book>,
    pub(crate) desk: Arc<Desk>,
    /// Why the server refused to push, when it did.
    pub(crate) no_pushes: Arc<Mutex<Option<Fault>>>,
    pub(crate) facts: Mutex<Facts>,
    pub(crate) ended: AtomicBool,
    /// Wakes those that pause when the client ends.
    pub(crate) ending: Notify,
}

impl Client {
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(SeqCst)
    }

    pub(crate) fn now(&self) -> LocalTime {
        self.dial.clock.now()
    }

    /// The server that has a slot; outside of a cluster there are none.
    pub(crate) fn node_of(&self, slot: Option<u16>) -> Arc<Node> {
        match &self.fleet {
            Fleet::One(node) => Arc::clone(node),
            Fleet::Cluster(cluster) => {
                cluster.owner(slot.unwrap_or(0)).expect("its servers are known since the connect")
            }
        }
    }

    /// Which server has a lock: one number for those that have the same.
    pub(crate) fn part(&self, lock: &LockId) -> u64 {
        match &self.fleet {
            Fleet::One(_) => 0,
            Fleet::Cluster(_) => self.part_of(&self.space.lock(lock)),
        }
    }

    /// The same by the lock's keys.
    pub(crate) fn part_of(&self, keys: &LockKeys) -> u64 {
        match &self.fleet {
            Fleet::One(_) => 0,
            Fleet::Cluster(_) => self.node_of(Some(slot_of(keys.state().as_bytes()))).id,
        }
    }

    /// The keys of a lock.
    pub(crate) fn keys(&self, lock: &LockId) -> Arc<LockKeys> {
        Arc::new(self.space.lock(lock))
    }

    /// When a command that is sent now must have been answered.
    pub(crate) fn command_deadline(&self) -> LocalTime {
        self.now().after(self.dial.config.command_timeout)
    }

    /// A call that runs when it is polled, and is refused when the client has ended by then.
    ///
    /// It takes nothing from the share of its turn that Tokio gives a task: a task that blocks in one
    /// call after the other gets no other share, and would wait for ever. Each answer has to come
    /// from the server, so no task keeps others from their turn by many calls.
    pub(crate) fn call<T, F>(
        self: &Arc<Self>,
        work: impl FnOnce(Arc<Self>) -> F + Send + 'static,
    ) -> Call<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Fault>> + Send + 'static,
    {
        if self.has_ended() {
            return Call::ready(Err(ended()));
        }
        Call::pending(unconstrained(work(Arc::clone(self))))
    }

    /// Sends a request from where this is polled, and waits for its answer.
    pub(crate) async fn send<R>(&self, keys: &LockKeys, request: Request<R>) -> Result<R, Fault> {
        Trip::from_here(self, keys, self.command_deadline()).send(&request).await
    }

    /// See [`Backend::acquire`](leasehold_core::Backend::acquire).
    pub(crate) async fn acquire(self: Arc<Self>, mut request: Acquire) -> Result<Acquired, Fault> {
        let name = Name::new(&request.lock, &request.token);
        let keys = self.keys(&request.lock);
        let wake = self.book.next_id();
        // The caller's limit by the local clock: the server's may turn out to be elsewhere.
        let limit = request.not_after.map(|at| self.site.offset.local_time(at));
        let deadline = limit.unwrap_or_else(|| self.command_deadline());
        let deadline = deadline.max(self.command_deadline());
        let mut trip = Trip::from_here(&self, &keys, deadline).replicated().guarded();
        let mut clock_tries = 0;
        let outcome = loop {
            // Each server has its own clock: what goes out is in the time of the one that it goes to.
            // In between there is the local time, which all of this client agree on.
            trip.aim();
            if !trip.site().offset.is_known() {
                // The first words with a server tell its time. That it cannot be reached is told by
                // the request.
                let _ = trip.link().await;
            }
            let site = Arc::clone(trip.site());
            let known = site.offset.is_known();
            let until = site.offset.store_time(self.copies_end());
            request.not_after = limit.filter(|_| known).map(|limit| site.offset.store_time(limit));
            let until = known.then(|| request.not_after.map_or(until, |limit| until.min(limit)));
            let to_client = request.binding == Binding::Client;
            if !self.book.ask(&name, &keys, request.attempt, until, to_client, limit) {
                return Err(ended());
            }
            let stamp = known.then(|| site.offset.stamp(self.now()));
            let claim = site.offset.claim();
            let sender = Sender { client: self.id, wake, not_after: until, stamp, claim };
            match trip.once(&script::acquire(&keys, &request, sender)).await {
                // A copy that was late, or a clock that was stepped.
                Once::Answer(Ok(AcquireReply::Refused(Refusal::Stale)))
                    if self.book.is_wanted(&name)
                        && limit.map_or(clock_tries < CLOCK_TRIES, |limit| self.now() < limit) =>
                {
                    // In a crowd it may have waited for its turn to be sent: with a new limit it
                    // is the same request (rule L7).
                    clock_tries += 1;
                    self.learn_the_time(&mut trip).await;
                }
                // It was slower than another's whole turn, or the two clocks differ.
                Once::Answer(Ok(AcquireReply::Overtaken(by)))
                    if self.book.is_wanted(&name) && self.now() < trip.deadline =>
                {
                    site.offset.overtaken(by, self.now());
                }
                Once::Answer(answer) => break answer,
                Once::Again(fault) => {
                    let paused = match trip.held_until.take() {
                        Some(end) if request.wait && limit.is_none_or(|limit| end < limit) => {
                            self.sit_out(end).await.map(|()| trip.begin_anew())
                        }
                        Some(_) => Err(fault),
                        None => trip.pause(fault).await,
                    };
                    if let Err(fault) = paused {
                        break Err(fault);
                    }
                }
            }
        };
        match outcome {
            Ok(reply) => {
                let answer = self.acquired(&request, &name, wake, reply);
                if matches!(answer, Acquired::Granted(_)) {
                    let replicated = trip.is_replicated(&name.lock);
                    self.or_released(&name, replicated).await?;
                }
                Ok(answer)
            }
            Err(fault) => {
                // A fault means no effect: what nobody knows of is undone until it is certain.
                if trip.in_doubt {
                    if let Some(taken) = self.book.take_attempt(&name, request.attempt) {
                        self.give_back(name, taken.keys, taken.copies);
                    }
                } else {
                    self.book.refused(&name, request.attempt);
                }
                Err(fault)
            }
        }
    }

    fn acquired(
        &self,
        request: &Acquire,
        name: &Name,
        id: script::WakeId,
        reply: AcquireReply,
    ) -> Acquired {
        match reply {
            AcquireReply::Granted(grant) => {
                let to_client = request.binding == Binding::Client;
                self.book.granted(name, request.attempt, to_client);
                Acquired::Granted(grant)
            }
            AcquireReply::Queued { obstacle, generation, capacity, waiting } => {
                let look = self.look_at(waiting);
                let wake = self.book.queued(name, id, look);
                self.desk.waits(look);
                Acquired::Queued(Place { wake, obstacle, generation, capacity })
            }
            AcquireReply::Busy(obstacle) => {
                self.book.refused(name, request.attempt);
                Acquired::Busy(obstacle)
            }
            AcquireReply::Refused(refusal) => {
                self.book.refused(name, request.attempt);
                Acquired::Refused(refusal)
            }
            AcquireReply::Ended | AcquireReply::Overtaken(_) => {
                self.book.refused(name, request.attempt);
                Acquired::Refused(Refusal::Stale)
            }
        }
    }

    /// When a copy of a request that is sent now has no effect any more: later than any answer to
    /// it that somebody still waits for.
    fn copies_end(&self) -> LocalTime {
        self.now().after(self.dial.config.command_timeout * 2)
    }

    /// When who waits is to look by itself.
    pub(crate) fn look_at(&self, waiting: Waiting) -> Option<LocalTime> {
        let next = waiting.next_expiry.map(|next| next + AFTER_EXPIRY);
        let pause = if waiting.pushed && !self.is_not_pushed() {
            next.filter(|_| waiting.times)?
        } else {
            next.map_or(POLL, |next| next.min(POLL))
        };
        Some(self.now().after(pause))
    }

    pub(crate) fn is_not_pushed(&self) -> bool {
        self.no_pushes.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Waits until a server that holds back its grants may give them.
    async fn sit_out(&self, end: LocalTime) -> Result<(), Fault> {
        let mut ending = pin!(self.ending.notified());
        // Registered first, so that an end in between is not missed.
        ending.as_mut().enable();
        if !self.has_ended() {
            before(Sleep::until(Arc::clone(&self.dial.clock), end), ending).await;
        }
        if self.has_ended() { Err(ended()) } else { Ok(()) }
    }

    /// Asks the server for its time; what is not answered is not learned.
    async fn learn_the_time(&self, trip: &mut Trip<'_>) {
        let Ok(link) = trip.link().await else { return };
        let sent = self.now();
        if let Ok(answer) = link.ask(&redis::cmd("TIME")).await {
            trip.site().offset.learn(sent, self.now(), &answer);
        }
    }

    /// See [`Backend::confirm`](leasehold_core::Backend::confirm).
    pub(crate) async fn confirm(self: Arc<Self>, name: Name) -> Result<Confirmed, Fault> {
        let keys = self.keys(&name.lock);
        // A server that is away for longer than a command may take is no reason to give up a wait
        // that may last longer.
        let patience = self.now().after(CONFIRM_PATIENCE);
        let deadline = self.command_deadline().max(self.book.limit_of(&name).min(patience));
        let request = script::confirm(&keys, &name.token);
        let mut trip = Trip::from_here(&self, &keys, deadline).replicated();
        match trip.send(&request).await? {
            ConfirmReply::Waiting(waiting) => {
                let look = self.look_at(waiting);
                self.book.waits_on(&name, look);
                self.desk.waits(look);
                Ok(Confirmed::Waiting)
            }
            ConfirmReply::Told(told) => {
                match &told {
                    Confirmed::Granted(_) => {
                        self.book.confirmed(&name);
                        let replicated = trip.is_replicated(&name.lock);
                        self.or_released(&name, replicated).await?;
                    }
                    _ => drop(self.book.take(&name)),
                }
                Ok(told)
            }
        }
    }

    /// Releases a grant that too few replicas have: nobody is to rely on it.
    async fn or_released(
        self: &Arc<Self>,
        name: &Name,
        replicated: Result<(), Fault>,
    ) -> Result<(), Fault> {
        if let Err(fault) = &replicated {
            tracing::warn!(%fault, lock = %name.lock, "a grant is given back");
            // One that cannot be released now is given back by the client's thread.
            let _ = Arc::clone(self).release(name.clone()).await;
        }
        replicated
    }

    /// See [`Backend::release`](leasehold_core::Backend::release).
    pub(crate) async fn release(self: Arc<Self>, name: Name) -> Result<Released, Fault> {
        let taken = self.book.take(&name);
        let (keys, copies) = match &taken {
            Some(taken) => (Arc::clone(&taken.keys), taken.copies),
            None => (self.keys(&name.lock), None),
        };
        let request = script::release(&keys, &name.token, self.id, copies);
        let mut trip = Trip::from_here(&self, &keys, self.command_deadline());
        let answer = trip.send(&request).await;
        match answer {
            // The copy whose answer was lost has released it: whoever calls this has a lease that
            // was alive by its own deadline.
            Ok(Released::Unknown) if trip.in_doubt && taken.is_some_and(|taken| taken.held) => {
                Ok(Released::Holder)
            }
            Ok(released) => Ok(released),
            Err(fault) => {
                // It was to be given back, so it will be, unless that was refused for good.
                if fault.is_retryable() {
                    self.give_back(name, keys, copies);
                }
                Err(fault)
            }
        }
    }

    /// See [`Backend::abandon`](leasehold_core::Backend::abandon).
    pub(crate) fn abandon(&self, name: &Name) {
        let (keys, copies) = match self.book.take(name) {
            Some(taken) => (taken.keys, taken.copies),
            None => (self.keys(&name.lock), None),
        };
        self.give_back(name.clone(), keys, copies);
    }

    /// See [`Backend::watch`](leasehold_core::Backend::watch).
    pub(crate) async fn watch(
        self: Arc<Self>,
        name: Name,
        generation: Option<leasehold_core::Generation>,
        what: WatchFor,
    ) -> Result<Watched, Fault> {
        let keys = self.keys(&name.lock);
        let (id, wake) = self.book.watch(&name, &keys);
        let sender = Sender {
            client: self.id,
            wake: id,
            not_after: None,
            stamp: None,
            claim: defaults::CLAIM,
        };
        let request = script::watch(&keys, generation, &name.token, what, sender);
        match self.send(&keys, request).await {
            Ok(script::WatchReply::Waiting(waiting)) => {
                let look = self.look_at(waiting);
                self.book.watches_on(&name, look);
                self.desk.waits(look);
                Ok(Watched::Waiting(wake))
            }
            Ok(reply) => {
                self.book.unwatch(&name);
                Ok(match reply {
                    script::WatchReply::Destroyed => Watched::Destroyed,
                    _ => Watched::Done,
                })
            }
            Err(fault) => {
                self.unwatch(&name);
                Err(fault)
            }
        }
    }

    /// See [`Backend::unwatch`](leasehold_core::Backend::unwatch).
    pub(crate) fn unwatch(&self, name: &Name) {
        // A watcher that was told is not known to the server any more.
        if self.book.unwatch(name) {
            let keys = self.keys(&name.lock);
            self.order(&Arc::clone(&keys), Order::Unwatch { name: name.clone(), keys });
        }
    }

    /// Has the client's thread give something back.
    pub(crate) fn give_back(&self, name: Name, keys: Arc<LockKeys>, copies: Option<Copies>) {
        self.order(&Arc::clone(&keys), Order::GiveBack { name, keys, copies });
    }

    pub(crate) fn order(&self, keys: &LockKeys, order: Order) {
        self.desk.order(self.part_of(keys), order);
    }

    /// Refuses every call from now on, and wakes who waits to be told so.
    pub(crate) fn give_up(&self, wakes: Vec<Wake>) {
        self.ended.store(true, SeqCst);
        self.ending.notify_waiters();
        wakes.iter().for_each(Wake::notify);
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("id", &self.id).finish_non_exhaustive()
    }
}

/// A grant that is bound to its token needs an end (rule T8).
pub(crate) fn needs_ttl() -> Fault {
    Fault::new(FaultKind::Unsupported, "a grant that is bound to its token needs a TTL")
}
