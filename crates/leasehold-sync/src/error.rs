//! What a plain lock can refuse (rules E).

use std::{error, fmt, time::Duration};

/// Why a lock was not granted, or not made. One word; plain locks can fail only so.
pub struct Error(Box<Inner>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Inner {
    kind: ErrorKind,
    lock: LockKind,
    /// How long it could wait.
    waited: Option<Duration>,
    /// How many others waited when it gave up.
    queued: u32,
    weight: u32,
}

/// The kinds of [`Error`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Not granted within the time that the caller allowed.
    Timeout,
    /// The caller's own cancellation.
    Cancelled {
        /// What the cancelling future gave.
        reason: String,
    },
    /// An argument that the lock can never grant, or never have.
    InvalidArgument {
        /// What is wrong with it.
        message: String,
    },
}

/// What kind of lock an error is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LockKind {
    /// A mutex.
    Mutex,
    /// A semaphore.
    Semaphore,
    /// A read-write lock, asked for a read.
    Read,
    /// A read-write lock, asked for a write.
    Write,
    /// A read-write lock, asked for an upgradable read.
    UpgradableRead,
    /// A read-write lock, asked to make the upgradable reader the writer.
    Upgrade,
}

/// A capacity or a number of readers that no lock can have (rule Q5).
///
/// It is `Copy` so that locks can be made in constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CapacityError {
    /// A semaphore without permits: nobody could ever get in.
    NoPermits,
    /// A read-write lock for no readers.
    NoReaders,
    /// More than 2^31 − 1.
    AboveMax {
        /// What was asked for.
        capacity: u32,
    },
}

impl Error {
    fn new(kind: ErrorKind, lock: LockKind) -> Self {
        Self(Box::new(Inner { kind, lock, waited: None, queued: 0, weight: 1 }))
    }

    pub(crate) fn timeout(lock: LockKind, waited: Duration) -> Self {
        let mut error = Self::new(ErrorKind::Timeout, lock);
        error.0.waited = Some(waited);
        error
    }

    pub(crate) fn cancelled(lock: LockKind, reason: String) -> Self {
        Self::new(ErrorKind::Cancelled { reason }, lock)
    }

    pub(crate) fn invalid(lock: LockKind, message: String) -> Self {
        Self::new(ErrorKind::InvalidArgument { message }, lock)
    }

    /// A weight of 0, or one above the capacity.
    pub(crate) fn weight(lock: LockKind, weight: u32, capacity: u32) -> Self {
        if weight == 0 {
            return Self::invalid(lock, "a weight must be greater than 0".into());
        }
        Self::invalid(lock, format!("a weight of {weight} is above the capacity of {capacity}"))
    }

    #[must_use]
    pub(crate) fn asking(mut self, weight: u32) -> Self {
        self.0.weight = weight;
        self
    }

    #[must_use]
    pub(crate) fn among(mut self, queued: u32) -> Self {
        self.0.queued = queued;
        self
    }

    /// The kind.
    #[must_use]
    pub const fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// The lock.
    #[must_use]
    pub const fn lock_kind(&self) -> LockKind {
        self.0.lock
    }

    /// Not granted in time.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        self.0.kind == ErrorKind::Timeout
    }

    /// Cancelled by the caller.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        matches!(self.0.kind, ErrorKind::Cancelled { .. })
    }

    /// Whether the same call may succeed later.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        self.is_timeout()
    }
}

impl Clone for Error {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl PartialEq for Error {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Error {}

impl From<CapacityError> for Error {
    fn from(capacity: CapacityError) -> Self {
        let lock = match capacity {
            CapacityError::NoReaders => LockKind::Read,
            _ => LockKind::Semaphore,
        };
        Self::invalid(lock, capacity.to_string())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { kind, lock, waited, queued, weight } = &*self.0;
        write!(f, "{lock}: ")?;
        match kind {
            ErrorKind::Timeout => match waited {
                Some(waited) if !waited.is_zero() => write!(f, "not granted within {waited:?}")?,
                _ => f.write_str("not free")?,
            },
            ErrorKind::Cancelled { reason } => write!(f, "cancelled: {reason}")?,
            ErrorKind::InvalidArgument { message } => f.write_str(message)?,
        }
        if *weight > 1 && *lock == LockKind::Semaphore {
            write!(f, " (asked for {weight} permits)")?;
        }
        if *queued > 0 { write!(f, "; {queued} waiting") } else { Ok(()) }
    }
}

impl error::Error for Error {}

impl fmt::Display for LockKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mutex => "mutex",
            Self::Semaphore => "semaphore",
            Self::Read => "read-write lock (read)",
            Self::Write => "read-write lock (write)",
            Self::UpgradableRead => "read-write lock (upgradable read)",
            Self::Upgrade => "read-write lock (upgrade)",
        })
    }
}

impl fmt::Display for CapacityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPermits => f.write_str("permits must be greater than 0"),
            Self::NoReaders => f.write_str("max readers must be greater than 0"),
            Self::AboveMax { capacity } => {
                write!(f, "a capacity of {capacity} is above the largest, 2147483647")
            }
        }
    }
}

impl error::Error for CapacityError {}
