//! The answer to one request: at once, or later.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use crate::fault::Fault;

/// A store's answer. A store that answers inline hands over a ready value and allocates nothing; a
/// store behind a wire or a thread hands over a future.
///
/// # Cancel safety
/// Dropping a call that is on its way does not take the request back: it may or may not take
/// effect. Whoever drops an acquisition tells the store with
/// [`Backend::abandon`](crate::Backend::abandon).
pub struct Call<T>(Inner<T>);

enum Inner<T> {
    Ready(Option<Result<T, Fault>>),
    Pending(Pin<Box<dyn Future<Output = Result<T, Fault>> + Send>>),
}

impl<T> Call<T> {
    /// An answer that is there already.
    pub const fn ready(answer: Result<T, Fault>) -> Self {
        Self(Inner::Ready(Some(answer)))
    }

    /// An answer that comes later.
    pub fn pending(answer: impl Future<Output = Result<T, Fault>> + Send + 'static) -> Self {
        Self(Inner::Pending(Box::pin(answer)))
    }

    /// The answer when it is there already, else the call back.
    ///
    /// # Errors
    /// Gives the call back when the answer is not there yet.
    pub fn into_ready(self) -> Result<Result<T, Fault>, Self> {
        match self.0 {
            Inner::Ready(Some(answer)) => Ok(answer),
            other => Err(Self(other)),
        }
    }
}

impl<T> Unpin for Call<T> {}

impl<T> Future for Call<T> {
    type Output = Result<T, Fault>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Inner::Ready(answer) => Poll::Ready(answer.take().expect("polled after completion")),
            Inner::Pending(future) => future.as_mut().poll(cx),
        }
    }
}

impl<T> fmt::Debug for Call<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if matches!(self.0, Inner::Ready(_)) { "ready" } else { "pending" };
        f.debug_tuple("Call").field(&state).finish()
    }
}
