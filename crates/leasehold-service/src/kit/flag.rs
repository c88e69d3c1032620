//! Something that is said once, to all who wait for it.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{Mutex, PoisonError},
    task::{Context, Poll},
};

use futures_channel::oneshot::{Receiver, Sender, channel};
use futures_util::{FutureExt, future::Shared};

/// Set once; dropping it unset sets it as well.
pub(crate) struct Flag {
    setter: Mutex<Option<Sender<()>>>,
    set: Shared<Receiver<()>>,
}

impl Flag {
    pub(crate) fn new() -> Self {
        let (setter, set) = channel();
        Self { setter: Mutex::new(Some(setter)), set: set.shared() }
    }

    pub(crate) fn set(&self) {
        let setter = self.setter.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(setter) = setter {
            // Nobody may be waiting.
            let _ = setter.send(());
        }
    }

    pub(crate) fn is_set(&self) -> bool {
        self.setter.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    pub(crate) fn wait(&self) -> Interrupt {
        Interrupt(self.set.clone())
    }
}

/// Completes when nobody wants the result of a request any more, or when what it belongs to ends.
#[derive(Clone)]
pub struct Interrupt(Shared<Receiver<()>>);

impl Interrupt {
    /// One that never comes; for tests of adapters.
    #[must_use]
    pub fn never() -> Self {
        let (setter, set) = channel();
        std::mem::forget(setter);
        Self(set.shared())
    }
}

impl Future for Interrupt {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // Polled again after it completed, it is still complete.
        if self.0.peek().is_some() {
            return Poll::Ready(());
        }
        self.0.poll_unpin(cx).map(drop)
    }
}

impl fmt::Debug for Interrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interrupt").field("set", &self.0.peek().is_some()).finish()
    }
}
