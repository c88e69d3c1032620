//! A store behind a wire, as a remote one is: it cannot tell a dead client from a silent one, long
//! answers come later, and a client is told to look through a pipe that may be full or cut, with a
//! heartbeat beneath it.
//!
//! Without a flaw it runs through all cases, so that the opposites of capabilities and the cases
//! that break a store run somewhere with a clock that only the kit moves. With a flaw it is one more
//! broken store.

use std::{
    collections::{HashMap, HashSet},
    future::poll_fn,
    mem,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicI64, Ordering},
    },
    task::{Poll, Wake as WakeByStd, Waker},
    thread,
    time::Duration,
};

use leasehold_conformance::{Cannot, Fixture, StoreUnderTest, WallStep};
use leasehold_core::{
    Acquire, Acquired, Backend, Call, Capabilities, ClientId, Clock, Confirmed,
    Fault as StoreFault, FencingToken, Generation, Grant, LockId, LockState, Namespace, Token,
    Wake, WatchFor, Watched, defaults,
};

use crate::{
    Planted,
    mutant::{Fault, Inner, MutantStore, map, now, when_set},
};

pub(crate) const FAULTS: &[Planted] = &[
    flawed("wake_lost_on_a_full_pipe", "l5_a_full_pipe_loses_no_wake", || {
        broken(Flaw::LosesWhenFull)
    }),
    flawed(
        "rejection_lost_on_a_full_pipe",
        "l5_a_full_pipe_hides_neither_rejections_nor_watchers",
        || broken(Flaw::LosesWhenFull),
    ),
    flawed(
        "wake_lost_with_the_connection",
        "l5_a_push_that_is_lost_delays_by_a_heartbeat_at_most",
        || broken(Flaw::LosesWhenCut),
    ),
    flawed(
        "wake_between_answer_and_wait_lost",
        "l5_a_connection_that_is_lost_before_the_wait_strands_nobody",
        || broken(Flaw::LosesWhenCut),
    ),
    flawed(
        "wake_of_an_expiry_lost_with_the_connection",
        "l5_an_expiry_whose_push_is_lost_strands_nobody",
        || broken(Flaw::LosesWhenCut),
    ),
    flawed(
        "rejection_lost_with_the_connection",
        "l5_a_rejection_whose_push_is_lost_is_told",
        || broken(Flaw::LosesWhenCut),
    ),
    flawed("watcher_lost_with_the_connection", "l5_a_watcher_whose_push_is_lost_is_told", || {
        broken(Flaw::LosesWhenCut)
    }),
    flawed("lost_connection_taken_for_a_death", "l5_a_client_without_pushes_is_not_dead", || {
        broken(Flaw::CutIsDeath)
    }),
    flawed("stale_push_taken_for_a_grant", "l5_what_fills_a_pipe_is_no_grant", || {
        broken(Flaw::PushIsAGrant)
    }),
    flawed(
        "fence_steps_back_with_the_clock",
        "l8_fencing_grows_when_the_wall_clock_is_stepped",
        || broken(Flaw::FenceIsTheWallClock),
    ),
    flawed("expiry_by_the_wall_clock", "t3_a_stepped_wall_clock_moves_no_expiry", || {
        broken(Flaw::ExpiryByTheWallClock)
    }),
    flawed("answer_to_whoever_asked_first", "l3_a_late_answer_reaches_whoever_asked_last", || {
        broken(Flaw::AnswersTheFirst)
    }),
];

const fn flawed(
    name: &'static str,
    found_by: &'static str,
    store: fn() -> Box<dyn StoreUnderTest>,
) -> Planted {
    Planted { name, found_by, healthy, store }
}

fn healthy() -> Box<dyn StoreUnderTest> {
    Box::new(MutantStore::new(Remote::default()))
}

fn broken(flaw: Flaw) -> Box<dyn StoreUnderTest> {
    Box::new(MutantStore::new(Remote { flaw: Some(flaw), ..Remote::default() }))
}

/// The healthy store as one to run all cases on.
pub(crate) struct BehindAWire;

