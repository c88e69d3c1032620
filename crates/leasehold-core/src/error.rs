//! What a caller is told when a lock does not do what was asked (rules E).

use std::{convert::Infallible, fmt, time::Duration};

use leasehold_sync::{CancelReason, DeadlockStep, Place};

use crate::{Capacity, HolderInfo, LockId, Share, fault::Fault};

/// A result with Leasehold's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, on which lock, during which operation, and what stood in the way.
#[derive(Clone)]
pub struct Error(Box<Inner>);

impl PartialEq for Error {
    /// The same failure of the same lock, whatever was in its way.
    fn eq(&self, other: &Self) -> bool {
        let key = |inner: &Inner| (inner.kind.clone(), inner.operation, inner.lock.clone());
        key(&self.0) == key(&other.0)
    }
}

impl Eq for Error {}

#[derive(Clone, Debug)]
struct Inner {
    kind: ErrorKind,
    operation: Operation,
    lock: Option<LockId>,
    share: Option<Share>,
    waited: Option<Duration>,
    obstacle: Option<Obstacle>,
    source: Option<Fault>,
    /// The error of a plain lock, which tells itself.
    plain: Option<leasehold_sync::Error>,
}

/// The kinds of [`Error`] (rule E1).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The lock was not granted within the time that the caller allowed.
    Timeout,
    /// The caller's own cancellation, or somebody's `cancel_all`.
    Cancelled {
        /// As given by who cancelled.
        reason: String,
    },
    /// The lock was destroyed; make a new handle.
    Destroyed,
    /// The lock is in use with another capacity.
    ConfigMismatch {
        /// The capacity in effect.
        registered: Capacity,
        /// The capacity that was asked for.
        requested: Capacity,
    },
    /// The caller's token is held or queued already.
    TokenInUse,
    /// An argument is outside of what the lock takes.
    InvalidArgument {
        /// What is wrong with it.
        message: String,
    },
    /// The queue has as many waiters as it may have.
    QueueFull {
        /// How many that is.
        limit: u64,
    },
    /// The service was not started yet.
    NotReady,
    /// The manager was shut down.
    ShutDown,
    /// The lease was lost: expired, destroyed or taken away by the loss of the store's data.
    Lost {
        /// What ended it.
        why: String,
    },
    /// The request reached the store after its time.
    Stale,
    /// The store failed; the source says how.
    Backend,
    /// An enclosing frame of this process holds the lock, so the request would wait for itself
    /// (rules R2 and R2b).
    Reentrant {
        /// Where the lock was taken.
        held: Place,
        /// Where it was asked for again.
        asked: Place,
    },
    /// The request on a plain lock closed a cycle of requests that wait for one another (rule R4).
    Deadlock {
        /// Who waits for what; the first is the request that closed the cycle.
        cycle: Vec<DeadlockStep>,
    },
    /// An operation on many locks did all it could; these failed (rule E3).
    Several {
        /// Each failure, with its lock.
        failures: Vec<Error>,
    },
}

/// What was being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operation {
    /// Opening a store.
    Connect,
    /// Making a handle.
    Open,
    /// Acquiring, with or without waiting.
    Acquire,
    /// Giving a grant back.
    Release,
    /// Changing a grant's TTL.
    Extend,
    /// Handing a grant over.
    HandOver,
    /// Holding a grant.
    Hold,
    /// Reading a lock's state.
    Inspect,
    /// Waiting for a lock to become free, without acquiring it.
    Watch,
    /// Rejecting waiters.
    Cancel,
    /// Destroying a lock.
    Destroy,
    /// Shutting a manager down.
    ShutDown,
}

/// What stood in the way of a request, where known (rule E2).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Obstacle {
    /// One of the holders and how long it has held.
    pub holder: Option<(HolderInfo, Duration)>,
    /// How many waiters are, or were, ahead.
    pub ahead: Option<u64>,
}

/// An argument that was refused when it was built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct InvalidArgument {
    message: String,
}

