//! What the plain locks promise, by what could go wrong. Only the public API is used.
#![cfg(not(leasehold_loom))]

mod auto_traits;
mod bad_input;
mod blocking_threads;
mod cancellation;
mod capacity_changes;
#[path = "../common/mod.rs"]
mod common;
mod dropped_anywhere;
mod every_runtime;
mod fairness;
mod forgotten;
mod guards;
mod panics;
mod release_once;
mod sizes;
mod timeouts;
#[cfg(feature = "tokio")]
mod tokio_runtime;
mod upgrades;
mod wakers;
mod watching;

pub(crate) use common::{Count, HOUR, poll, ready};

/// Waits until a condition of another thread holds.
pub(crate) fn until(what: &str, holds: impl Fn() -> bool) {
    let start = std::time::Instant::now();
    while !holds() {
        assert!(start.elapsed() < std::time::Duration::from_secs(60), "{what} did not happen");
        std::thread::yield_now();
    }
}
