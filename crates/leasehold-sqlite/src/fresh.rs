//! Keeping the files of a store from looking abandoned: what cleans up `/tmp` and `/var/tmp` goes by
//! their times, and `guard`, for one, is locked for years and never written.

use std::{
    ffi::{OsStr, OsString},
    os::fd::{AsFd, OwnedFd},
    os::unix::ffi::{OsStrExt, OsStringExt},
};

use rustix::fs::{AtFlags, Dir, Timespec, Timestamps, UTIME_NOW, statat, utimensat};

use crate::{members::Members, sys};

/// How old `guard` may look. Cleaners wait for ten days or longer.
const FRESH_S: u64 = 24 * 3600;

/// What is of one store, by its names.
#[derive(Debug)]
pub(crate) struct Fresh {
    parent: OwnedFd,
    side: OwnedFd,
    /// The database.
    name: OsString,
}

impl Fresh {
    pub(crate) const fn new(parent: OwnedFd, side: OwnedFd, name: OsString) -> Self {
        Self { parent, side, name }
    }
}

impl Members {
    /// Touches everything of the store if a day has passed since somebody did. What cannot be
    /// touched is left alone: it costs nobody anything now.
    pub(crate) fn keep_fresh(&self) {
        let Fresh { parent, side, name } = &self.fresh;
        let Ok(guard) = statat(side, "guard", AtFlags::SYMLINK_NOFOLLOW) else { return };
        let touched = u64::try_from(guard.st_mtime).unwrap_or(0);
        // Also where the clock was set back since.
        if touched.abs_diff(sys::wall_us() / 1_000_000) < FRESH_S {
            return;
        }
        for suffix in ["", "-wal", "-shm"] {
            let mut name = name.clone();
            name.push(suffix);
            touch(parent, &name);
        }
        for (directory, own) in [(&self.clients, "clients"), (&self.wake, "wake")] {
            touch(side, OsStr::new(own));
            let Ok(entries) = Dir::read_from(directory.as_fd()) else { continue };
            for entry in entries.flatten() {
                let name = entry.file_name().to_bytes();
                if name != b"." && name != b".." {
                    touch(directory, &OsString::from_vec(name.to_vec()));
                }
            }
        }
        touch(parent, OsStr::from_bytes(&[name.as_bytes(), b".d"].concat()));
        // The guard last: it says that all the others were touched.
        for name in ["boot", "fence", "guard"] {
            touch(side, OsStr::new(name));
        }
    }
}

fn touch(directory: &OwnedFd, name: &OsStr) {
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    let times = Timestamps { last_access: now, last_modification: now };
    let _ = utimensat(directory, name, &times, AtFlags::SYMLINK_NOFOLLOW);
}
