//! Waiting for futures and conditions on a plain thread, never for ever.

use std::{
    future::Future,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
    time::{Duration, Instant},
};

use leasehold_core::{Call, Fault};

/// How long a store may take to answer on a busy machine.
const ANSWER_BOUND: Duration = Duration::from_secs(30);

/// How often a condition that nothing announces is looked at.
const LOOK: Duration = Duration::from_millis(2);

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// What the future gives, or `None` when it took longer. Real time: a manual clock stands still.
pub(crate) fn block_on<T>(future: impl Future<Output = T>, within: Duration) -> Option<T> {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    let start = Instant::now();
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return Some(value);
        }
        match within.checked_sub(start.elapsed()) {
            Some(left) if !left.is_zero() => thread::park_timeout(left),
            _ => return None,
        }
        // One more poll might find what nobody was woken for.
        if start.elapsed() >= within {
            return None;
        }
    }
}

/// The store's answer, which may be a fault.
#[track_caller]
pub(crate) fn outcome<T>(call: Call<T>) -> Result<T, Fault> {
    match block_on(call, ANSWER_BOUND) {
        Some(outcome) => outcome,
        None => panic!("the store has not answered within {ANSWER_BOUND:?}"),
    }
}

/// The store's answer.
#[track_caller]
pub(crate) fn answer<T>(call: Call<T>) -> T {
    match outcome(call) {
        Ok(answer) => answer,
        Err(fault) => panic!("the store failed: {fault} ({:?})", fault.kind()),
    }
}

/// Looks until `condition` holds; for what a store does in its own time and announces to nobody.
#[track_caller]
pub(crate) fn eventually(what: &str, within: Duration, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < within, "not within {within:?}: {what}");
        // sleep: between two looks at a condition with a deadline.
        thread::sleep(LOOK);
    }
}