impl Fixture for BehindAWire {
    fn name(&self) -> &'static str {
        "memory behind a wire"
    }

    fn fresh(&self) -> Box<dyn StoreUnderTest> {
        healthy()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    /// A push that finds no room is forgotten.
    LosesWhenFull,
    /// A push that finds no connection is forgotten.
    LosesWhenCut,
    /// Who cannot be told to look is taken for dead.
    CutIsDeath,
    /// Whoever is told to look has been granted.
    PushIsAGrant,
    /// A fencing token is what the wall clock shows.
    FenceIsTheWallClock,
    /// A TTL ends at a time of the wall clock.
    ExpiryByTheWallClock,
    /// A late answer wakes only whoever asked first.
    AnswersTheFirst,
}

#[derive(Debug, Default)]
struct Remote {
    flaw: Option<Flaw>,
    pipes: Arc<Mutex<Pipes>>,
    clients: Mutex<HashMap<ClientId, Weak<dyn Backend>>>,
    /// Grants and waiters with a TTL, for the flaw that ends them by the wall clock.
    with_ttl: Mutex<Vec<(ClientId, Arc<LockId>, Token)>>,
    /// How far the wall clock was stepped, in microseconds. Without a flaw nothing looks at it:
    /// the memory store reads that clock once, when it is made.
    wall_us: AtomicI64,
}

/// How each client is told to look.
#[derive(Debug, Default)]
struct Pipes {
    full: HashSet<ClientId>,
    cut: HashSet<ClientId>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does something once, when a clock says so.
struct AtTime<F>(F);

impl<F: Fn() + Send + Sync + 'static> WakeByStd for AtTime<F> {
    fn wake(self: Arc<Self>) {
        (self.0)();
    }
}

fn at_the_next_heartbeat(clock: &Arc<dyn Clock>, then: impl Fn() + Send + Sync + 'static) {
    let at = clock.now().after(defaults::SQLITE_HEARTBEAT);
    clock.set_timer(at, Waker::from(Arc::new(AtTime(then))));
}

impl Remote {
    fn is(&self, flaw: Flaw) -> bool {
        self.flaw == Some(flaw)
    }

    fn remember(&self, inner: &Inner) {
        locked(&self.clients).insert(inner.client(), Arc::downgrade(inner));
    }

    fn client(&self, id: ClientId) -> Option<Inner> {
        locked(&self.clients).get(&id).and_then(Weak::upgrade)
    }

    /// The client's end of a push: what the store sets is passed on through the client's pipe.
    fn piped(&self, inner: &Inner, pushed: &Wake) -> Wake {
        let told = Wake::new();
        let (flag, pipes, flaw) = (told.clone(), Arc::clone(&self.pipes), self.flaw);
        let (client, clock) = (inner.client(), Arc::clone(inner.clock()));
        when_set(pushed, move || {
            let (full, cut) = {
                let pipes = locked(&pipes);
                (pipes.full.contains(&client), pipes.cut.contains(&client))
            };
            let forgets = full && flaw == Some(Flaw::LosesWhenFull)
                || cut && flaw == Some(Flaw::LosesWhenCut);
            if !full && !cut {
                flag.notify();
            } else if !forgets {
                let flag = flag.clone();
                at_the_next_heartbeat(&clock, move || flag.notify());
            }
        });
        told
    }

    fn fenced(&self, inner: &Inner, grant: Grant) -> Grant {
        if !self.is(Flaw::FenceIsTheWallClock) {
            return grant;
        }
        let wall = inner.store_time(inner.clock().now()).0;
        let wall = wall.saturating_add_signed(self.wall_us.load(Ordering::SeqCst));
        Grant { fencing: FencingToken(wall), ..grant }
    }
}

impl Fault for Remote {
    fn capabilities(&self, inner: &Inner) -> Capabilities {
        Capabilities { proves_death: false, inline: false, ..inner.capabilities() }
    }

    fn acquire(&self, inner: &Inner, request: &Acquire) -> Call<Acquired> {
        self.remember(inner);
        if request.ttl.is_some() {
            let grant = (inner.client(), Arc::clone(&request.lock), request.token.clone());
            locked(&self.with_ttl).push(grant);
        }
        map(inner.acquire(request), |answer| match answer {
            Acquired::Queued(mut place) => {
                place.wake = self.piped(inner, &place.wake);
                Acquired::Queued(place)
            }
            Acquired::Granted(grant) => Acquired::Granted(self.fenced(inner, grant)),
            other => other,
        })
    }

