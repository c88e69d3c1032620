//! Which store is meant: its URL, and the default.

use std::{
    ffi::OsString,
    os::unix::ffi::OsStringExt,
    path::{Path, PathBuf},
};

use leasehold_core::{Fault, FaultKind};
use rustix::fs::{Access, stat};

use crate::sys;

/// Where the default store of this user is: a function of the user id and of the machine, never of
/// the environment, so that cron and a login shell meet (docs/backends/sqlite.md).
///
/// The home directory that the password database names, if it is a directory that belongs to the
/// user and can be written, then `.local/state/leasehold/locks.db` in it; else
/// `/var/tmp/leasehold-UID/locks.db`.
///
/// # Errors
/// None today; a system that has no such place would answer `Unsafe`.
pub fn default_path() -> Result<PathBuf, Fault> {
    let uid = sys::uid();
    let directory = match sys::home_of(uid).filter(|home| is_usable_home(home, uid)) {
        Some(home) => home.join(".local/state/leasehold"),
        None => PathBuf::from(format!("/var/tmp/leasehold-{uid}")),
    };
    Ok(directory.join("locks.db"))
}

fn is_usable_home(home: &Path, uid: u32) -> bool {
    home.is_absolute()
        && stat(home).is_ok_and(|stat| stat.st_uid == uid && stat.st_mode & 0o170_000 == 0o040_000)
        && rustix::fs::access(home, Access::WRITE_OK | Access::EXEC_OK).is_ok()
}

/// The path in `sqlite:PATH`: relative, absolute (`sqlite:/a/b`, `sqlite:///a/b`), and with
/// percent-encoded bytes (`%20`). Nothing is opened or looked at.
///
/// # Errors
/// `Unsupported` for anything else.
pub fn path_of_url(url: &str) -> Result<PathBuf, Fault> {
    let Some(rest) = url.strip_prefix("sqlite:") else {
        return Err(refused("a SQLite store is named sqlite:PATH"));
    };
    let path = match rest.strip_prefix("//") {
        // An authority must be empty: there is no server.
        Some(after) if after.starts_with('/') => after,
        Some(_) => {
            return Err(refused(
                "a SQLite store has no host: sqlite:PATH or sqlite:///absolute/path",
            ));
        }
        None => rest,
    };
    if path.is_empty() {
        return Err(refused("a SQLite store needs a path: sqlite:PATH"));
    }
    // What other libraries call a database in memory; here it would be a file of that name.
    if path == ":memory:" {
        return Err(refused("a store in memory is named memory:, not sqlite::memory:"));
    }
    if path.contains(['?', '#']) {
        return Err(refused("a SQLite store takes no options; write %3F for ? and %23 for #"));
    }
    let bytes = percent_decoded(path.as_bytes())
        .ok_or_else(|| refused("% must be followed by two hexadecimal digits; write %25 for %"))?;
    if bytes.contains(&0) {
        return Err(refused("a path has no zero bytes"));
    }
    Ok(PathBuf::from(OsString::from_vec(bytes)))
}

fn percent_decoded(text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.iter();
    while let Some(&byte) = rest.next() {
        bytes.push(if byte == b'%' {
            let mut digit = || char::from(*rest.next()?).to_digit(16);
            let (high, low) = (digit()?, digit()?);
            u8::try_from(high * 16 + low).ok()?
        } else {
            byte
        });
    }
    Some(bytes)
}

fn refused(why: &str) -> Fault {
    Fault::new(FaultKind::Unsupported, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_paths() {
        for (url, path) in [
            ("sqlite:locks.db", "locks.db"),
            ("sqlite:./a/locks.db", "./a/locks.db"),
            ("sqlite:/a/locks.db", "/a/locks.db"),
            ("sqlite:///a/locks.db", "/a/locks.db"),
            ("sqlite:/a%20b/%E2%82%AC%25.db", "/a b/€%.db"),
            ("sqlite:with space", "with space"),
        ] {
            assert_eq!(path_of_url(url).unwrap(), Path::new(path), "{url}");
        }
    }

    #[test]
    fn anything_else_is_refused_with_what_to_write() {
        for (url, hint) in [
            ("redis://x", "sqlite:PATH"),
            ("sqlite:", "sqlite:PATH"),
            ("sqlite::memory:", "memory:"),
            ("sqlite://host/path", "no host"),
            ("sqlite:a?mode=ro", "%3F"),
            ("sqlite:a%2", "%25"),
            ("sqlite:a%zz", "%25"),
            ("sqlite:a%00b", "zero"),
        ] {
            let fault = path_of_url(url).unwrap_err();
            assert_eq!(fault.kind(), FaultKind::Unsupported, "{url}");
            assert!(fault.to_string().contains(hint), "{url}: {fault}");
        }
    }
}
