//! What a cancellation gives as its reason (rule W4).

use std::convert::Infallible;

/// The output of what is given to `cancel_on`: it becomes the reason in the error.
#[diagnostic::on_unimplemented(
    note = "any future can cancel: wrap it as `async {{ future.await; \"the reason\" }}`"
)]
pub trait CancelReason {
    /// The reason, for the error's message.
    fn into_reason(self) -> String;
}

impl CancelReason for () {
    fn into_reason(self) -> String {
        "by the caller".into()
    }
}

impl CancelReason for String {
    fn into_reason(self) -> String {
        self
    }
}

impl CancelReason for &str {
    fn into_reason(self) -> String {
        self.into()
    }
}

impl CancelReason for Infallible {
    fn into_reason(self) -> String {
        match self {}
    }
}

impl CancelReason for std::io::Error {
    fn into_reason(self) -> String {
        self.to_string()
    }
}

impl CancelReason for Box<dyn std::error::Error + Send + Sync> {
    fn into_reason(self) -> String {
        self.to_string()
    }
}

/// A signal handler's future gives a result; either side is a reason to stop.
impl<T: CancelReason, E: CancelReason> CancelReason for Result<T, E> {
    fn into_reason(self) -> String {
        match self {
            Ok(value) => value.into_reason(),
            Err(error) => error.into_reason(),
        }
    }
}
