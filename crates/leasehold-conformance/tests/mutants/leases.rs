//! Faults of TTL, claims and fencing tokens (rules T2 to T4, L2, L8, L10).

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use leasehold_core::{
    Acquire, Acquired, Call, Confirmed, Extended, FencingToken, Grant, LocalTime, LockId,
    Remaining, Renewal, Renewed, Token, Ttl, defaults,
};

use crate::{
    Planted,
    mutant::{Fault, Inner, map, now, when_set},
};

pub(crate) const FAULTS: &[Planted] = &[
    Planted::new::<IgnoresTtl>("ttl_ignored", "t3_an_overdue_grant_is_gone"),
    Planted::new::<IgnoresTtlOfTries>("ttl_of_a_try_ignored", "t1_the_ttl_of_a_try_counts"),
    Planted::new::<TtlCountsFromTheCall>(
        "ttl_counted_from_the_call",
        "t2_the_ttl_counts_from_the_grant",
    ),
    Planted::new::<RenewalShortensAnExtend>(
        "renewal_shortens_an_extend",
        "l2_renew_never_shortens_an_extend",
    ),
    Planted::new::<RenewalDoesNothing>("renewal_without_effect", "l2_renew_starts_the_ttl_again"),
    Planted::new::<ExtendRevives>(
        "extend_revives",
        "t4_extend_lengthens_and_a_gone_grant_stays_gone",
    ),
    Planted::new::<ClaimNeverLapses>(
        "grantee_dies_before_it_confirms",
        "l10_a_claim_that_nobody_confirms_is_passed_on",
    ),
    Planted::new::<ConfirmKeepsTheClaim>(
        "confirmation_keeps_the_claim",
        "l10_confirm_gives_the_full_ttl",
    ),
    Planted::new::<FenceIsTheClock>("fence_is_the_clock", "l8_fencing_grows_with_every_grant"),
    Planted::new::<FenceStepsBack>("fence_steps_back", "l8_fencing_grows_over_idle_times"),
];

/// No grant ever ends by itself.
#[derive(Debug, Default)]
struct IgnoresTtl;

impl Fault for IgnoresTtl {
    fn acquire(&self, inner: &Inner, request: &Acquire) -> Call<Acquired> {
        inner.acquire(&Acquire { ttl: None, ..request.clone() })
    }
}

/// A grant to who does not wait never ends by itself.
#[derive(Debug, Default)]
struct IgnoresTtlOfTries;

impl Fault for IgnoresTtlOfTries {
    fn acquire(&self, inner: &Inner, request: &Acquire) -> Call<Acquired> {
        let ttl = request.ttl.filter(|_| request.wait);
        inner.acquire(&Acquire { ttl, ..request.clone() })
    }
}

/// The time in the queue is taken off the TTL.
#[derive(Debug, Default)]
struct TtlCountsFromTheCall(Mutex<HashMap<Token, (LocalTime, Ttl)>>);

impl Fault for TtlCountsFromTheCall {
    fn acquire(&self, inner: &Inner, request: &Acquire) -> Call<Acquired> {
        if let Some(ttl) = request.ttl {
            let asked = (inner.clock().now(), ttl);
            self.0.lock().expect("no panic").insert(request.token.clone(), asked);
        }
        inner.acquire(request)
    }
    fn confirm(&self, inner: &Inner, lock: &Arc<LockId>, token: &Token) -> Call<Confirmed> {
        map(inner.confirm(lock, token), |answer| {
            let asked = self.0.lock().expect("no panic").get(token).copied();
            if let (Confirmed::Granted(_), Some((since, ttl))) = (&answer, asked) {
                let left = ttl.get().saturating_sub(inner.clock().now().since(since));
                let _ = now(inner.extend(lock, token, Ttl::new(left).ok()));
            }
            answer
        })
    }
}

/// A renewal sets the TTL that was asked for at first.
#[derive(Debug, Default)]
struct RenewalShortensAnExtend(Mutex<HashMap<Token, Ttl>>);

impl Fault for RenewalShortensAnExtend {
    fn acquire(&self, inner: &Inner, request: &Acquire) -> Call<Acquired> {
        if let Some(ttl) = request.ttl {
            self.0.lock().expect("no panic").insert(request.token.clone(), ttl);
        }
        inner.acquire(request)
    }
    fn renew(&self, inner: &Inner, leases: Vec<Renewal>) -> Call<Vec<Renewed>> {
        for lease in &leases {
            if let Some(ttl) = self.0.lock().expect("no panic").get(&lease.token).copied() {
                let _ = now(inner.extend(&lease.lock, &lease.token, Some(ttl)));
            }
        }
        inner.renew(leases)
    }
}

/// A renewal says that all is well.
#[derive(Debug, Default)]
struct RenewalDoesNothing;

