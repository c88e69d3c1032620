//! Faults around the life and death of clients (rules T8, L4, N6, N7).

use std::{
    collections::HashSet,
    mem,
    sync::{Arc, Mutex},
};

use leasehold_core::{Acquire, Acquired, Backend, Binding, Call, Grant, LockId, Token, Ttl};

use crate::{
    Planted,
    leases::confirm_at_once,
    mutant::{Fault, Inner, map, now},
};

pub(crate) const FAULTS: &[Planted] = &[
    Planted::new::<ReclaimsHandedOverGrants>(
        "handed_over_grant_reclaimed_at_death",
        "t8_a_grant_bound_to_its_token_survives_its_client",
    ),
    Planted::new::<ReclaimsHandedOverGrants>(
        "rebinding_without_effect",
        "t8_rebinding_to_the_token_makes_it_survive",
    ),
    Planted::new::<DeathIsNotNoticed>(
        "death_not_noticed",
        "t8_death_of_a_client_frees_what_is_bound_to_it",
    ),
    Planted::new::<DeadHeadBlocks>(
        "dead_head_blocks",
        "l4_a_dead_waiter_at_the_head_delays_nobody_for_long",
    ),
    Planted::new::<DeadHeadBlocks>(
        "dead_grantee_blocks",
        "l10_a_grantee_that_dies_before_it_confirms_passes_the_grant_on",
    ),
    Planted::new::<CloseReleasesTokens>(
        "close_releases_what_tokens_hold",
        "n6_close_touches_nothing_of_tokens_and_others",
    ),
    Planted::new::<CloseLeavesAll>(
        "close_leaves_grants_behind",
        "n6_close_gives_back_what_is_bound_to_the_client",
    ),
];

/// Every grant ends with the client that made it.
#[derive(Debug, Default)]
struct ReclaimsHandedOverGrants;

impl Fault for ReclaimsHandedOverGrants {
    fn acquire(&self, inner: &Inner, request: &Acquire) -> Call<Acquired> {
        inner.acquire(&Acquire { binding: Binding::Client, ..request.clone() })
    }
    fn rebind(
        &self,
        inner: &Inner,
        lock: &Arc<LockId>,
        token: &Token,
        _: Binding,
        ttl: Option<Ttl>,
    ) -> Call<Option<Grant>> {
        inner.rebind(lock, token, Binding::Client, ttl)
    }
}

/// The store takes a dead client for a living one.
#[derive(Debug, Default)]
struct DeathIsNotNoticed;

impl Fault for DeathIsNotNoticed {
    fn dies(&self, client: Arc<dyn Backend>) {
        mem::forget(client);
    }
}

/// A dead waiter keeps what it was granted.
#[derive(Debug, Default)]
struct DeadHeadBlocks;

impl Fault for DeadHeadBlocks {
    fn acquire(&self, inner: &Inner, request: &Acquire) -> Call<Acquired> {
        map(inner.acquire(request), |mut answer| {
            confirm_at_once(inner, request, &mut answer);
            answer
        })
    }
    fn dies(&self, client: Arc<dyn Backend>) {
        mem::forget(client);
    }
}

/// A client that closes takes with it what it gave away.
#[derive(Debug, Default)]
struct CloseReleasesTokens(Mutex<HashSet<(Arc<LockId>, Token)>>);

impl Fault for CloseReleasesTokens {
    fn acquire(&self, inner: &Inner, request: &Acquire) -> Call<Acquired> {
        if request.binding == Binding::Token {
            let grant = (Arc::clone(&request.lock), request.token.clone());
            self.0.lock().expect("no panic").insert(grant);
        }
        inner.acquire(request)
    }
    fn close(&self, inner: &Inner) -> Call<()> {
        for (lock, token) in self.0.lock().expect("no panic").drain() {
            let _ = now(inner.release(&lock, &token));
        }
        inner.close()
    }
}

/// A client that closes leaves everything as it is.
#[derive(Debug, Default)]
struct CloseLeavesAll;

impl Fault for CloseLeavesAll {
    fn close(&self, _: &Inner) -> Call<()> {
        Call::ready(Ok(()))
    }
}