    fn confirm(&self, inner: &Inner, lock: &Arc<LockId>, token: &Token) -> Call<Confirmed> {
        let told = locked(&self.pipes).full.contains(&inner.client());
        map(inner.confirm(lock, token), |answer| match answer {
            Confirmed::Granted(grant) => Confirmed::Granted(self.fenced(inner, grant)),
            Confirmed::Waiting if told && self.is(Flaw::PushIsAGrant) => {
                let counts = now(inner.counts(lock)).expect("somebody waits");
                Confirmed::Granted(Grant {
                    fencing: FencingToken(u64::MAX),
                    remaining: None,
                    ttl: None,
                    at: None,
                    generation: counts.generation,
                    capacity: counts.capacity,
                })
            }
            other => other,
        })
    }

    fn watch(
        &self,
        inner: &Inner,
        lock: &Arc<LockId>,
        generation: Option<Generation>,
        id: &Token,
        what: WatchFor,
    ) -> Call<Watched> {
        map(inner.watch(lock, generation, id, what), |answer| match answer {
            Watched::Waiting(pushed) => Watched::Waiting(self.piped(inner, &pushed)),
            other => other,
        })
    }

    fn survey(&self, inner: &Inner, namespace: Option<&Namespace>) -> Call<Vec<LockState>> {
        let answer = inner.survey(namespace).into_ready();
        let answer = answer.unwrap_or_else(|_| panic!("the memory store answers inline"));
        arrives_later(answer, self.is(Flaw::AnswersTheFirst))
    }

    fn dies(&self, client: Arc<dyn Backend>) {
        // Silent for ever, and alive as far as the store can see.
        mem::forget(client);
    }

    fn disconnect(&self, client: &dyn Backend) -> Result<(), Cannot> {
        locked(&self.pipes).cut.insert(client.client());
        if self.is(Flaw::CutIsDeath) {
            let client = self.client(client.client()).expect("it has asked for something");
            now(client.close());
        }
        Ok(())
    }

    fn fill_wake(&self, client: &dyn Backend) -> Result<(), Cannot> {
        let id = client.client();
        if locked(&self.pipes).full.insert(id) {
            // The client empties it when it looks the next time.
            let pipes = Arc::clone(&self.pipes);
            at_the_next_heartbeat(client.clock(), move || {
                locked(&pipes).full.remove(&id);
            });
        }
        Ok(())
    }

    fn step_wall_clock(&self, step: WallStep) -> Result<(), Cannot> {
        let us = |by: Duration| i64::try_from(by.as_micros()).expect("a step is short");
        let by = match step {
            WallStep::Forward(by) => us(by),
            WallStep::Back(by) => -us(by),
        };
        self.wall_us.fetch_add(by, Ordering::SeqCst);
        if by > 0 && self.is(Flaw::ExpiryByTheWallClock) {
            for (client, lock, token) in locked(&self.with_ttl).drain(..) {
                if let Some(client) = self.client(client) {
                    let _ = now(client.release(&lock, &token));
                }
            }
        }
        Ok(())
    }
}

/// What is known of an answer that is on its way: whether it is there, and who waits for it.
#[derive(Debug, Default)]
struct OnItsWay {
    asked: bool,
    arrived: bool,
    waker: Option<Waker>,
}

/// An answer that another thread brings, some time after it was first asked for.
fn arrives_later<T: Send + 'static>(
    answer: Result<T, StoreFault>,
    keeps_the_first: bool,
) -> Call<T> {
    let way = Arc::new(Mutex::new(OnItsWay::default()));
    let mut answer = Some(answer);
    Call::pending(poll_fn(move |cx| {
        let mut state = locked(&way);
        if state.arrived {
            return Poll::Ready(answer.take().expect("polled after completion"));
        }
        if !state.asked || !keeps_the_first {
            state.waker = Some(cx.waker().clone());
        }
        if !mem::replace(&mut state.asked, true) {
            let way = Arc::clone(&way);
            thread::spawn(move || {
                // sleep: the answer takes a while, so that another thread can take the call over.
                thread::sleep(Duration::from_millis(5));
                let waker = {
                    let mut state = locked(&way);
                    state.arrived = true;
                    state.waker.take()
                };
                waker.into_iter().for_each(Waker::wake);
            });
        }
        Poll::Pending
    }))
}
