//! Where a store is, and whether that is a safe and fit place for one.
//!
//! Everything is looked at through directory descriptors and without following links, so what was
//! checked is what is used.

use std::{
    ffi::{OsStr, OsString},
    fs,
    os::{fd::OwnedFd, unix::ffi::OsStrExt, unix::fs::DirBuilderExt},
    path::{Path, PathBuf},
};

use leasehold_core::{Fault, FaultKind};
use rustix::{
    fs::{
        AtFlags, FileType, Mode, OFlags, Stat, fstat, fstatfs, mkdirat, open, openat, statat,
        unlinkat,
    },
    io::Errno,
};

use crate::{error::from_io, fresh::Fresh, sys};

/// The longest path that SQLite opens.
const PATH_BYTES_MAX: usize = 500;
const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The checked place of a store.
#[derive(Debug)]
pub(crate) struct Place {
    /// The database, with the links of its directory resolved.
    pub(crate) path: PathBuf,
    name: OsString,
    parent: OwnedFd,
    /// `PATH.d`.
    side: OwnedFd,
    side_path: PathBuf,
}

impl Place {
    /// Checks the place that a caller named. Its directory must be there.
    pub(crate) fn explicit(path: &Path) -> Result<Self, Fault> {
        let absolute =
            std::path::absolute(path).map_err(|error| from_io(error, "make absolute", path))?;
        let (Some(parent), Some(name)) = (absolute.parent(), absolute.file_name()) else {
            return Err(unsafe_place(path, "names no file"));
        };
        let parent = fs::canonicalize(parent)
            .map_err(|error| from_io(error, "open the directory", parent))?;
        let fd = open(&parent, DIRECTORY, Mode::empty())
            .map_err(|error| from_io(error, "open the directory", &parent))?;
        let stat = fstat(&fd).map_err(|error| from_io(error, "look at", &parent))?;
        // The owner of the directory can put other files in the store's place; root can anyway.
        if stat.st_uid != 0 && stat.st_uid != sys::uid() {
            return Err(unsafe_place(&parent, "belongs to another user"));
        }
        // A sticky bit would not help: others could still make the database's log file first.
        if stat.st_mode & 0o022 != 0 {
            return Err(unsafe_place(
                &parent,
                "can be written by others; use a directory of your own (mkdir -m 700)",
            ));
        }
        Self::within(fd, &parent, name.to_owned())
    }

