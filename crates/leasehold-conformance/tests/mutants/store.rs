//! Faults of names, capacities, generations, watchers and reports (rules N, U, W5).

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use leasehold_core::{
    Acquire, Acquired, Call, CapacityClaim, Destroyed, Generation, LockId, LockName, LockState,
    Namespace, Released, Token, WatchFor, Watched,
};

use crate::{
    Planted,
    mutant::{Fault, Inner, map, now},
};

pub(crate) const FAULTS: &[Planted] = &[
    Planted::new::<MixesNamesUp>("names_mixed_up", "n3_any_characters_name_a_lock_of_its_own"),
    Planted::new::<OneNamespace>("namespaces_mixed_up", "n1_namespaces_are_apart"),
    Planted::new::<AnyCapacity>(
        "capacity_not_checked",
        "n2_another_capacity_is_refused_while_in_use",
    ),
    Planted::new::<CapacityForEver>(
        "capacity_kept_for_ever",
        "n2_an_idle_lock_takes_the_capacity_of_who_asks_next",
    ),
    Planted::new::<CancelsHolders>(
        "cancel_all_takes_holders",
        "w5_cancel_all_leaves_holders_and_the_lock_alone",
    ),
    Planted::new::<CancelLosesTheReason>(
        "reason_lost",
        "w5_cancel_all_rejects_every_waiter_with_the_reason",
    ),
    Planted::new::<ForgetsGenerations>(
        "old_handles_reach_the_new_generation",
        "n5_handles_of_an_old_generation_learn_of_it",
    ),
    Planted::new::<DestroysWhateverIsThere>(
        "old_destroy_ends_the_new_generation",
        "n5_destroy_of_a_named_generation_is_idempotent",
    ),
    Planted::new::<UnlocksAtHandOff>("hand_off_taken_for_an_unlock", "u1_a_hand_off_is_no_unlock"),
    Planted::new::<ForgetsWhatBecameTrue>(
        "watcher_told_of_now_only",
        "u1_what_became_true_stays_told",
    ),
    Planted::new::<SurveyUnordered>(
        "survey_out_of_order",
        "n4_survey_lists_by_namespace_name_and_kind",
    ),
];

/// Names are one whatever their case; only acquisitions are affected.
#[derive(Debug, Default)]
struct MixesNamesUp;

impl Fault for MixesNamesUp {
    fn acquire(&self, inner: &Inner, request: &Acquire) -> Call<Acquired> {
        let name = request.lock.name().as_str().to_lowercase();
        let name = LockName::new(name).expect("a valid name");
        let lock = LockId::new(request.lock.namespace().clone(), request.lock.kind(), name);
        inner.acquire(&Acquire { lock: Arc::new(lock), ..request.clone() })
    }
}

/// All namespaces are one.
#[derive(Debug, Default)]
struct OneNamespace;

impl Fault for OneNamespace {
    fn acquire(&self, inner: &Inner, request: &Acquire) -> Call<Acquired> {
        let (kind, name) = (request.lock.kind(), request.lock.name().clone());
        let lock = Arc::new(LockId::new(Namespace::default(), kind, name));
        inner.acquire(&Acquire { lock, ..request.clone() })
    }
}

/// Whatever capacity is claimed is right.
#[derive(Debug, Default)]
struct AnyCapacity;

impl Fault for AnyCapacity {
    fn acquire(&self, inner: &Inner, request: &Acquire) -> Call<Acquired> {
        let otherwise = request.capacity.initial();
        let capacity = CapacityClaim::Registered { otherwise };
        inner.acquire(&Acquire { capacity, ..request.clone() })
    }
}

/// The first capacity is the only one.
#[derive(Debug, Default)]
struct CapacityForEver(Mutex<HashMap<LockId, CapacityClaim>>);

impl Fault for CapacityForEver {
    fn acquire(&self, inner: &Inner, request: &Acquire) -> Call<Acquired> {
        let mut known = self.0.lock().expect("no panic");
        let capacity = *known.entry((*request.lock).clone()).or_insert(request.capacity);
        inner.acquire(&Acquire { capacity, ..request.clone() })
    }
}

/// `cancel_all` clears the lock, holders included.
#[derive(Debug, Default)]
struct CancelsHolders(Mutex<Vec<Token>>);

impl Fault for CancelsHolders {
    fn acquire(&self, inner: &Inner, request: &Acquire) -> Call<Acquired> {
        map(inner.acquire(request), |answer| {
            if let Acquired::Granted(_) = answer {
                self.0.lock().expect("no panic").push(request.token.clone());
            }
            answer
        })
    }
    fn cancel_all(&self, inner: &Inner, lock: &Arc<LockId>, reason: &str) -> Call<u64> {
        let answer = inner.cancel_all(lock, reason);
        for token in self.0.lock().expect("no panic").drain(..) {
            let _ = now(inner.release(lock, &token));
        }
        answer
    }
}

/// Waiters are not told why.
#[derive(Debug, Default)]
struct CancelLosesTheReason;

impl Fault for CancelLosesTheReason {
    fn cancel_all(&self, inner: &Inner, lock: &Arc<LockId>, _: &str) -> Call<u64> {
        inner.cancel_all(lock, "cancelled")
    }
}

/// A handle's generation is ignored.
#[derive(Debug, Default)]
struct ForgetsGenerations;

impl Fault for ForgetsGenerations {
    fn acquire(&self, inner: &Inner, request: &Acquire) -> Call<Acquired> {
        inner.acquire(&Acquire { generation: None, ..request.clone() })
    }
}

/// A destroy ends what there is, not what was meant.
#[derive(Debug, Default)]
struct DestroysWhateverIsThere;

impl Fault for DestroysWhateverIsThere {
    fn destroy(
        &self,
        inner: &Inner,
        lock: &Arc<LockId>,
        _: Option<Generation>,
        reason: &str,
    ) -> Call<Destroyed> {
        inner.destroy(lock, None, reason)
    }
}

/// After any release, every watcher is told that the lock is free.
#[derive(Debug, Default)]
struct UnlocksAtHandOff(AtomicBool);

impl Fault for UnlocksAtHandOff {
    fn release(&self, inner: &Inner, lock: &Arc<LockId>, token: &Token) -> Call<Released> {
        self.0.store(true, Ordering::SeqCst);
        inner.release(lock, token)
    }
    fn watch(
        &self,
        inner: &Inner,
        lock: &Arc<LockId>,
        generation: Option<Generation>,
        id: &Token,
        what: WatchFor,
    ) -> Call<Watched> {
        let released = self.0.load(Ordering::SeqCst);
        map(
            inner.watch(lock, generation, id, what),
            |answer| {
                if released { Watched::Done } else { answer }
            },
        )
    }
}

/// A watcher that asks is told what is true now, not what has become of its question.
#[derive(Debug, Default)]
struct ForgetsWhatBecameTrue;

impl Fault for ForgetsWhatBecameTrue {
    fn watch(
        &self,
        inner: &Inner,
        lock: &Arc<LockId>,
        generation: Option<Generation>,
        id: &Token,
        what: WatchFor,
    ) -> Call<Watched> {
        match now(inner.watch(lock, generation, id, what)) {
            Watched::Done => inner.watch(lock, generation, id, what),
            other => Call::ready(Ok(other)),
        }
    }
}

/// The list comes as it comes.
#[derive(Debug, Default)]
struct SurveyUnordered;

impl Fault for SurveyUnordered {
    fn survey(&self, inner: &Inner, namespace: Option<&Namespace>) -> Call<Vec<LockState>> {
        map(inner.survey(namespace), |mut list| {
            list.reverse();
            list
        })
    }
}
