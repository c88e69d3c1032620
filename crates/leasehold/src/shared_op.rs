//! One operation that several callers ask for at once and that is done once.

use std::{
    future::poll_fn,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Poll, Waker},
};

/// Concurrent calls share one result; a success is final; after a failure the next call tries again
/// (rules T6, N6).
///
/// Whoever calls first drives the operation. When that future is dropped half-way, one of the
/// callers who wait for it starts over, so the operation must bear a repeat.
#[derive(Debug)]
pub(crate) struct SharedOp<T, E>(Mutex<State<T, E>>);

#[derive(Debug)]
struct State<T, E> {
    done: Option<T>,
    running: bool,
    /// Counts the runs that ended, and keeps the failure of the last.
    ended: u64,
    failure: Option<E>,
    waiting: Vec<Waker>,
}

impl<T, E> Default for SharedOp<T, E> {
    fn default() -> Self {
        Self(Mutex::new(State {
            done: None,
            running: false,
            ended: 0,
            failure: None,
            waiting: Vec::new(),
        }))
    }
}

impl<T: Clone, E: Clone> SharedOp<T, E> {
    /// The result, once there was a success.
    pub(crate) fn done(&self) -> Option<T> {
        self.lock().done.clone()
    }

    pub(crate) async fn run(&self, operation: impl AsyncFnOnce() -> Result<T, E>) -> Result<T, E> {
        let mut joined = None;
        let outcome = poll_fn(|cx| {
            let mut state = self.lock();
            if let Some(done) = &state.done {
                return Poll::Ready(Some(Ok(done.clone())));
            }
            if let Some(run) = joined
                && state.ended > run
                && let Some(failure) = &state.failure
            {
                return Poll::Ready(Some(Err(failure.clone())));
            }
            if state.running {
                joined.get_or_insert(state.ended);
                if !state.waiting.iter().any(|waiting| waiting.will_wake(cx.waker())) {
                    state.waiting.push(cx.waker().clone());
                }
                return Poll::Pending;
            }
            state.running = true;
            state.failure = None;
            Poll::Ready(None)
        })
        .await;
        if let Some(outcome) = outcome {
            return outcome;
        }
        let driving = Driving(self);
        let outcome = operation().await;
        driving.end(&outcome);
        outcome
    }

    fn lock(&self) -> MutexGuard<'_, State<T, E>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets the next caller drive when this one is dropped.
struct Driving<'a, T: Clone, E: Clone>(&'a SharedOp<T, E>);

impl<T: Clone, E: Clone> Driving<'_, T, E> {
    fn end(self, outcome: &Result<T, E>) {
        let mut state = self.0.lock();
        state.ended += 1;
        match outcome {
            Ok(value) => {
                state.done.get_or_insert_with(|| value.clone());
            }
            Err(error) => state.failure = Some(error.clone()),
        }
        wake_the_others(state);
        std::mem::forget(self);
    }
}

impl<T: Clone, E: Clone> Drop for Driving<'_, T, E> {
    fn drop(&mut self) {
        wake_the_others(self.0.lock());
    }
}

fn wake_the_others<T, E>(mut state: MutexGuard<'_, State<T, E>>) {
    state.running = false;
    let waiting = std::mem::take(&mut state.waiting);
    drop(state);
    waiting.into_iter().for_each(Waker::wake);
}

#[cfg(test)]
mod tests {
    use std::{
        future::Future,
        pin::pin,
        sync::atomic::{AtomicU32, Ordering},
        task::Context,
    };

    use super::*;

    fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn concurrent_calls_share_a_failure_and_the_next_tries_again() {
        let op = SharedOp::<u32, &str>::default();
        let gate = leasehold_core::Wake::new();
        let runs = AtomicU32::new(0);
        let attempt = async || {
            runs.fetch_add(1, Ordering::Relaxed);
            gate.notified().await;
            Err("down")
        };
        let mut first = pin!(op.run(attempt));
        let mut second = pin!(op.run(async || Ok(2)));
        assert!(poll(first.as_mut()).is_pending());
        assert!(poll(second.as_mut()).is_pending());
        gate.notify();
        assert_eq!(poll(first.as_mut()), Poll::Ready(Err("down")));
        assert_eq!(poll(second.as_mut()), Poll::Ready(Err("down")));
        assert_eq!(runs.load(Ordering::Relaxed), 1);
        assert_eq!(pollster::block_on(op.run(async || Ok(3))), Ok(3));
        assert_eq!(pollster::block_on(op.run(async || Ok(4))), Ok(3));
    }

    #[test]
    fn a_dropped_driver_hands_over() {
        let op = SharedOp::<u32, &str>::default();
        let mut second = pin!(op.run(async || Ok(2)));
        {
            let mut first = pin!(op.run(async || std::future::pending().await));
            assert!(poll(first.as_mut()).is_pending());
            assert!(poll(second.as_mut()).is_pending());
        }
        assert_eq!(poll(second.as_mut()), Poll::Ready(Ok(2)));
    }
}
