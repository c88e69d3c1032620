//! The clients of a store as the file system shows them: who lives, and how to wake one.
//!
//! Each client holds an exclusive `flock` on `clients/<id>.alive` for its life. The kernel frees it
//! with the last descriptor, so who can take the lock knows that the client is dead, and no pid is
//! ever guessed at. Each client reads a named pipe `wake/<id>`; a byte in it means "look at the
//! store" (rule L5). All names are opened relative to their directory: no path is too long.

use std::{
    os::fd::{AsFd, OwnedFd},
    path::PathBuf,
};

use leasehold_core::{ClientId, Fault, FaultKind};
use rustix::{
    fs::{AtFlags, Dir, FlockOperation, Mode, OFlags, flock, mkfifoat, openat, unlinkat},
    io::{Errno, write},
};

use crate::{error::from_io, fresh::Fresh, place::Place};

/// What somebody else writes into a client's pipe.
pub(crate) const LOOK: u8 = b'l';
/// What a client writes into its own pipe: there is a message, and nothing to look at.
pub(crate) const MESSAGE: u8 = b'm';

const PRIVATE: Mode = Mode::from_raw_mode(0o600);

/// The directories `clients` and `wake` of a store.
#[derive(Debug)]
pub(crate) struct Members {
    pub(crate) clients: OwnedFd,
    pub(crate) wake: OwnedFd,
    /// `PATH.d`, for messages.
    pub(crate) path: PathBuf,
    pub(crate) fresh: Fresh,
}

impl Members {
    /// Those of the store at a place.
    pub(crate) fn of(place: &Place) -> Result<Self, Fault> {
        Ok(Self {
            clients: place.side_directory("clients")?,
            wake: place.side_directory("wake")?,
            path: place.side_path().to_owned(),
            fresh: place.fresh()?,
        })
    }

    /// Makes a client's file and locks it. The row is registered after that, so a registered client
    /// is never taken for dead while it starts.
    pub(crate) fn enter(&self, id: ClientId) -> Result<OwnedFd, Fault> {
        let name = alive_name(id);
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fail = |error| from_io(error, "lock the client's file in", &self.path);
        let file = openat(&self.clients, &*name, flags, PRIVATE).map_err(fail)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(fail)?;
        Ok(file)
    }

    /// Makes a client's pipe and opens it for reading and writing: it then never ends.
    pub(crate) fn make_pipe(&self, id: ClientId) -> Result<OwnedFd, Fault> {
        let name = id.to_string();
        let fail = |error| from_io(error, "make the client's pipe in", &self.path);
        mkfifoat(&self.wake, &*name, PRIVATE).map_err(fail)?;
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        openat(&self.wake, &*name, flags, Mode::empty()).map_err(fail)
    }

    /// Removes what a client left. Files that are gone are fine.
    pub(crate) fn remove(&self, id: ClientId) {
        // What stays behind because of another error is found by the next that opens the store.
        let _ = unlinkat(&self.wake, &*id.to_string(), AtFlags::empty());
        let _ = unlinkat(&self.clients, &*alive_name(id), AtFlags::empty());
    }

    /// Whether a registered client is dead for certain. A doubt counts as life (rule N7).
    pub(crate) fn is_dead(&self, id: ClientId) -> bool {
        // A pipe that somebody has put there would keep an opener that blocks.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat(&self.clients, &*alive_name(id), flags, Mode::empty()) {
            // A shared lock, so that two who look at the same moment do not fool each other.
            Ok(file) => flock(&file, FlockOperation::NonBlockingLockShared).is_ok(),
            // The file goes after the row, so a row without a file is nobody's any more.
            Err(error) => error == Errno::NOENT,
        }
    }

    /// Tells a client to look. A pipe that is full, gone or without a reader is fine: a wake is
    /// pending already, or nobody is left to be woken.
    pub(crate) fn poke(&self, id: ClientId) {
        let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        if let Ok(pipe) = openat(&self.wake, &*id.to_string(), flags, Mode::empty()) {
            let _ = write(&pipe, &[LOOK]);
        }
    }

    /// The ids of the files in `clients`.
    pub(crate) fn files(&self) -> Result<Vec<ClientId>, Fault> {
        let fail = |error| from_io(error, "list the clients in", &self.path);
        let mut ids = Vec::new();
        for entry in Dir::read_from(self.clients.as_fd()).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            let id = entry
                .file_name()
                .to_str()
                .ok()
                .and_then(|name| name.strip_suffix(".alive"))
                .and_then(|hex| u64::from_str_radix(hex, 16).ok());
            ids.extend(id.map(ClientId));
        }
        Ok(ids)
    }

    /// Nobody who has the store open may lose it to somebody who finds it stale or gone.
    pub(crate) fn expect_none_alive(&self, otherwise: impl Fn() -> String) -> Result<(), Fault> {
        for id in self.files()? {
            if !self.is_dead(id) {
                return Err(Fault::new(FaultKind::Unsafe, otherwise()));
            }
        }
        Ok(())
    }
}

fn alive_name(id: ClientId) -> String {
    format!("{id}.alive")
}
