//! In which boot of the machine a store was used last, and the wipe after another one.

use std::{
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use leasehold_core::{Fault, FaultKind};
use rustix::{
    fs::{fsync, ftruncate},
    io::{pread, pwrite},
};

use crate::{
    error::from_io,
    members::Members,
    open::{check_header, no_store},
    place::Place,
    sys,
};

const BOOT_BYTES_MAX: usize = 256;

/// What the file `boot` says, compared with this boot.
#[derive(Debug)]
pub(crate) struct Boot {
    file: OwnedFd,
    path: PathBuf,
    /// What it says once the store is used here.
    here: String,
    /// The store was used in this boot.
    pub(crate) is_this: bool,
    /// The file says nothing: the store is new, or is none.
    is_unknown: bool,
}

impl Boot {
    /// Reads it. A store that is in use under another clock is refused.
    pub(crate) fn of(place: &Place) -> Result<Self, Fault> {
        let path = place.side_path().join("boot");
        let file = place.side_file("boot")?;
        let mut bytes = [0; BOOT_BYTES_MAX];
        let len = pread(&file, &mut bytes, 0).map_err(|error| from_io(error, "read", &path))?;
        let known = String::from_utf8_lossy(&bytes[..len]);
        let boot = sys::boot_id()
            .map_err(|error| from_io(error, "read the boot id in", Path::new("/proc")))?;
        let here = format!("{boot} {}\n", sys::time_namespace());
        let is_this = known == here;
        if !is_this && known.split_whitespace().next() == Some(&*boot) {
            return Err(Fault::new(
                FaultKind::Unsupported,
                format!("the store {} is used in another time namespace", place.path.display()),
            ));
        }
        let is_unknown = known.is_empty();
        Ok(Self { file, path, here, is_this, is_unknown })
    }

    /// Makes sure that what the store holds is of the past: nothing of another boot is left alive,
    /// unless somebody holds a liveness lock; then the file system belongs to another host as well.
    pub(crate) fn check_stale(&self, place: &Place, members: &Members) -> Result<(), Fault> {
        debug_assert!(!self.is_this, "what is used in this boot is not stale");
        members.expect_none_alive(|| {
            format!("the store {} is in use by another host", place.path.display())
        })?;
        if place.has_database()? { self.check_stale_header(place) } else { Ok(()) }
    }

    /// Wipes the state of another boot. Only under the guard.
    pub(crate) fn wipe(&self, place: &Place, members: &Members) -> Result<(), Fault> {
        self.check_stale(place, members)?;
        if place.has_database()? {
            place.remove_database()?;
        }
        for stale in members.files()? {
            members.remove(stale);
        }
        let fail = |error| from_io(error, "write", &self.path);
        ftruncate(&self.file, 0).map_err(fail)?;
        pwrite(&self.file, self.here.as_bytes(), 0).map_err(fail)?;
        fsync(&self.file).map_err(|error| from_io(error, "sync", &self.path))?;
        place.sync_side()
    }

    /// A database is only ever removed when it is a store of this layout, or when this was a store
    /// and the power cut has spoilt it.
    fn check_stale_header(&self, place: &Place) -> Result<(), Fault> {
        let header = place.database_header()?;
        let number = |at: usize| {
            i64::from(u32::from_be_bytes([
                header[at],
                header[at + 1],
                header[at + 2],
                header[at + 3],
            ]))
        };
        if header.starts_with(b"SQLite format 3\0") {
            check_header(place, number(68), number(60))
        } else if self.is_unknown {
            Err(no_store(place))
        } else {
            Ok(())
        }
    }
}
