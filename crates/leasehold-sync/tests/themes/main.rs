//! What the plain locks promise, by what could go wrong. Only the public API is used.
#![cfg(not(leasehold_loom))]

mod auto_traits;
mod bad_input;
mod blocking_threads;
mod cancellation;
mod capacity_changes;
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

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

pub(crate) const HOUR: Duration = Duration::from_secs(3600);

/// Counts how often it is woken.
#[derive(Default)]
pub(crate) struct Count(AtomicUsize);

impl Count {
    pub(crate) fn new() -> (Arc<Self>, Waker) {
        let count = Arc::new(Self::default());
        (Arc::clone(&count), Waker::from(count))
    }

    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

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

/// Waits until a condition of another thread holds.
pub(crate) fn until(what: &str, holds: impl Fn() -> bool) {
    let start = std::time::Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what} did not happen");
        std::thread::yield_now();
    }
}
