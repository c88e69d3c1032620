//! Faults of the queue (rules Q, L5).

use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use leasehold_core::{
    Acquire, Acquired, Backend, Call, Capacity, CapacityClaim, FencingToken, Generation, Grant,
    LockId, Refusal, Released, Token, Wake,
};

use crate::{
    Planted,
    mutant::{Fault, Inner, map, now, when_set},
};

pub(crate) const FAULTS: &[Planted] = &[
    Planted::new::<ForgetsFifo>("forgets_fifo", "q2_waiters_of_several_clients_enter_in_order"),
    Planted::new::<TryBarges>("try_barges", "q3_a_try_never_barges"),
    Planted::new::<LosesWakes>("wake_lost", "q3_a_release_hands_over_directly"),
    Planted::new::<LosesWakesOfExpiry>(
        "wake_of_an_expiry_lost",
        "t3_the_next_waiter_gets_it_without_a_call_by_anybody",
    ),
    Planted::new::<LeaverWakesNobody>(
        "followers_of_a_leaver_forgotten",
        "q2_a_head_that_leaves_lets_its_followers_in",
    ),
    Planted::new::<CancelLosesAPermit>(
        "cancel_loses_a_permit",
        "q4_a_grant_that_races_with_the_leave_is_passed_on",
    ),
    Planted::new::<NoQueueLimit>("no_queue_limit", "q5_a_full_queue_refuses"),
    Planted::new::<HeavyIsCutDown>(
        "weight_cut_down_to_the_capacity",
        "q5_a_weight_above_the_capacity_is_refused_on_every_path",
    ),
    Planted::new::<AbandonIsForgotten>("abandon_forgotten", "w7_an_abandoned_grant_is_passed_on"),
    Planted::new::<AbandonIsForgotten>(
        "abandon_of_a_waiter_forgotten",
        "w7_an_abandoned_waiter_is_never_granted",
    ),
];

/// Every waiter overtakes the one that came before it.
#[derive(Debug, Default)]
struct ForgetsFifo(Mutex<Option<Waiter>>);

/// Whose it is, what was asked, and what its case waits for.
type Waiter = (Weak<dyn Backend>, Acquire, Wake);

impl Fault for ForgetsFifo {
    fn acquire(&self, inner: &Inner, request: &Acquire) -> Call<Acquired> {
        map(inner.acquire(request), |answer| {
            if let Acquired::Queued(place) = &answer {
                let newest = (Arc::downgrade(inner), request.clone(), place.wake.clone());
                let before = self.0.lock().expect("no panic").replace(newest);
                if let Some((client, request, wake)) = before {
                    overtake(&client, &request, wake);
                }
            }
            answer
        })
    }
}

/// Takes a waiter out of the queue and puts it in again at the tail.
fn overtake(client: &Weak<dyn Backend>, request: &Acquire, wake: Wake) {
    let Some(client) = client.upgrade() else { return };
    if let Released::Waiter(_) = now(client.release(&request.lock, &request.token))
        && let Acquired::Queued(place) = now(client.acquire(request))
    {
        when_set(&place.wake, move || wake.notify());
    }
}

/// A try takes what is free, whoever is queued for it.
#[derive(Debug, Default)]
struct TryBarges;

impl Fault for TryBarges {
    fn acquire(&self, inner: &Inner, request: &Acquire) -> Call<Acquired> {
        let state = now(inner.inspect(&request.lock));
        let free = state.as_ref().map_or(0, leasehold_core::LockState::free);
        map(inner.acquire(request), |answer| match answer {
            Acquired::Busy(_) if request.share.weight(Capacity::ONE) <= free => {
                Acquired::Granted(Grant {
                    fencing: FencingToken(u64::MAX),
                    remaining: None,
                    ttl: request.ttl,
                    at: None,
                    generation: Generation::default(),
                    capacity: request.capacity.initial(),
                })
            }
            other => other,
        })
    }
}

/// Nobody is told of a grant.
#[derive(Debug, Default)]
struct LosesWakes;

impl Fault for LosesWakes {
    fn acquire(&self, inner: &Inner, request: &Acquire) -> Call<Acquired> {
        map(inner.acquire(request), |mut answer| {
            if let Acquired::Queued(place) = &mut answer {
                place.wake = Wake::new();
            }
            answer
        })
    }
}

