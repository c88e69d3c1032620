//! Fencing tokens (rule L8), and the ceiling that outlives the database.
//!
//! The database is not synced, so a power cut may take back the last fencing token it remembers.
//! The file `fence` holds a number that is synced *before* any token reaches it; whoever starts
//! with an empty database goes on above that number.
//!
//! A power cut may spoil this file too. What it said is unknown then, and an empty database goes on
//! a block above the wall clock: above every token that was given, unless the clock was set back by
//! more than a block.

use std::{os::fd::OwnedFd, path::PathBuf};

use leasehold_core::{Fault, FaultKind};
use rustix::{
    fs::{fdatasync, ftruncate},
    io::{pread, pwrite},
};

use crate::{
    error::{Stop, from_io},
    sys,
};

/// How many tokens one sync reserves: ten minutes of the wall clock.
const BLOCK: u64 = 600 * 1_000_000;
/// `leasehold-fence 00000000000000000000` and a line feed.
const PREFIX: &str = "leasehold-fence ";
const LEN: usize = PREFIX.len() + 20 + 1;

/// The fence file as one client has it open. Written only under the guard.
#[derive(Debug)]
pub(crate) struct Fence {
    file: OwnedFd,
    path: PathBuf,
    /// What the file said last. It only grows, so a token below it needs no look at the file.
    ceiling: u64,
    /// Where an empty database goes on.
    floor: u64,
}

impl Fence {
    /// Reads the ceiling; an empty file has none yet.
    pub(crate) fn open(file: OwnedFd, path: PathBuf) -> Result<Self, Fault> {
        let mut fence = Self { file, path, ceiling: 0, floor: 0 };
        match fence.read()? {
            Some(ceiling) => (fence.ceiling, fence.floor) = (ceiling, ceiling),
            None => fence.floor = sys::wall_us() + BLOCK,
        }
        Ok(fence)
    }

    /// No token was given above this, as far as the file tells.
    pub(crate) const fn floor(&self) -> u64 {
        self.floor
    }

    /// No token is given above this before a sync.
    pub(crate) const fn ceiling(&self) -> u64 {
        self.ceiling
    }

    /// Reserves a block while there is time, at opening, so that the next calls find it.
    pub(crate) fn reserve_ahead(&mut self) -> Result<(), Fault> {
        let soon = (sys::wall_us() + BLOCK / 2).max(self.floor);
        if self.ceiling < soon { self.reserve(soon) } else { Ok(()) }
    }

    /// The token after `last` (rule L8). `may_sync`: whether the caller has time for a sync.
    pub(crate) fn next(&mut self, last: u64, may_sync: bool) -> Result<u64, Stop> {
        let next = sys::wall_us().max(last + 1);
        if next > self.ceiling {
            // Somebody else may have reserved.
            self.ceiling = self.read()?.unwrap_or(0);
        }
        if next > self.ceiling {
            if !may_sync {
                return Err(Stop::Heavy);
            }
            self.reserve(next)?;
        }
        Ok(next)
    }

    fn reserve(&mut self, token: u64) -> Result<(), Fault> {
        let ceiling = token + BLOCK;
        let text = format!("{PREFIX}{ceiling:020}\n");
        debug_assert_eq!(text.len(), LEN);
        let fail = |error| from_io(error, "write", &self.path);
        let written = pwrite(&self.file, text.as_bytes(), 0).map_err(fail)?;
        if written != LEN {
            return Err(Fault::new(
                FaultKind::Full,
                format!("cannot write all of {}", self.path.display()),
            ));
        }
        // More than that is left of a file that was spoilt.
        ftruncate(&self.file, LEN as u64).map_err(fail)?;
        fdatasync(&self.file).map_err(fail)?;
        self.ceiling = ceiling;
        Ok(())
    }

    /// `None`: the file is damaged.
    fn read(&self) -> Result<Option<u64>, Fault> {
        let mut bytes = [0; LEN + 1];
        let len =
            pread(&self.file, &mut bytes, 0).map_err(|error| from_io(error, "read", &self.path))?;
        if len == 0 {
            return Ok(Some(0));
        }
        // A number that leaves no room for tokens is none of ours.
        Ok(std::str::from_utf8(&bytes[..len])
            .ok()
            .and_then(|text| text.strip_prefix(PREFIX)?.strip_suffix('\n')?.parse().ok())
            .filter(|ceiling| *ceiling < u64::MAX / 4))
    }
}
