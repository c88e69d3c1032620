//! An adapter that panics fails like any other.

use std::{any::Any, panic::AssertUnwindSafe};

use futures_util::FutureExt;
use leasehold::{Error, Fault, FaultKind, Operation, Result};

/// Awaits what an adapter does; a panic in there is an error of that one call (rule S2, S7): callers
/// that share it, and what else there is to end, are not to go down with it.
pub(crate) async fn guarded<T>(
    operation: Operation,
    of_adapter: impl Future<Output = Result<T>>,
) -> Result<T> {
    // What the adapter left in disorder is its own.
    AssertUnwindSafe(of_adapter).catch_unwind().await.unwrap_or_else(|panic| {
        let message = format!("the adapter panicked: {}", said(&*panic));
        Err(Error::from_fault(Fault::new(FaultKind::Unsupported, message), operation))
    })
}

fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no text")
}
