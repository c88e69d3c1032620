//! The answer that the client's thread gives to a call.

use std::{
    future::poll_fn,
    sync::{Arc, Mutex, PoisonError},
    task::{Poll, Waker},
};

use leasehold_core::{Call, Fault, FaultKind};

/// The thread's end. Dropped without an answer, it answers that the client is closed.
#[derive(Debug)]
pub(crate) struct Reply<T>(Option<Arc<Mutex<Slot<T>>>>);

#[derive(Debug)]
struct Slot<T> {
    answer: Option<Result<T, Fault>>,
    waker: Option<Waker>,
}

/// A call and the end that answers it.
pub(crate) fn later<T: Send + 'static>() -> (Reply<T>, Call<T>) {
    let slot = Arc::new(Mutex::new(Slot { answer: None, waker: None }));
    let reply = Reply(Some(Arc::clone(&slot)));
    let call = Call::pending(poll_fn(move |cx| {
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        match slot.answer.take() {
            Some(answer) => Poll::Ready(answer),
            None => {
                slot.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }));
    (reply, call)
}

impl<T> Reply<T> {
    pub(crate) fn send(mut self, answer: Result<T, Fault>) {
        self.put(answer);
    }

    fn put(&mut self, answer: Result<T, Fault>) {
        let Some(slot) = self.0.take() else { return };
        let waker = {
            let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
            slot.answer = Some(answer);
            slot.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<T> Drop for Reply<T> {
    fn drop(&mut self) {
        self.put(Err(Fault::new(FaultKind::Closed, "the client was closed")));
    }
}