/// Passes wakes on only while the gate is open.
fn gated(answer: &mut Acquired, gate: &Arc<AtomicBool>) {
    if let Acquired::Queued(place) = answer {
        let (outer, gate) = (Wake::new(), Arc::clone(gate));
        let inner = std::mem::replace(&mut place.wake, outer.clone());
        when_set(&inner, move || {
            if gate.load(Ordering::SeqCst) {
                outer.notify();
            }
        });
    }
}

/// Nobody is told of a grant that no release brought about.
#[derive(Debug, Default)]
struct LosesWakesOfExpiry(Arc<AtomicBool>);

impl Fault for LosesWakesOfExpiry {
    fn acquire(&self, inner: &Inner, request: &Acquire) -> Call<Acquired> {
        map(inner.acquire(request), |mut answer| {
            gated(&mut answer, &self.0);
            answer
        })
    }
    fn release(&self, inner: &Inner, lock: &Arc<LockId>, token: &Token) -> Call<Released> {
        self.0.store(true, Ordering::SeqCst);
        let answer = inner.release(lock, token);
        self.0.store(false, Ordering::SeqCst);
        answer
    }
}

/// Who gets in because a waiter left is not told.
#[derive(Debug, Default)]
struct LeaverWakesNobody {
    told: Arc<AtomicBool>,
    queued: Mutex<HashSet<Token>>,
}

impl Fault for LeaverWakesNobody {
    fn acquire(&self, inner: &Inner, request: &Acquire) -> Call<Acquired> {
        map(inner.acquire(request), |mut answer| {
            if matches!(answer, Acquired::Queued(_)) {
                self.queued.lock().expect("no panic").insert(request.token.clone());
            }
            gated(&mut answer, &self.told);
            answer
        })
    }
    fn release(&self, inner: &Inner, lock: &Arc<LockId>, token: &Token) -> Call<Released> {
        let leaves = self.queued.lock().expect("no panic").remove(token);
        self.told.store(!leaves, Ordering::SeqCst);
        inner.release(lock, token)
    }
}

/// Whoever leaves before it has confirmed is taken for a waiter, granted or not.
#[derive(Debug, Default)]
struct CancelLosesAPermit(Mutex<HashSet<Token>>);

impl Fault for CancelLosesAPermit {
    fn acquire(&self, inner: &Inner, request: &Acquire) -> Call<Acquired> {
        map(inner.acquire(request), |answer| {
            if matches!(answer, Acquired::Queued(_)) {
                self.0.lock().expect("no panic").insert(request.token.clone());
            }
            answer
        })
    }
    fn confirm(
        &self,
        inner: &Inner,
        lock: &Arc<LockId>,
        token: &Token,
    ) -> Call<leasehold_core::Confirmed> {
        self.0.lock().expect("no panic").remove(token);
        inner.confirm(lock, token)
    }
    fn release(&self, inner: &Inner, lock: &Arc<LockId>, token: &Token) -> Call<Released> {
        let granted = now(inner.remaining(lock, token)) != leasehold_core::Remaining::Gone;
        if granted && self.0.lock().expect("no panic").remove(token) {
            // The claim becomes a grant that nobody has.
            let _ = now(inner.confirm(lock, token));
            return Call::ready(Ok(Released::Waiter(None)));
        }
        inner.release(lock, token)
    }
}

/// The queue has no end.
#[derive(Debug, Default)]
struct NoQueueLimit;

impl Fault for NoQueueLimit {
    fn acquire(&self, inner: &Inner, request: &Acquire) -> Call<Acquired> {
        inner.acquire(&Acquire { queue_limit: u64::MAX, ..request.clone() })
    }
}

/// Who asks for too much gets less.
#[derive(Debug, Default)]
struct HeavyIsCutDown;

impl Fault for HeavyIsCutDown {
    fn acquire(&self, inner: &Inner, request: &Acquire) -> Call<Acquired> {
        match now(inner.acquire(request)) {
            Acquired::Refused(Refusal::TooHeavy { capacity }) => inner.acquire(&Acquire {
                share: leasehold_core::Share::Whole,
                capacity: CapacityClaim::Exactly(capacity),
                ..request.clone()
            }),
            other => Call::ready(Ok(other)),
        }
    }
}

/// What is dropped stays.
#[derive(Debug, Default)]
struct AbandonIsForgotten;

impl Fault for AbandonIsForgotten {
    fn abandon(&self, _: &Inner, _: &Arc<LockId>, _: &Token) {}
}