impl Fault for RenewalDoesNothing {
    fn renew(&self, inner: &Inner, leases: Vec<Renewal>) -> Call<Vec<Renewed>> {
        let says = |lease: &Renewal| match now(inner.remaining(&lease.lock, &lease.token)) {
            Remaining::Gone => Renewed::Unknown,
            Remaining::Never => Renewed::Held { remaining: None },
            Remaining::Left(left) => Renewed::Held { remaining: Some(left) },
        };
        Call::ready(Ok(leases.iter().map(says).collect()))
    }
}

/// An extension of a gone grant acquires it again.
#[derive(Debug, Default)]
struct ExtendRevives(Mutex<HashMap<Token, Acquire>>);

impl Fault for ExtendRevives {
    fn acquire(&self, inner: &Inner, request: &Acquire) -> Call<Acquired> {
        self.0.lock().expect("no panic").insert(request.token.clone(), request.clone());
        inner.acquire(request)
    }
    fn extend(
        &self,
        inner: &Inner,
        lock: &Arc<LockId>,
        token: &Token,
        ttl: Option<Ttl>,
    ) -> Call<Extended> {
        match now(inner.extend(lock, token, ttl)) {
            Extended::Gone => {
                let request = self.0.lock().expect("no panic").get(token).cloned();
                let again = request.map(|request| Acquire { wait: false, ttl, ..request });
                match again.map(|request| now(inner.acquire(&request))) {
                    Some(Acquired::Granted(_)) => Call::ready(Ok(Extended::Held)),
                    _ => Call::ready(Ok(Extended::Gone)),
                }
            }
            other => Call::ready(Ok(other)),
        }
    }
}

/// A contended grant is final at once, whether or not anybody takes it.
#[derive(Debug, Default)]
struct ClaimNeverLapses;

impl Fault for ClaimNeverLapses {
    fn acquire(&self, inner: &Inner, request: &Acquire) -> Call<Acquired> {
        map(inner.acquire(request), |mut answer| {
            confirm_at_once(inner, request, &mut answer);
            answer
        })
    }
}

/// Confirms in the waiter's stead as soon as it is granted.
pub(crate) fn confirm_at_once(inner: &Inner, request: &Acquire, answer: &mut Acquired) {
    if let Acquired::Queued(place) = answer {
        let outer = leasehold_core::Wake::new();
        let flag = std::mem::replace(&mut place.wake, outer.clone());
        let (client, lock, token) =
            (Arc::downgrade(inner), Arc::clone(&request.lock), request.token.clone());
        when_set(&flag, move || {
            if let Some(client) = client.upgrade() {
                let _ = now(client.confirm(&lock, &token));
            }
            outer.notify();
        });
    }
}

/// A confirmed grant still ends with its claim.
#[derive(Debug, Default)]
struct ConfirmKeepsTheClaim;

impl Fault for ConfirmKeepsTheClaim {
    fn confirm(&self, inner: &Inner, lock: &Arc<LockId>, token: &Token) -> Call<Confirmed> {
        map(inner.confirm(lock, token), |answer| {
            if let Confirmed::Granted(_) = answer {
                let claim = Ttl::new(defaults::CLAIM).ok();
                let _ = now(inner.extend(lock, token, claim));
            }
            answer
        })
    }
}

/// Two grants at one time have one fencing token.
#[derive(Debug, Default)]
struct FenceIsTheClock;

impl FenceIsTheClock {
    fn fenced(inner: &Inner, grant: Grant) -> Grant {
        Grant { fencing: FencingToken(inner.store_time(inner.clock().now()).0), ..grant }
    }
}

impl Fault for FenceIsTheClock {
    fn acquire(&self, inner: &Inner, request: &Acquire) -> Call<Acquired> {
        map(inner.acquire(request), |answer| match answer {
            Acquired::Granted(grant) => Acquired::Granted(Self::fenced(inner, grant)),
            other => other,
        })
    }
    fn confirm(&self, inner: &Inner, lock: &Arc<LockId>, token: &Token) -> Call<Confirmed> {
        map(inner.confirm(lock, token), |answer| match answer {
            Confirmed::Granted(grant) => Confirmed::Granted(Self::fenced(inner, grant)),
            other => other,
        })
    }
}

/// An idle lock is forgotten with its last fencing token.
#[derive(Debug, Default)]
struct FenceStepsBack(Mutex<u64>);

impl Fault for FenceStepsBack {
    fn acquire(&self, inner: &Inner, request: &Acquire) -> Call<Acquired> {
        let idle = now(inner.counts(&request.lock)).is_none();
        map(inner.acquire(request), |answer| match answer {
            Acquired::Granted(grant) => {
                let mut base = self.0.lock().expect("no panic");
                if idle {
                    *base = grant.fencing.get() - 1;
                }
                let fencing = FencingToken(grant.fencing.get() - *base);
                Acquired::Granted(Grant { fencing, ..grant })
            }
            other => other,
        })
    }
}
