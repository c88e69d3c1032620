//! Work under a lease, from grant to release.

use std::{
    fmt,
    sync::{Arc, Weak},
};

use leasehold_core::{Error, ErrorKind, LockKind, Operation, Result, Share};
use leasehold_sync::{
    Place,
    frames::{Access, Ask, Hold, in_frame},
};

use crate::{entry::Entry, lease::Lease};

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

/// A read within a read: the lease of the enclosing frame, for one guard more.
pub(crate) struct Nested {
    hold: Hold,
    lease: Arc<Lease>,
}

/// What a checked request asks for (rule R2b); `None` of a semaphore, which is not checked.
pub(crate) fn ask(entry: &Arc<Entry>, share: Share, place: Place) -> Option<Ask> {
    let (access, kind) = match (entry.id.kind(), share) {
        (LockKind::Mutex, _) => (Access::Exclusive, leasehold_sync::LockKind::Mutex),
        (LockKind::RwLock, Share::Whole) => (Access::Exclusive, leasehold_sync::LockKind::Write),
        (LockKind::RwLock, _) => (Access::Shared, leasehold_sync::LockKind::Read),
        _ => return None,
    };
    // All handles of the lock share the entry, and a lease keeps it.
    Some(Ask::leased(Arc::as_ptr(entry).addr(), access, kind, place))
}

/// Rule R2b: refuses what an enclosing frame holds, and shares what it reads.
pub(crate) fn nested(entry: &Entry, ask: Option<&Ask>) -> Result<Option<Nested>> {
    let Some(ask) = ask else { return Ok(None) };
    let Some(share) = ask.check().map_err(|plain| refused(entry, &plain))? else {
        return Ok(None);
    };
    let lease = share.lease().and_then(|lease| lease.downcast::<Lease>().ok());
    let hold = Hold::sharing(ask, share);
    Ok(lease.map(|lease| Nested { hold, lease }))
}

fn refused(entry: &Entry, plain: &leasehold_sync::Error) -> Error {
    let kind = match *plain.kind() {
        leasehold_sync::ErrorKind::Reentrant { held, asked } => {
            ErrorKind::Reentrant { held, asked }
        }
        ref other => unreachable!("a check tells of reentrancy alone, not {other:?}"),
    };
    Error::new(kind, Operation::Acquire).on(&entry.id)
}

/// Runs `work` under `lease` and releases. When the future is dropped, the work is dropped before
/// the lease (rule W7): it was made later.
pub(crate) async fn under<T>(
    ask: Option<Ask>,
    lease: Lease,
    work: impl AsyncFnOnce(&Lease) -> T,
) -> Result<T, RunError<T>> {
    let Some(ask) = ask else {
        let output = work(&lease).await;
        return released(&lease, output).await;
    };
    let lease = Arc::new(lease);
    let weak: Weak<Lease> = Arc::downgrade(&lease);
    Nested { hold: Hold::leasing(&ask, weak), lease }.run(work).await
}

impl Nested {
    /// Runs `work` in a frame that holds the lease, and releases it unless others use it still.
    pub(crate) async fn run<T>(
        self,
        work: impl AsyncFnOnce(&Lease) -> T,
    ) -> Result<T, RunError<T>> {
        // In this order: the hold ends before the lease does.
        let Self { lease, mut hold } = self;
        let output = in_frame(&hold, work(&lease)).await;
        if hold.end() {
            return released(&lease, output).await;
        }
        if lease.is_held() { Ok(output) } else { Err(lost(&lease, output)) }
    }
}

async fn released<T>(lease: &Lease, output: T) -> Result<T, RunError<T>> {
    match lease.release().await {
        Ok(true) => Ok(output),
        // The store does not answer, but the work ended within the lease: its result stands. The
        // drop of the lease hands the release to the manager, which repeats it.
        Err(_) if lease.is_held() => Ok(output),
        Ok(false) | Err(_) => Err(lost(lease, output)),
    }
}

fn lost<T>(lease: &Lease, output: T) -> RunError<T> {
    RunError::Lost { output: Some(output), error: lease.loss() }
}
