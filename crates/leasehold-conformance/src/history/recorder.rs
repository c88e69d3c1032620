//! A client of a store that writes down what is asked and what is answered.
//!
//! It sits at the one seam, so whatever is above it is recorded: the locks of the crate
//! `leasehold`, and a client that misbehaves.

use std::{
    fmt, mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use leasehold_core::{
    Acquire, Acquired, Backend, Binding, Call, Capabilities, ClientId, Clock, Confirmed, Destroyed,
    Extended, Fault, Generation, Grant, LocalTime, LockCounts, LockId, LockState, Namespace,
    Released, Remaining, Renewal, Renewed, StoreTime, Token, Ttl, WatchFor, Watched,
};

use super::{
    event::{Found, Id, What},
    log::Log,
};

/// A backend that logs. Clones are one client.
#[derive(Clone)]
pub struct Recorder(Arc<Inner>);

struct Inner {
    backend: Arc<dyn Backend>,
    log: Arc<Log>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    last_asked: Option<Id>,
    hand_offs: usize,
}

impl Recorder {
    /// Records what goes through this client.
    #[must_use]
    pub fn new(backend: Arc<dyn Backend>, log: Arc<Log>) -> Self {
        Self(Arc::new(Inner { backend, log, state: Mutex::default() }))
    }

    /// The log.
    #[must_use]
    pub fn log(&self) -> &Arc<Log> {
        &self.0.log
    }

    /// The acquisition with this token.
    #[must_use]
    pub fn id(&self, token: &Token) -> Id {
        Id::new(self.0.log.process(), token)
    }

    /// The acquisition that was asked for last: for a caller whose acquisition gave no lease.
    #[must_use]
    pub fn last_asked(&self) -> Option<Id> {
        self.0.state().last_asked.clone()
    }

    /// How many grants came out of a queue since this was asked last.
    #[must_use]
    pub fn take_hand_offs(&self) -> usize {
        mem::take(&mut self.0.state().hand_offs)
    }

    /// Logs what the answer says, when it comes.
    fn hear<T, N>(&self, call: Call<T>, note: N) -> Call<T>
    where
        T: Send + 'static,
        N: FnOnce(&T) -> Vec<What> + Send + 'static,
    {
        let inner = Arc::clone(&self.0);
        let hear = move |answer: Result<T, Fault>| {
            let heard = match &answer {
                Ok(answer) => note(answer),
                Err(fault) => vec![What::Failed { fault: fault.to_string() }],
            };
            for what in heard {
                if matches!(what, What::Granted { waited: true, .. }) {
                    inner.state().hand_offs += 1;
                }
                inner.log.note(what);
            }
            answer
        };
        match call.into_ready() {
            Ok(answer) => Call::ready(hear(answer)),
            Err(call) => Call::pending(async move { hear(call.await) }),
        }
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn us(left: Option<Duration>) -> Option<u64> {
    left.map(|left| u64::try_from(left.as_micros()).unwrap_or(u64::MAX))
}

fn granted(id: Id, sent_us: u64, grant: &Grant, waited: bool) -> What {
    let (fencing, left_us) = (grant.fencing.get(), us(grant.remaining));
    What::Granted { id, sent_us, fencing, left_us, waited }
}

impl Backend for Recorder {
    fn store(&self) -> &'static str {
        self.0.backend.store()
    }

    fn capabilities(&self) -> Capabilities {
        self.0.backend.capabilities()
    }

    fn client(&self) -> ClientId {
        self.0.backend.client()
    }

    fn clock(&self) -> &Arc<dyn Clock> {
        self.0.backend.clock()
    }

    fn store_time(&self, local: LocalTime) -> StoreTime {
        self.0.backend.store_time(local)
    }

    fn part(&self, lock: &LockId) -> u64 {
        self.0.backend.part(lock)
    }

    fn acquire(&self, request: &Acquire) -> Call<Acquired> {
        let id = self.id(&request.token);
        let capacity = request.capacity.initial();
        let sent_us = self.0.log.now();
        let asked = What::Asked {
            id: id.clone(),
            lock: request.lock.name().as_str().to_owned(),
            kind: request.lock.kind(),
            capacity: capacity.get(),
            weight: request.share.weight(capacity),
            ttl_us: us(request.ttl.map(Ttl::get)),
        };
        self.0.log.note_at(sent_us, self.0.log.process(), asked);
        self.0.state().last_asked = Some(id.clone());
        self.hear(self.0.backend.acquire(request), move |answer| {
            vec![match answer {
                Acquired::Granted(grant) => granted(id, sent_us, grant, false),
                Acquired::Queued(place) => What::Queued { id, ahead: place.obstacle.ahead },
                Acquired::Busy(_) | Acquired::Refused(_) => What::Refused { id },
            }]
        })
    }

    fn confirm(&self, lock: &Arc<LockId>, token: &Token) -> Call<Confirmed> {
        let (id, sent_us) = (self.id(token), self.0.log.now());
        self.hear(self.0.backend.confirm(lock, token), move |answer| match answer {
            Confirmed::Granted(grant) => vec![granted(id, sent_us, grant, true)],
            Confirmed::Waiting => Vec::new(),
            Confirmed::Rejected(_) => vec![What::Rejected { id }],
            Confirmed::Unknown => vec![What::Missed { id }],
        })
    }

    fn renew(&self, leases: Vec<Renewal>) -> Call<Vec<Renewed>> {
        let ids: Vec<Id> = leases.iter().map(|lease| self.id(&lease.token)).collect();
        let sent_us = self.0.log.now();
        self.hear(self.0.backend.renew(leases), move |answers| {
            let heard = ids.into_iter().zip(answers).map(|(id, answer)| match answer {
                Renewed::Held { remaining } => {
                    What::Renewed { id, sent_us, left_us: us(*remaining) }
                }
                Renewed::Unknown => What::Lapsed { id },
            });
            heard.collect()
        })
    }

    fn extend(&self, lock: &Arc<LockId>, token: &Token, ttl: Option<Ttl>) -> Call<Extended> {
        self.0.backend.extend(lock, token, ttl)
    }

    fn rebind(
        &self,
        lock: &Arc<LockId>,
        token: &Token,
        binding: Binding,
        ttl: Option<Ttl>,
    ) -> Call<Option<Grant>> {
        self.0.backend.rebind(lock, token, binding, ttl)
    }

    fn release(&self, lock: &Arc<LockId>, token: &Token) -> Call<Released> {
        let id = self.id(token);
        self.0.log.note(What::Releasing { id: id.clone() });
        self.hear(self.0.backend.release(lock, token), move |answer| {
            let found = match answer {
                Released::Holder => Found::Holder,
                Released::Waiter(_) => Found::Waiter,
                Released::Unknown => Found::Nothing,
            };
            vec![What::Released { id, found }]
        })
    }

    fn abandon(&self, lock: &Arc<LockId>, token: &Token) {
        self.0.log.note(What::Abandoned { id: self.id(token) });
        self.0.backend.abandon(lock, token);
    }

    fn remaining(&self, lock: &Arc<LockId>, token: &Token) -> Call<Remaining> {
        self.0.backend.remaining(lock, token)
    }

    fn watch(
        &self,
        lock: &Arc<LockId>,
        generation: Option<Generation>,
        id: &Token,
        what: WatchFor,
    ) -> Call<Watched> {
        self.0.backend.watch(lock, generation, id, what)
    }

    fn unwatch(&self, lock: &Arc<LockId>, id: &Token) {
        self.0.backend.unwatch(lock, id);
    }

    fn cancel_all(&self, lock: &Arc<LockId>, reason: &str) -> Call<u64> {
        self.0.backend.cancel_all(lock, reason)
    }

    fn destroy(
        &self,
        lock: &Arc<LockId>,
        generation: Option<Generation>,
        reason: &str,
    ) -> Call<Destroyed> {
        self.0.backend.destroy(lock, generation, reason)
    }

    fn counts(&self, lock: &Arc<LockId>) -> Call<Option<LockCounts>> {
        self.0.backend.counts(lock)
    }

    fn inspect(&self, lock: &Arc<LockId>) -> Call<Option<LockState>> {
        let (name, sent_us) = (lock.name().as_str().to_owned(), self.0.log.now());
        self.hear(self.0.backend.inspect(lock), move |state| {
            let waiters = state.iter().flat_map(|state| &state.waiters);
            let waiters = waiters.filter_map(Id::of_waiter).collect();
            vec![What::Seen { lock: name, sent_us, waiters }]
        })
    }

    fn survey(&self, namespace: Option<&Namespace>) -> Call<Vec<LockState>> {
        self.0.backend.survey(namespace)
    }

    fn close(&self) -> Call<()> {
        self.0.backend.close()
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Recorder").field(&self.0.backend).finish()
    }
}
