//! Every span, event, counter and histogram of this crate, by name; docs/service.md has them as one
//! table.
//!
//! Spans and events go through `tracing` with the target `leasehold::service`; numbers go through the
//! `metrics` facade when the feature `metrics` is on. Every number has the labels `entry` and
//! `adapter`; names of resources are never labels, and tokens never appear.

use std::{sync::Arc, time::Duration};

use leasehold::{Clock, Error, LockId, Result};
use leasehold_core::LocalTime;
use tracing::Span;

use crate::lease::ServiceLease;

/// The target of all spans and events.
pub const TARGET: &str = "leasehold::service";
/// Span: an entry starts.
pub const SPAN_START: &str = "lock_service_start";
/// Span: a service shuts down.
pub const SPAN_SHUTDOWN: &str = "lock_service_shutdown";
/// Span: an executor runs work.
pub const SPAN_RUN: &str = "lock_service_run";

/// Histogram, seconds: from the request to the grant.
pub const WAIT_SECONDS: &str = "leasehold_service_wait_seconds";
/// Histogram, seconds: from the grant to the release.
pub const HOLD_SECONDS: &str = "leasehold_service_hold_seconds";
/// Counter: leases that were handed out.
pub const GRANTS: &str = "leasehold_service_grants_total";
/// Counter: requests that ended without a lease, by `reason`: `busy`, `cancelled`, `shut down`,
/// `failed`.
pub const REFUSALS: &str = "leasehold_service_refusals_total";
/// Counter: leases that were lost.
pub const LOSSES: &str = "leasehold_service_losses_total";
/// Counter: grants that came after the caller had left, and were given back.
pub const LATE_GRANTS: &str = "leasehold_service_late_grants_total";
/// Counter: releases that failed.
pub const RELEASE_FAILURES: &str = "leasehold_service_release_failures_total";
/// Counter: leases that were dropped and not released.
pub const DROPPED: &str = "leasehold_service_dropped_total";
/// Counter: starts and closes of entries that failed, by `step`.
pub const LIFE_CYCLE_FAILURES: &str = "leasehold_service_life_cycle_failures_total";
/// Counter: requests and releases that a shutdown left behind.
pub const UNSETTLED: &str = "leasehold_service_unsettled_total";

/// Which entry an event or a number is about.
#[derive(Clone, Debug)]
pub(crate) struct Label {
    pub(crate) entry: Arc<str>,
    pub(crate) adapter: Arc<str>,
}

impl Label {
    pub(crate) fn new(entry: &str, adapter: &str) -> Self {
        Self { entry: entry.into(), adapter: adapter.into() }
    }
}

macro_rules! count {
    ($name:expr, $label:expr, $by:expr $(, $key:literal => $value:expr)?) => {{
        #[cfg(feature = "metrics")]
        ::metrics::counter!(
            $name,
            "entry" => $label.entry.to_string(),
            "adapter" => $label.adapter.to_string()
            $(, $key => $value)?
        )
        .increment($by);
        #[cfg(not(feature = "metrics"))]
        let _ = ($name, $label, $by $(, $value)?);
    }};
}

fn record(name: &'static str, label: &Label, time: Duration) {
    #[cfg(feature = "metrics")]
    ::metrics::histogram!(
        name,
        "entry" => label.entry.to_string(),
        "adapter" => label.adapter.to_string()
    )
    .record(time.as_secs_f64());
    #[cfg(not(feature = "metrics"))]
    let _ = (name, label, time);
}

pub(crate) fn starting(label: &Label) -> Span {
    tracing::info_span!(target: "leasehold::service", "lock_service_start", entry = %label.entry, adapter = %label.adapter)
}

pub(crate) fn shutting_down() -> Span {
    tracing::info_span!(target: "leasehold::service", "lock_service_shutdown")
}

pub(crate) fn running(lock: &LockId) -> Span {
    tracing::debug_span!(target: "leasehold::service", "lock_service_run", %lock)
}

pub(crate) fn started(label: &Label) {
    tracing::info!(target: TARGET, entry = %label.entry, adapter = %label.adapter, "entry started");
}

pub(crate) fn closed(label: &Label) {
    tracing::info!(target: TARGET, entry = %label.entry, adapter = %label.adapter, "entry closed");
}

/// What the caller of an acquisition was told.
pub(crate) fn answered(
    label: &Label,
    lock: &LockId,
    answer: &Result<Option<ServiceLease>>,
    clock: &Arc<dyn Clock>,
    begun: LocalTime,
) {
    match answer {
        Ok(Some(_)) => {
            let waited = clock.now().since(begun);
            tracing::trace!(target: TARGET, entry = %label.entry, %lock, ?waited, "granted");
            count!(GRANTS, label, 1);
            record(WAIT_SECONDS, label, waited);
        }
        Ok(None) => refused(label, lock, "busy"),
        Err(_) => refused(label, lock, "failed"),
    }
}

pub(crate) fn refused(label: &Label, lock: &LockId, reason: &'static str) {
    tracing::debug!(target: TARGET, entry = %label.entry, %lock, reason, "not granted");
    count!(REFUSALS, label, 1, "reason" => reason);
}

pub(crate) fn released(label: &Label, lock: &LockId, clock: &Arc<dyn Clock>, granted: LocalTime) {
    let held = clock.now().since(granted);
    tracing::trace!(target: TARGET, entry = %label.entry, %lock, ?held, "released");
    record(HOLD_SECONDS, label, held);
}

pub(crate) fn release_failed(label: &Label, lock: &LockId, error: &Error) {
    tracing::warn!(target: TARGET, entry = %label.entry, %lock, %error, "release failed");
    count!(RELEASE_FAILURES, label, 1);
}

pub(crate) fn lost(label: &Label, lock: &LockId, error: &Error) {
    tracing::warn!(target: TARGET, entry = %label.entry, %lock, %error, "lease lost");
    count!(LOSSES, label, 1);
}

pub(crate) fn late_grant(label: &Label, lock: &LockId) {
    tracing::debug!(target: TARGET, entry = %label.entry, %lock, "granted too late, given back");
    count!(LATE_GRANTS, label, 1);
}

pub(crate) fn dropped(label: &Label, lock: &LockId) {
    tracing::debug!(target: TARGET, entry = %label.entry, %lock, "lease dropped, given back");
    count!(DROPPED, label, 1);
}

pub(crate) fn start_failed(label: &Label, error: &Error) {
    tracing::warn!(target: TARGET, entry = %label.entry, %error, "start failed");
    count!(LIFE_CYCLE_FAILURES, label, 1, "step" => "start");
}

pub(crate) fn close_failed(label: &Label, error: &Error) {
    tracing::warn!(target: TARGET, entry = %label.entry, %error, "close failed");
    count!(LIFE_CYCLE_FAILURES, label, 1, "step" => "close");
}

pub(crate) fn unsettled(label: &Label, count: usize) {
    tracing::warn!(target: TARGET, entry = %label.entry, count, "left behind by the shutdown");
    count!(UNSETTLED, label, count as u64);
}
