//! Work under a lease, from grant to release.

use std::fmt;

use leasehold_core::Error;

use crate::lease::Lease;

/// Why `run_exclusive`, `run_shared` or `run` did not just give what the work gave (rule L3).
#[non_exhaustive]
pub enum RunError<T> {
    /// The lock was not granted; the work did not start.
    Acquire(Error),
    /// The lease was lost while the work ran.
    Lost {
        /// What the work gave; it may have been done beside another holder's.
        output: Option<T>,
        /// Which lease, and why.
        error: Error,
    },
}

impl<T> RunError<T> {
    /// The plain error.
    #[must_use]
    pub const fn error(&self) -> &Error {
        match self {
            Self::Acquire(error) | Self::Lost { error, .. } => error,
        }
    }

    /// What the work gave, when it ran.
    #[must_use]
    pub fn into_output(self) -> Option<T> {
        match self {
            Self::Lost { output, .. } => output,
            Self::Acquire(_) => None,
        }
    }
}

impl<T> From<Error> for RunError<T> {
    fn from(error: Error) -> Self {
        Self::Acquire(error)
    }
}

impl<T> From<RunError<T>> for Error {
    fn from(error: RunError<T>) -> Self {
        match error {
            RunError::Acquire(error) | RunError::Lost { error, .. } => error,
        }
    }
}

impl<T> fmt::Debug for RunError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if matches!(self, Self::Acquire(_)) { "Acquire" } else { "Lost" };
        f.debug_tuple(name).field(self.error()).finish()
    }
}

impl<T> fmt::Display for RunError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error().fmt(f)
    }
}

impl<T> std::error::Error for RunError<T> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        std::error::Error::source(self.error())
    }
}

/// Runs `work` under `lease` and releases. When the future is dropped, the work is dropped before
/// the lease (rule W7): it was made later.
pub(crate) async fn under<T>(
    lease: Lease,
    work: impl AsyncFnOnce(&Lease) -> T,
) -> Result<T, RunError<T>> {
    let output = work(&lease).await;
    match lease.release().await {
        Ok(true) => Ok(output),
        // The store does not answer, but the work ended within the lease: its result stands. The
        // drop of the lease hands the release to the manager, which repeats it.
        Err(_) if lease.is_held() => Ok(output),
        Ok(false) | Err(_) => Err(RunError::Lost { output: Some(output), error: lease.loss() }),
    }
}
