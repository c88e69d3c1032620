//! Frames: reentrancy and deadlocks are told, and nothing else is (rules R). Only the public API
//! is used.
#![cfg(not(leasehold_loom))]

mod deadlocks;
mod dropped;
mod inherited;
mod keyed;
mod reentrancy;
mod shared_reads;
mod siblings;
mod unchecked;

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    task::{Context, Poll, Waker},
};

use leasehold_sync::{DeadlockStep, Error, ErrorKind};

/// Polls once, by hand, with a waker that does nothing.
pub(crate) fn poll<F: Future + ?Sized>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Polls what must be ready.
pub(crate) fn ready<F: Future>(future: F) -> F::Output {
    match poll(std::pin::pin!(future)) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("not ready at once"),
    }
}

/// Polls what must wait.
pub(crate) fn waits<F: Future + ?Sized>(future: Pin<&mut F>) {
    assert!(poll(future).is_pending(), "ready already");
}

/// Polls what must be ready.
pub(crate) fn done<F: Future + ?Sized>(future: Pin<&mut F>) -> F::Output {
    match poll(future) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("not ready yet"),
    }
}

/// Lets others go once.
pub(crate) async fn pause() {
    let mut paused = false;
    poll_fn(|_| if std::mem::replace(&mut paused, true) { Poll::Ready(()) } else { Poll::Pending })
        .await;
}

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
