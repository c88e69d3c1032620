//! What a plain lock can refuse (rules E).

use std::{error, fmt, panic::Location, time::Duration};

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
    /// An enclosing frame holds the lock, so the request would wait for itself (rule R2).
    Reentrant {
        /// Where the lock was taken.
        held: Place,
        /// Where it was asked for again.
        asked: Place,
    },
    /// The request closed a cycle of requests that wait for one another (rule R4).
    Deadlock {
        /// Who waits for what. The first is the request that closed the cycle; each waits for the
        /// next one, and the last for the first.
        cycle: Vec<DeadlockStep>,
    },
}

/// A place in the source.
pub type Place = &'static Location<'static>;

/// One lock of a deadlock: who waits for it, and what is in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeadlockStep {
    /// What was asked for.
    pub lock: LockKind,
    /// The type of the data that it guards, or of its keys.
    pub of: &'static str,
    /// Where the outermost frame of the task that waits was opened.
    pub task: Place,
    /// Where that task waits.
    pub waits: Place,
    /// What is in its way: a grant, or a request queued before it, of the task of the next step.
    pub blocked_by: Blocker,
    /// Where that grant was asked for, or where that request waits.
    pub taken: Place,
}

/// What a request of a deadlock waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Blocker {
    /// Somebody holds the lock.
    Holder,
    /// Somebody is queued before it.
    Earlier,
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
    /// A keyed lock, asked for a read of a key.
    KeyedRead,
    /// A keyed lock, asked for a write of a key.
    KeyedWrite,
    /// A keyed lock, asked for a read of the whole set.
    KeyedReadAll,
    /// A keyed lock, asked for a write of the whole set.
    KeyedWriteAll,
    /// The lock of an object, asked for a read.
    ObjectRead,
    /// The lock of an object, asked for a write.
    ObjectWrite,
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

    pub(crate) fn reentrant(lock: LockKind, held: Place, asked: Place) -> Self {
        Self::new(ErrorKind::Reentrant { held, asked }, lock)
    }

    pub(crate) fn deadlock(lock: LockKind, cycle: Vec<DeadlockStep>) -> Self {
        Self::new(ErrorKind::Deadlock { cycle }, lock)
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

    /// The lock is held by an enclosing frame.
    #[must_use]
    pub fn is_reentrant(&self) -> bool {
        matches!(self.0.kind, ErrorKind::Reentrant { .. })
    }

    /// The request closed a cycle.
    #[must_use]
    pub fn is_deadlock(&self) -> bool {
        matches!(self.0.kind, ErrorKind::Deadlock { .. })
    }

    /// How long the caller let it wait at most, if it gave up because of that.
    #[must_use]
    pub const fn waited(&self) -> Option<Duration> {
        self.0.waited
    }

    /// Whether the same call may succeed later. Not a deadlock: it must let go of what it holds.
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
            ErrorKind::Reentrant { held, asked } => {
                write!(f, "asked for at {asked} while it is held since {held}")?;
            }
            ErrorKind::Deadlock { cycle } => {
                f.write_str("deadlock")?;
                for (at, step) in cycle.iter().enumerate() {
                    f.write_str(if at == 0 { ": " } else { "; " })?;
                    step.fmt(f)?;
                }
            }
        }
        if *weight > 1 && *lock == LockKind::Semaphore {
            write!(f, " (asked for {weight} permits)")?;
        }
        if *queued > 0 { write!(f, "; {queued} waiting") } else { Ok(()) }
    }
}

impl error::Error for Error {}

impl fmt::Display for DeadlockStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lock, of, task, waits, taken, .. } = self;
        write!(f, "the task of {task} waits at {waits} for a {lock} of {of}, ")?;
        match self.blocked_by {
            Blocker::Holder => write!(f, "held since {taken}"),
            Blocker::Earlier => write!(f, "behind the request of {taken}"),
        }
    }
}

impl fmt::Display for LockKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mutex => "mutex",
            Self::Semaphore => "semaphore",
            Self::Read => "read-write lock (read)",
            Self::Write => "read-write lock (write)",
            Self::UpgradableRead => "read-write lock (upgradable read)",
            Self::Upgrade => "read-write lock (upgrade)",
            Self::KeyedRead => "keyed lock (read)",
            Self::KeyedWrite => "keyed lock (write)",
            Self::KeyedReadAll => "keyed lock (read of all)",
            Self::KeyedWriteAll => "keyed lock (write of all)",
            Self::ObjectRead => "object lock (read)",
            Self::ObjectWrite => "object lock (write)",
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