impl InvalidArgument {
    /// What is wrong.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }
}

impl Error {
    /// An error without a lock; add what is known with the other methods.
    #[must_use]
    pub fn new(kind: ErrorKind, operation: Operation) -> Self {
        Self(Box::new(Inner {
            kind,
            operation,
            lock: None,
            share: None,
            waited: None,
            obstacle: None,
            source: None,
            plain: None,
        }))
    }

    /// A store's fault. A closed client is told as `ShutDown`.
    #[must_use]
    pub fn from_fault(fault: Fault, operation: Operation) -> Self {
        let kind = match fault.kind() {
            crate::FaultKind::Closed => ErrorKind::ShutDown,
            _ => ErrorKind::Backend,
        };
        let mut error = Self::new(kind, operation);
        error.0.source = Some(fault);
        error
    }

    /// Names the lock.
    #[must_use]
    pub fn on(mut self, lock: &LockId) -> Self {
        self.0.lock = Some(lock.clone());
        self
    }

    /// Says what was asked.
    #[must_use]
    pub fn asking(mut self, share: Share) -> Self {
        self.0.share = Some(share);
        self
    }

    /// Says how long it was waited for.
    #[must_use]
    pub fn after(mut self, waited: Duration) -> Self {
        self.0.waited = Some(waited);
        self
    }

    /// Says what stood in the way.
    #[must_use]
    pub fn behind(mut self, obstacle: Option<Obstacle>) -> Self {
        self.0.obstacle = obstacle;
        self
    }

    /// The kind.
    #[must_use]
    pub const fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// The lock, when there is one.
    #[must_use]
    pub const fn lock(&self) -> Option<&LockId> {
        self.0.lock.as_ref()
    }

    /// What was being done.
    #[must_use]
    pub const fn operation(&self) -> Operation {
        self.0.operation
    }

    /// What stood in the way, where known.
    #[must_use]
    pub const fn obstacle(&self) -> Option<&Obstacle> {
        self.0.obstacle.as_ref()
    }

    /// The store's fault, when the kind is `Backend` or `ShutDown`.
    #[must_use]
    pub const fn fault(&self) -> Option<&Fault> {
        self.0.source.as_ref()
    }

    /// Not granted in time.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        self.0.kind == ErrorKind::Timeout
    }

    /// Cancelled by the caller or by `cancel_all`.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        matches!(self.0.kind, ErrorKind::Cancelled { .. })
    }

    /// An enclosing frame holds the lock.
    #[must_use]
    pub fn is_reentrant(&self) -> bool {
        matches!(self.0.kind, ErrorKind::Reentrant { .. })
    }

    /// The request closed a cycle.
    #[must_use]
    pub fn is_deadlock(&self) -> bool {
        matches!(self.0.kind, ErrorKind::Deadlock { .. })
    }

    /// Whether the same call may succeed later without anything else being changed.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self.0.kind {
            ErrorKind::Timeout | ErrorKind::QueueFull { .. } | ErrorKind::Stale => true,
            ErrorKind::Backend => self.0.source.as_ref().is_some_and(Fault::is_retryable),
            _ => false,
        }
    }
}

impl From<InvalidArgument> for Error {
    fn from(argument: InvalidArgument) -> Self {
        Self::new(ErrorKind::InvalidArgument { message: argument.message }, Operation::Open)
    }
}

impl From<leasehold_sync::Error> for Error {
    /// So that `?` takes the errors of plain locks too. The message stays theirs.
    fn from(plain: leasehold_sync::Error) -> Self {
        use leasehold_sync::ErrorKind as Plain;
        let kind = match plain.kind().clone() {
            Plain::Timeout => ErrorKind::Timeout,
            Plain::Cancelled { reason } => ErrorKind::Cancelled { reason },
            Plain::InvalidArgument { message } => ErrorKind::InvalidArgument { message },
            Plain::Reentrant { held, asked } => ErrorKind::Reentrant { held, asked },
            Plain::Deadlock { cycle } => ErrorKind::Deadlock { cycle },
            // A kind that this crate does not know yet; the message tells.
            _ => ErrorKind::InvalidArgument { message: plain.to_string() },
        };
        let mut error = Self::new(kind, Operation::Acquire);
        error.0.waited = plain.waited();
        error.0.plain = Some(plain);
        error
    }
}

