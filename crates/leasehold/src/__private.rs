//! What `#[exclusive]` and `#[shared]` expand to, beside the public API. Not for hands.

use leasehold_core::Error;

pub use leasehold_sync::{
    object_exclusive as object_run_exclusive, object_shared as object_run_shared,
};

/// What a method under an attribute returns.
#[diagnostic::on_unimplemented(
    message = "a method under `#[exclusive]` or `#[shared]` returns a `Result`, not `{Self}`",
    label = "the lock may be refused, and then there is no `{Self}`",
    note = "return a `Result` whose error takes `leasehold::Error` by `From`"
)]
pub trait Outcome {
    /// The lock was not granted, or lost.
    fn refused(error: Error) -> Self;
}

impl<T, E: From<Error>> Outcome for Result<T, E> {
    fn refused(error: Error) -> Self {
        Err(E::from(error))
    }
}

/// The error of a plain lock or of a lease, as what the method returns.
pub fn refused<R: Outcome>(error: impl Into<Error>) -> R {
    R::refused(error.into())
}