    /// Makes and checks the private directory of the default store.
    pub(crate) fn default_at(path: &Path) -> Result<Self, Fault> {
        let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(unsafe_place(path, "names no file"));
        };
        let above = directory.parent().unwrap_or(Path::new("/"));
        let fail = |error| from_io(error, "make the directory", directory);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(above).map_err(fail)?;
        match fs::DirBuilder::new().mode(0o700).create(directory) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(fail(error));
            }
            _ => {}
        }
        let above = fs::canonicalize(above).map_err(fail)?;
        let directory = above.join(directory.file_name().unwrap_or_default());
        let fd = open_private(None, &directory, directory.as_os_str().as_bytes())?;
        Self::within(fd, &directory, name.to_owned())
    }

    fn within(parent: OwnedFd, parent_path: &Path, name: OsString) -> Result<Self, Fault> {
        let path = parent_path.join(&name);
        if path.as_os_str().len() > PATH_BYTES_MAX {
            return Err(unsafe_place(&path, "has a longer path than SQLite opens (500 bytes)"));
        }
        let magic = fstatfs(&parent).map_err(|error| from_io(error, "look at", &path))?.f_type;
        if let Some(system) = sys::unfit_file_system(u64::try_from(magic).unwrap_or(0)) {
            return Err(unsafe_place(
                &path,
                &format!("is on {system}, which does not keep locks; name another --store"),
            ));
        }
        // What is there and can be no store is refused before anything is made beside it.
        has_database(&parent, &name, &path)?;
        let mut side_name = name.clone();
        side_name.push(".d");
        let side_path = parent_path.join(&side_name);
        make_directory(&parent, side_name.as_bytes(), &side_path)?;
        let side = open_private(Some(&parent), &side_path, side_name.as_bytes())?;
        Ok(Self { path, name, parent, side, side_path })
    }

    /// `PATH.d`, for messages.
    pub(crate) fn side_path(&self) -> &Path {
        &self.side_path
    }

    /// Opens a directory of `PATH.d`, made when it is not there.
    pub(crate) fn side_directory(&self, name: &str) -> Result<OwnedFd, Fault> {
        let path = self.side_path.join(name);
        make_directory(&self.side, name.as_bytes(), &path)?;
        open_private(Some(&self.side), &path, name.as_bytes())
    }

    /// Opens a file of `PATH.d` for reading and writing, made empty when it is not there.
    pub(crate) fn side_file(&self, name: &str) -> Result<OwnedFd, Fault> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let path = self.side_path.join(name);
        let file = openat(&self.side, name, flags, Mode::from_raw_mode(0o600)).map_err(
            |error| match error {
                Errno::LOOP => unsafe_place(&path, "is a symbolic link"),
                other => from_io(other, "open", &path),
            },
        )?;
        let stat = fstat(&file).map_err(|error| from_io(error, "look at", &path))?;
        check_private(&stat, FileType::RegularFile, &path)?;
        Ok(file)
    }

    /// What is to be kept from looking abandoned.
    pub(crate) fn fresh(&self) -> Result<Fresh, Fault> {
        let again = |fd: &OwnedFd| {
            fd.try_clone().map_err(|error| from_io(error, "open again", &self.side_path))
        };
        Ok(Fresh::new(again(&self.parent)?, again(&self.side)?, self.name.clone()))
    }

    /// Syncs the entries of `PATH.d`, so that its files survive a power cut.
    pub(crate) fn sync_side(&self) -> Result<(), Fault> {
        rustix::fs::fsync(&self.side).map_err(|error| from_io(error, "sync", &self.side_path))
    }

    /// Whether the database is there and not empty; it must be a private file of ours.
    ///
    /// It is never opened here: closing another descriptor of it would free the POSIX locks that
    /// SQLite has on it for other clients of this process.
    pub(crate) fn has_database(&self) -> Result<bool, Fault> {
        has_database(&self.parent, &self.name, &self.path)
    }

    /// Makes the empty file that SQLite is to fill; SQLite itself would make it readable by others.
    pub(crate) fn make_database_file(&self) -> Result<(), Fault> {
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat(&self.parent, &*self.name, flags, Mode::from_raw_mode(0o600)) {
            // It is new, so nobody has a lock on it that closing could free.
            Ok(_) | Err(Errno::EXIST) => Ok(()),
            Err(error) => Err(from_io(error, "make", &self.path)),
        }
    }

    /// The first bytes of the database. Only while nobody has it open, see
    /// [`has_database`](Self::has_database).
    pub(crate) fn database_header(&self) -> Result<[u8; 100], Fault> {
        let fail = |error| from_io(error, "read", &self.path);
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&self.parent, &*self.name, flags, Mode::empty()).map_err(fail)?;
        let mut header = [0; 100];
        rustix::io::pread(&file, &mut header, 0).map_err(fail)?;
        Ok(header)
    }

    /// Removes the database and the files that SQLite keeps beside it.
    pub(crate) fn remove_database(&self) -> Result<(), Fault> {
        // The log first: a new database must never meet an old log.
        for suffix in ["-wal", "-shm", "-journal", ""] {
            let mut name = self.name.clone();
            name.push(suffix);
            match unlinkat(&self.parent, &*name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => return Err(from_io(error, "remove the stale", &self.path)),
            }
        }
        Ok(())
    }
}

fn has_database(parent: &OwnedFd, name: &OsStr, path: &Path) -> Result<bool, Fault> {
    match statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => {
            check_private(&stat, FileType::RegularFile, path)?;
            Ok(stat.st_size > 0)
        }
        Err(Errno::NOENT) => Ok(false),
        Err(error) => Err(from_io(error, "look at", path)),
    }
}

fn make_directory(at: &OwnedFd, name: &[u8], path: &Path) -> Result<(), Fault> {
    match mkdirat(at, name, Mode::from_raw_mode(0o700)) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(from_io(error, "make the directory", path)),
    }
}

fn open_private(at: Option<&OwnedFd>, path: &Path, name: &[u8]) -> Result<OwnedFd, Fault> {
    let opened = match at {
        Some(at) => openat(at, name, DIRECTORY, Mode::empty()),
        None => open(name, DIRECTORY, Mode::empty()),
    };
    let directory = opened.map_err(|error| match error {
        // Which of the two the kernel reports for a link depends on its version.
        Errno::LOOP | Errno::NOTDIR => unsafe_place(path, "is a symbolic link or no directory"),
        Errno::ACCESS => unsafe_place(path, "belongs to another user"),
        other => from_io(other, "open the directory", path),
    })?;
    let stat = fstat(&directory).map_err(|error| from_io(error, "look at", path))?;
    check_private(&stat, FileType::Directory, path)?;
    Ok(directory)
}

/// A thing of the store is what it should be, ours, and nobody else's to read: it holds tokens.
fn check_private(stat: &Stat, kind: FileType, path: &Path) -> Result<(), Fault> {
    match FileType::from_raw_mode(stat.st_mode) {
        found if found == kind => {}
        FileType::Symlink => return Err(unsafe_place(path, "is a symbolic link")),
        _ => return Err(unsafe_place(path, "is neither a plain file nor a directory as expected")),
    }
    if stat.st_uid != sys::uid() {
        return Err(unsafe_place(path, "belongs to another user"));
    }
    if stat.st_mode & 0o077 != 0 {
        return Err(unsafe_place(path, "is open to others (chmod go-rwx would close it)"));
    }
    Ok(())
}

fn unsafe_place(path: &Path, what: &str) -> Fault {
    Fault::new(FaultKind::Unsafe, format!("{} {what}", path.display()))
}
