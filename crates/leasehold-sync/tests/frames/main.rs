//! Frames: reentrancy and deadlocks are told, and nothing else is (rules R). Only the public API
//! is used.
#![cfg(not(leasehold_loom))]

#[path = "../common/mod.rs"]
mod common;
mod deadlocks;
mod dropped;
mod forgotten;
mod inherited;
mod keyed;
mod reentrancy;
mod shared_reads;
mod siblings;
mod unchecked;

use leasehold_sync::{DeadlockStep, Error, ErrorKind};

pub(crate) use common::{done, pause, poll, ready, waits};

/// The lines of the two places of a reentrant request: where it is held, where it is asked for.
#[track_caller]
pub(crate) fn reentrant(error: &Error) -> (u32, u32) {
    assert!(error.is_reentrant() && !error.is_retryable(), "{error}");
    match error.kind() {
        ErrorKind::Reentrant { held, asked } => {
            assert!(held.file() == asked.file() && held.file().ends_with(".rs"));
            let message = error.to_string();
            assert!(message.contains(&held.to_string()) && message.contains(&asked.to_string()));
            (held.line(), asked.line())
        }
        other => panic!("{other:?}"),
    }
}

/// The steps of a deadlock.
#[track_caller]
pub(crate) fn cycle(error: &Error) -> &[DeadlockStep] {
    assert!(error.is_deadlock() && !error.is_retryable(), "{error}");
    match error.kind() {
        ErrorKind::Deadlock { cycle } => {
            let message = error.to_string();
            for step in cycle {
                assert!(message.contains(&step.to_string()), "{message}");
            }
            cycle
        }
        other => panic!("{other:?}"),
    }
}

/// Of each step of a deadlock: where the lock is waited for, and where it was taken.
#[track_caller]
pub(crate) fn lines(error: &Error) -> Vec<(u32, u32)> {
    cycle(error).iter().map(|step| (step.waits.line(), step.taken.line())).collect()
}