impl CancelReason for Error {
    fn into_reason(self) -> String {
        self.to_string()
    }
}

impl From<Infallible> for Error {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

impl fmt::Debug for Error {
    /// The message, and what caused the store's fault: this is what `main` prints of an error it
    /// returns. All fields stand in `{:#?}`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.alternate() {
            return self.0.fmt(f);
        }
        write!(f, "{self}")?;
        let mut cause = self.0.source.as_ref().and_then(std::error::Error::source);
        while let Some(source) = cause {
            write!(f, ": {source}")?;
            cause = source.source();
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_ref().map(|source| source as _)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { kind, operation, lock, share, waited, obstacle, source, plain } = &*self.0;
        if let Some(plain) = plain {
            return plain.fmt(f);
        }
        if let Some(lock) = lock {
            write!(f, "{lock}: ")?;
        }
        match kind {
            ErrorKind::Timeout => match waited {
                Some(waited) if !waited.is_zero() => write!(f, "not granted within {waited:?}")?,
                _ => f.write_str("not free")?,
            },
            ErrorKind::Cancelled { reason } => write!(f, "cancelled: {reason}")?,
            ErrorKind::Destroyed => f.write_str("the lock was destroyed")?,
            ErrorKind::ConfigMismatch { registered, requested } => write!(
                f,
                "in use with a capacity of {registered}, asked for with a capacity of {requested}"
            )?,
            ErrorKind::TokenInUse => f.write_str("the token is held or queued already")?,
            ErrorKind::InvalidArgument { message } => f.write_str(message)?,
            ErrorKind::QueueFull { limit } => write!(f, "{limit} waiters are queued already")?,
            ErrorKind::NotReady => f.write_str("the service was not started yet")?,
            ErrorKind::ShutDown => f.write_str("the manager was shut down")?,
            ErrorKind::Lost { why } => write!(f, "the lease was lost: {why}")?,
            ErrorKind::Stale => f.write_str("the request reached the store too late")?,
            ErrorKind::Backend => match source {
                Some(fault) => write!(f, "{operation} failed: {fault}")?,
                None => write!(f, "{operation} failed")?,
            },
            ErrorKind::Reentrant { held, asked } => {
                write!(f, "asked for at {asked} while it is held since {held}")?;
            }
            ErrorKind::Deadlock { cycle } => {
                write!(f, "deadlock of {} requests", cycle.len())?;
            }
            ErrorKind::Several { failures } => {
                write!(f, "{operation} failed for {} locks", failures.len())?;
                for failure in failures {
                    write!(f, "; {failure}")?;
                }
            }
        }
        match share {
            Some(Share::Permits(weight)) if weight.get() > 1 => {
                write!(f, " (asked for {weight} permits)")?;
            }
            _ => {}
        }
        match obstacle {
            Some(obstacle) => write!(f, "{obstacle}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Obstacle {
    /// Begins with a semicolon, to stand at the end of a sentence; empty when nothing is known.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((holder, held_for)) = &self.holder {
            write!(f, "; held by {holder} for {:.1?}", held_for)?;
        }
        match self.ahead {
            Some(0) | None => Ok(()),
            Some(ahead) => write!(f, "; {ahead} waiting ahead"),
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect => "connecting",
            Self::Open => "opening",
            Self::Acquire => "acquiring",
            Self::Release => "releasing",
            Self::Extend => "extending",
            Self::HandOver => "handing over",
            Self::Hold => "holding",
            Self::Inspect => "inspecting",
            Self::Watch => "watching",
            Self::Cancel => "cancelling",
            Self::Destroy => "destroying",
            Self::ShutDown => "shutting down",
        })
    }
}
