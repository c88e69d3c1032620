//! The hint that a waiter should look (rule L5): it carries nothing and may come late or twice.

use std::{
    fmt,
    future::poll_fn,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, Waker},
};

/// A flag with a waker. The store's side sets it, the waiter's side polls it; a set flag stays set
/// until it is seen, so no hint is lost between two polls.
#[derive(Clone, Default)]
pub struct Wake(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    set: bool,
    waker: Option<Waker>,
}

impl Wake {
    /// A flag that is not set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the flag and wakes the waiter. Call it outside of your own locks: the waker may run
    /// anything.
    pub fn notify(&self) {
        let waker = {
            let mut state = self.lock();
            state.set = true;
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Ready once when the flag was set, and clears it.
    pub fn poll_notified(&self, cx: &Context<'_>) -> Poll<()> {
        let before = {
            let mut state = self.lock();
            if std::mem::take(&mut state.set) {
                return Poll::Ready(());
            }
            match &state.waker {
                Some(waker) if waker.will_wake(cx.waker()) => None,
                _ => state.waker.replace(cx.waker().clone()),
            }
        };
        // After the lock: its drop may run anything, and that may notify this very flag.
        drop(before);
        Poll::Pending
    }

    /// Waits until the flag is set, and clears it.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the flag as it is.
    pub async fn notified(&self) {
        poll_fn(|cx| self.poll_notified(cx)).await;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Wake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wake").field("set", &self.lock().set).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A task that is dropped with its last waker.
    struct NotifiesOnDrop(Wake);

    impl std::task::Wake for NotifiesOnDrop {
        fn wake(self: Arc<Self>) {}
    }

    impl Drop for NotifiesOnDrop {
        fn drop(&mut self) {
            self.0.notify();
        }
    }

    #[test]
    fn a_waker_whose_drop_notifies_does_not_lock_twice() {
        let wake = Wake::new();
        let first = Waker::from(Arc::new(NotifiesOnDrop(wake.clone())));
        assert!(wake.poll_notified(&Context::from_waker(&first)).is_pending());
        drop(first);
        assert!(wake.poll_notified(&Context::from_waker(Waker::noop())).is_pending());
        assert!(wake.poll_notified(&Context::from_waker(Waker::noop())).is_ready());
    }
}
