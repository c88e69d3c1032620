//! What the behaviour tests share: a manager on a manual clock, and futures polled by hand.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part")]

use std::{
    future::{Future, IntoFuture},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use leasehold::{Lease, LockManager, ManualClock, MemoryStore};

pub const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A manager in memory whose time stands still.
pub fn manual() -> (LockManager, ManualClock) {
    let clock = ManualClock::new();
    let store = MemoryStore::with_clock(Arc::new(clock.clone()));
    (LockManager::new(store.client()), clock)
}

/// Two managers on one store in memory.
pub fn two() -> (LockManager, LockManager, ManualClock) {
    let clock = ManualClock::new();
    let store = MemoryStore::with_clock(Arc::new(clock.clone()));
    (LockManager::new(store.client()), LockManager::new(store.client()), clock)
}

/// What a future gives that does not wait.
pub fn now<F: IntoFuture>(future: F) -> F::Output {
    let future = std::pin::pin!(future.into_future());
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("expected an answer at once"),
    }
}

/// A future that the test polls by hand, and that knows whether it was woken.
pub struct Probe<T> {
    future: Option<Pin<Box<dyn Future<Output = T>>>>,
    woken: Arc<Flag>,
}

#[derive(Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl<T> Probe<T> {
    pub fn new<F>(future: F) -> Self
    where
        F: IntoFuture<Output = T>,
        F::IntoFuture: 'static,
    {
        Self::boxed(Box::pin(future.into_future()))
    }

    fn boxed(future: Pin<Box<dyn Future<Output = T>>>) -> Self {
        Self { future: Some(future), woken: Arc::default() }
    }

    /// Polled once, and pending.
    pub fn pending<F>(future: F) -> Self
    where
        F: IntoFuture<Output = T>,
        F::IntoFuture: 'static,
    {
        let mut probe = Self::new(future);
        assert!(probe.poll().is_none(), "expected to wait");
        probe
    }

    pub fn poll(&mut self) -> Option<T> {
        self.woken.0.store(false, Ordering::SeqCst);
        let waker = Waker::from(Arc::clone(&self.woken));
        let future = self.future.as_mut().expect("polled after its end");
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => {
                self.future = None;
                Some(value)
            }
            Poll::Pending => None,
        }
    }

    pub fn is_woken(&self) -> bool {
        self.woken.0.load(Ordering::SeqCst)
    }

    /// Woken, and ready when polled.
    pub fn done(&mut self) -> T {
        assert!(self.is_woken(), "not woken");
        self.poll().expect("woken but not ready")
    }

    /// Not woken, or woken for nothing.
    pub fn waits(&mut self) -> bool {
        !self.is_woken() || self.poll().is_none()
    }
}

impl<E: std::fmt::Debug> Probe<Result<Lease, E>> {
    pub fn granted(&mut self) -> Lease {
        self.done().expect("granted")
    }
}
