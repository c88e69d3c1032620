//! The lock around every transaction: one file, locked with `flock` for microseconds.

use std::{
    os::fd::OwnedFd,
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

use leasehold_core::{Fault, FaultKind};
use rustix::{
    fs::{FlockOperation, flock, fstat},
    io::Errno,
};

use crate::{error::from_io, sys};

/// How long somebody else may hold the guard before the store counts as busy: a process stopped
/// inside a transaction would block everyone.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// A transaction takes tens of microseconds, so a few looks without sleeping mostly suffice.
const SPINS: u32 = 20;
const PAUSE_MIN: Duration = Duration::from_micros(50);
const PAUSE_MAX: Duration = Duration::from_millis(1);

/// The guard of a store, as one client has it open.
#[derive(Debug)]
pub(crate) struct Guard {
    file: OwnedFd,
    path: PathBuf,
    inode: u64,
}

/// The guard is held; dropping this frees it.
#[derive(Debug)]
pub(crate) struct Held<'a>(&'a Guard);

impl Guard {
    pub(crate) fn new(file: OwnedFd, path: PathBuf) -> Result<Self, Fault> {
        let inode = fstat(&file).map_err(|error| from_io(error, "look at", &path))?.st_ino;
        Ok(Self { file, path, inode })
    }

    /// Takes the guard if nobody has it.
    pub(crate) fn try_hold(&self) -> Result<Option<Held<'_>>, Fault> {
        match flock(&self.file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {
                let held = Held(self);
                self.check_linked()?;
                Ok(Some(held))
            }
            Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(None),
            Err(error) => Err(from_io(error, "lock", &self.path)),
        }
    }

    /// Takes the guard, waiting until `deadline` while somebody else has it. It blocks: for the
    /// client's own thread and for opening only.
    pub(crate) fn hold_by(&self, deadline: Instant) -> Result<Held<'_>, Fault> {
        let mut pauses = Pauses::default();
        loop {
            if let Some(held) = self.try_hold()? {
                return Ok(held);
            }
            if Instant::now() >= deadline {
                return Err(self.busy());
            }
            pauses.pause();
        }
    }

    /// The fault that says who is in the way.
    fn busy(&self) -> Fault {
        let by = sys::flock_holder(self.inode)
            .map_or_else(String::new, |pid| format!(", held by pid {pid}"));
        let path = self.path.display();
        Fault::new(FaultKind::Unavailable, format!("store busy{by} for {PATIENCE:?} ({path})"))
    }

    /// A guard that was deleted no longer keeps newcomers out; going on would make two stores.
    fn check_linked(&self) -> Result<(), Fault> {
        let stat = fstat(&self.file).map_err(|error| from_io(error, "look at", &self.path))?;
        if stat.st_nlink == 0 {
            return Err(Fault::new(
                FaultKind::Corrupt,
                format!("the store was deleted while in use ({})", self.path.display()),
            ));
        }
        Ok(())
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // It can only fail for a descriptor that is not open, which this one is.
        let _ = flock(&self.0.file, FlockOperation::Unlock);
    }
}

/// Growing pauses between two tries.
#[derive(Debug, Default)]
pub(crate) struct Pauses {
    tries: u32,
}

impl Pauses {
    pub(crate) fn pause(&mut self) {
        self.tries += 1;
        if self.tries <= SPINS {
            thread::yield_now();
        } else {
            let doublings = (self.tries - SPINS - 1).min(5);
            thread::sleep((PAUSE_MIN * (1 << doublings)).min(PAUSE_MAX));
        }
    }
}
