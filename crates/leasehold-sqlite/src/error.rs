//! What SQLite and the system report, as the faults of the contract.

use std::{io, path::Path};

use leasehold_core::{Fault, FaultKind};
use rusqlite::ErrorCode;

/// Why a step did not come to its end. Nothing of it has taken effect.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The store failed.
    Fault(Fault),
    /// Somebody else is at the database; the same step may work in a moment.
    Busy,
    /// It takes longer than a caller's thread should be held up: for the client's own thread.
    Heavy,
    /// A read found something to clean up: to be run again as a write.
    NeedsWrite,
}

impl Stop {
    /// What a caller is told when there is no other way left to run the step.
    pub(crate) fn into_fault(self) -> Fault {
        match self {
            Self::Fault(fault) => fault,
            Self::Busy | Self::Heavy | Self::NeedsWrite => {
                Fault::new(FaultKind::Unavailable, "the store is busy")
            }
        }
    }
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<rusqlite::Error> for Stop {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy,
            _ => Self::Fault(from_sqlite(error)),
        }
    }
}

/// A fault for an error of the database. The messages of SQLite name no values, so no secrets.
pub(crate) fn from_sqlite(error: rusqlite::Error) -> Fault {
    let (kind, what) = match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            (FaultKind::Unavailable, "the store is busy")
        }
        Some(ErrorCode::DiskFull) => (FaultKind::Full, "the disk of the store is full"),
        Some(ErrorCode::SystemIoFailure) if is_shm_size(&error) => {
            (FaultKind::Full, "the disk of the store is full")
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            (FaultKind::Corrupt, "the store is damaged or is no store")
        }
        Some(
            ErrorCode::ReadOnly
            | ErrorCode::PermissionDenied
            | ErrorCode::AuthorizationForStatementDenied,
        ) => (FaultKind::Denied, "the store must not be written"),
        Some(ErrorCode::CannotOpen) => (FaultKind::Denied, "the store cannot be opened"),
        Some(ErrorCode::SystemIoFailure | ErrorCode::OutOfMemory) => {
            (FaultKind::Unavailable, "the store cannot be read or written")
        }
        // A table or value that is not as this code wrote it.
        _ => (FaultKind::Corrupt, "the store does not hold what it should"),
    };
    Fault::new(kind, what).with_source(error)
}

/// The index of the write-ahead log could not grow: SQLite has no code of its own for "no space"
/// there.
fn is_shm_size(error: &rusqlite::Error) -> bool {
    error.sqlite_error().is_some_and(|error| {
        error.extended_code == rusqlite::ffi::SQLITE_IOERR_SHMSIZE
            || error.extended_code == rusqlite::ffi::SQLITE_IOERR_SHMMAP
    })
}

/// A fault for an error of the system; `doing` names what and the file.
pub(crate) fn from_io(error: impl Into<io::Error>, doing: &str, path: &Path) -> Fault {
    let error = error.into();
    let kind = match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => FaultKind::Denied,
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => FaultKind::Full,
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => FaultKind::Unsafe,
        _ => FaultKind::Unavailable,
    };
    Fault::new(kind, format!("cannot {doing} {}: {error}", path.display())).with_source(error)
}

/// The same fault, which names the store.
pub(crate) fn at(path: &Path, fault: Fault) -> Fault {
    Fault::new(fault.kind(), format!("{fault} ({})", path.display())).with_source(fault)
}
