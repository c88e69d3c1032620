//! One operation that several callers ask for at once and that is done once.

use std::sync::{Mutex, PoisonError};

use futures_util::{FutureExt, future::Shared};
use leasehold::Result;

use crate::adapter::BoxFuture;

type Run<T> = Shared<BoxFuture<'static, Result<T>>>;

/// Concurrent calls share one run, whoever drives it; a success is final; after a failure the next
/// call runs again (acceptance N29, N34). A caller that leaves does not end the run: the next one
/// goes on with it.
pub(crate) struct SharedOp<T>(Mutex<Option<Run<T>>>);

impl<T> Default for SharedOp<T> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<T: Clone + Send + Sync + 'static> SharedOp<T> {
    /// Joins the run there is, or begins one. With `retry`, one that has failed is begun again.
    pub(crate) fn run(
        &self,
        retry: bool,
        begin: impl FnOnce() -> BoxFuture<'static, Result<T>>,
    ) -> Run<T> {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(run) = &*slot
            && !(retry && matches!(run.peek(), Some(Err(_))))
        {
            return run.clone();
        }
        slot.insert(begin().shared()).clone()
    }

    /// The run there is.
    pub(crate) fn current(&self) -> Option<Run<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How the last run ended.
    pub(crate) fn outcome(&self) -> Option<Result<T>> {
        self.current()?.peek().cloned()
    }
}
