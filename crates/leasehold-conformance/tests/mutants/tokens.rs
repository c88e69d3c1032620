//! Faults of tokens and attempts (rules T5, T6, L7).

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex},
};

use leasehold_core::{Acquire, Acquired, AttemptId, Call, Confirmed, LockId, Released, Token};

use crate::{
    Planted,
    mutant::{Fault, Inner, map, now},
};

pub(crate) const FAULTS: &[Planted] = &[
    Planted::new::<SecondGrantForACopy>(
        "double_grant_by_a_duplicate",
        "l7_a_replay_of_a_grant_is_the_same_grant",
    ),
    Planted::new::<SecondGrantForACopy>(
        "second_place_by_a_duplicate",
        "l7_a_copy_that_comes_in_the_queue_takes_no_second_place",
    ),
    Planted::new::<SecondGrantForACopy>(
        "double_grant_by_a_duplicate_after_the_queue",
        "l7_a_copy_that_comes_after_the_grant_makes_no_second_one",
    ),
    Planted::new::<SecondGrantForACopy>(
        "double_grant_when_all_comes_twice",
        "l7_programs_agree_with_the_model_when_every_request_comes_twice",
    ),
    Planted::new::<NeverStale>(
        "late_duplicate_has_an_effect",
        "l7_a_copy_that_comes_late_is_stale_and_changes_nothing",
    ),
    Planted::new::<NeverStale>(
        "late_request_has_an_effect",
        "l7_a_request_that_comes_late_is_stale",
    ),
    Planted::new::<NeverStale>(
        "orphan_by_a_request_that_its_drop_overtook",
        "l7_a_request_that_comes_after_its_drop_leaves_nothing",
    ),
    Planted::new::<NeverStale>(
        "double_grant_by_a_late_duplicate",
        "l7_a_late_copy_makes_no_second_grant",
    ),
    Planted::new::<EveryCopyIsANewUse>(
        "retry_blocked_by_its_own_first_attempt",
        "l7_a_replay_of_a_place_is_the_same_place",
    ),
    Planted::new::<AcceptsTokensTwice>("token_reuse_accepted", "t5_a_token_that_holds_is_refused"),
    Planted::new::<ReleaseFreesTheSuccessor>(
        "release_frees_the_successor",
        "t6_a_late_release_never_touches_the_next_grant",
    ),
    Planted::new::<ReleaseFreesTheSuccessor>(
        "release_twice_gives_two_permits",
        "t6_several_releasers_give_back_one_permit",
    ),
    Planted::new::<TellsTokens>("token_in_a_reply", "t5_no_reply_shows_a_token_in_its_debug_form"),
];

/// A request that comes again is granted again.
#[derive(Debug, Default)]
struct SecondGrantForACopy(Mutex<HashSet<(Token, AttemptId)>>);

impl Fault for SecondGrantForACopy {
    fn acquire(&self, inner: &Inner, request: &Acquire) -> Call<Acquired> {
        let this = (request.token.clone(), request.attempt);
        if self.0.lock().expect("no panic").insert(this) {
            return inner.acquire(request);
        }
        inner.acquire(&Acquire { token: Token::random(), ..request.clone() })
    }
}

/// A request has an effect however late it comes.
#[derive(Debug, Default)]
struct NeverStale;

impl Fault for NeverStale {
    fn acquire(&self, inner: &Inner, request: &Acquire) -> Call<Acquired> {
        inner.acquire(&Acquire { not_after: None, ..request.clone() })
    }
}

/// A retry is taken for a second use of the token.
#[derive(Debug, Default)]
struct EveryCopyIsANewUse;

impl Fault for EveryCopyIsANewUse {
    fn acquire(&self, inner: &Inner, request: &Acquire) -> Call<Acquired> {
        inner.acquire(&Acquire { attempt: AttemptId::random(), ..request.clone() })
    }
}

/// A second use of a token is taken for a retry.
#[derive(Debug, Default)]
struct AcceptsTokensTwice;

impl Fault for AcceptsTokensTwice {
    fn acquire(&self, inner: &Inner, request: &Acquire) -> Call<Acquired> {
        inner.acquire(&Acquire { attempt: AttemptId(0), ..request.clone() })
    }
}

/// A release that finds nothing gives back whatever was granted last.
#[derive(Debug, Default)]
struct ReleaseFreesTheSuccessor(Mutex<HashMap<LockId, Token>>);

impl ReleaseFreesTheSuccessor {
    fn granted(&self, lock: &LockId, token: &Token) {
        self.0.lock().expect("no panic").insert(lock.clone(), token.clone());
    }
}

impl Fault for ReleaseFreesTheSuccessor {
    fn acquire(&self, inner: &Inner, request: &Acquire) -> Call<Acquired> {
        map(inner.acquire(request), |answer| {
            if let Acquired::Granted(_) = answer {
                self.granted(&request.lock, &request.token);
            }
            answer
        })
    }
    fn confirm(&self, inner: &Inner, lock: &Arc<LockId>, token: &Token) -> Call<Confirmed> {
        map(inner.confirm(lock, token), |answer| {
            if let Confirmed::Granted(_) = answer {
                self.granted(lock, token);
            }
            answer
        })
    }
    fn release(&self, inner: &Inner, lock: &Arc<LockId>, token: &Token) -> Call<Released> {
        let last = self.0.lock().expect("no panic").get(&**lock).cloned();
        match (now(inner.release(lock, token)), last) {
            (Released::Unknown, Some(last)) => inner.release(lock, &last),
            (found, _) => Call::ready(Ok(found)),
        }
    }
}

/// The list of holders shows their tokens.
#[derive(Debug, Default)]
struct TellsTokens;

impl Fault for TellsTokens {
    fn acquire(&self, inner: &Inner, request: &Acquire) -> Call<Acquired> {
        let told = request.info.labelled(&request.token.to_string());
        let info = told.map_or_else(|_| Arc::clone(&request.info), Arc::new);
        inner.acquire(&Acquire { info, ..request.clone() })
    }
}
