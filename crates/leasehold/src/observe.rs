//! Every span, event, counter and histogram of this crate, by name.
//!
//! Events go through `tracing` with the target `leasehold`; numbers go through the `metrics` facade
//! when the feature `metrics` is on. Every number has the label `kind`; names of locks and tokens
//! are never labels.

use std::time::Duration;

use leasehold_core::{Fault, LockId, Obstacle, Token};

/// Histogram, seconds: from the request to the grant, of acquisitions that were queued.
pub const WAIT_SECONDS: &str = "leasehold_wait_seconds";
/// Histogram, seconds: from the grant to the release.
pub const HOLD_SECONDS: &str = "leasehold_hold_seconds";
/// Histogram: how many waiters were ahead of one that was queued.
pub const QUEUE_AHEAD: &str = "leasehold_queue_ahead";
/// Counter: grants.
pub const GRANTS: &str = "leasehold_grants_total";
/// Counter: acquisitions that ended without a grant, by `reason`.
pub const REFUSALS: &str = "leasehold_refusals_total";
/// Counter: leases that were lost.
pub const LOSSES: &str = "leasehold_losses_total";
/// Counter: grants that came after the caller had given up, and were passed on.
pub const LATE_GRANTS: &str = "leasehold_late_grants_total";
/// Counter: waiters that the store had skipped as silent, queued again.
pub const REQUEUES: &str = "leasehold_requeues_total";
/// Counter: renewals that failed, whatever became of the lease.
pub const RENEWAL_FAILURES: &str = "leasehold_renewal_failures_total";
/// Counter: releases that failed.
pub const RELEASE_FAILURES: &str = "leasehold_release_failures_total";

macro_rules! count {
    ($name:expr, $lock:expr $(, $key:literal => $value:expr)?) => {{
        #[cfg(feature = "metrics")]
        ::metrics::counter!($name, "kind" => $lock.kind().as_str() $(, $key => $value)?).increment(1);
        #[cfg(not(feature = "metrics"))]
        let _ = ($name, $lock $(, $value)?);
    }};
}

macro_rules! record {
    ($name:expr, $lock:expr, $value:expr) => {{
        #[cfg(feature = "metrics")]
        ::metrics::histogram!($name, "kind" => $lock.kind().as_str()).record($value);
        #[cfg(not(feature = "metrics"))]
        let _ = ($name, $lock, $value);
    }};
}

pub(crate) fn queued(lock: &LockId, token: &Token, obstacle: &Obstacle) {
    tracing::debug!(target: "leasehold", %lock, ?token, ahead = obstacle.ahead, "queued");
    #[allow(clippy::cast_precision_loss, reason = "a histogram's value")]
    let ahead = obstacle.ahead.unwrap_or(0) as f64;
    record!(QUEUE_AHEAD, lock, ahead);
}

pub(crate) fn granted(lock: &LockId, token: &Token, fencing: u64, waited: Option<Duration>) {
    tracing::trace!(target: "leasehold", %lock, ?token, fencing, ?waited, "granted");
    count!(GRANTS, lock);
    if let Some(waited) = waited {
        record!(WAIT_SECONDS, lock, waited.as_secs_f64());
    }
}

pub(crate) fn refused(lock: &LockId, reason: &'static str) {
    tracing::debug!(target: "leasehold", %lock, reason, "not granted");
    count!(REFUSALS, lock, "reason" => reason);
}

pub(crate) fn late_grant(lock: &LockId, token: &Token) {
    tracing::debug!(target: "leasehold", %lock, ?token, "granted too late, passed on");
    count!(LATE_GRANTS, lock);
}

pub(crate) fn requeued(lock: &LockId, token: &Token) {
    tracing::warn!(target: "leasehold", %lock, ?token, "the store had given up this waiter; queued again");
    count!(REQUEUES, lock);
}

/// Whether anybody looks at how long leases are held; else the clock is not read for it.
pub(crate) const fn times_holds() -> bool {
    cfg!(feature = "metrics")
}

pub(crate) fn released(lock: &LockId, token: &Token, held_for: Option<Duration>) {
    tracing::trace!(target: "leasehold", %lock, ?token, "released");
    if let Some(held_for) = held_for {
        record!(HOLD_SECONDS, lock, held_for.as_secs_f64());
    }
}

pub(crate) fn lost(lock: &LockId, token: &Token, why: &str) {
    tracing::warn!(target: "leasehold", %lock, ?token, why, "lease lost");
    count!(LOSSES, lock);
}

pub(crate) fn renewal_failed(lock: &LockId, token: &Token, fault: &Fault) {
    tracing::warn!(target: "leasehold", %lock, ?token, %fault, "renewal failed");
    count!(RENEWAL_FAILURES, lock);
}

pub(crate) fn release_failed(lock: &LockId, token: &Token, fault: &Fault) {
    tracing::warn!(target: "leasehold", %lock, ?token, %fault, "release failed");
    count!(RELEASE_FAILURES, lock);
}
