//! The health of a store on this machine: its place, its files, and whether the kernel keeps locks
//! there.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rustix::fs::{FlockOperation, flock, statfs, statvfs};

use super::{Finding, trial};
use crate::{
    exit::Failure,
    store::{Place, Store},
};

/// With less than this the database may not be able to grow.
const FREE_BYTES_MIN: u64 = 16 << 20;

/// How long a process that runs may keep the guard: far longer than any transaction takes.
const GUARD_PATIENCE: Duration = Duration::from_millis(500);

/// All that can be found out. What needs an open store is left out where it cannot be opened.
pub(super) async fn findings(place: &Place, path: &Path) -> Vec<Finding> {
    // Before opening, which would wait for the guard for much longer.
    let side = side_of(path);
    let kept = side.join("guard");
    if kept.exists() {
        let guard = guard(&kept);
        if !guard.healthy {
            return vec![guard];
        }
    }
    let was_there = path.exists();
    let stores = async { Ok::<_, Failure>((Store::open(place).await?, Store::open(place).await?)) };
    let (one, other) = match stores.await {
        Ok(stores) => stores,
        Err(failure) => {
            let advice = if was_there {
                "see what the error says; name another path if these are another program's files"
                    .to_owned()
            } else {
                advice(path)
            };
            return vec![Finding::bad("place", failure.to_string(), advice)];
        }
    };
    let mut all = vec![
        place_of(path, was_there),
        permissions(path),
        file_system(path),
        space(path),
        boot(&side),
        guard(&kept),
        liveness(&side),
    ];
    all.extend(trial::findings(&one, &other).await);
    // They hold nothing any more, so whether they leave in good order is all the same.
    let _ = (one.backend().close().await, other.backend().close().await);
    all
}

fn side_of(path: &Path) -> PathBuf {
    let mut side = path.as_os_str().to_owned();
    side.push(".d");
    side.into()
}

fn advice(path: &Path) -> String {
    let directory = path.parent().unwrap_or(path).display();
    format!("a store needs a private local directory of its user (mkdir -m 700 {directory})")
}

fn place_of(path: &Path, was_there: bool) -> Finding {
    let what = "place";
    let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if !was_there {
        let found = format!("{}, made just now", real.display());
        return Finding::weak(what, found, "if a store was there before, its path is another one");
    }
    let size = fs::metadata(path).map_or(0, |data| data.len());
    Finding::good(what, format!("{}, {} KiB", real.display(), size.div_ceil(1024)))
}

/// Opening has refused what is not private; this says what it is.
fn permissions(path: &Path) -> Finding {
    let what = "permissions";
    let uid = rustix::process::geteuid().as_raw();
    match fs::metadata(path) {
        Err(error) => Finding::bad(what, error.to_string(), advice(path)),
        Ok(data) if data.uid() != uid => {
            Finding::bad(what, format!("belongs to user {}, not {uid}", data.uid()), advice(path))
        }
        Ok(data) => Finding::good(what, format!("user {uid}, mode {:o}", data.mode() & 0o7777)),
    }
}

fn file_system(path: &Path) -> Finding {
    let what = "file system";
    match statfs(path) {
        Err(error) => Finding::bad(what, error.to_string(), advice(path)),
        Ok(stat) => {
            let magic = u64::try_from(stat.f_type).unwrap_or(0);
            let name = match magic {
                0xef53 => "ext4",
                0x5846_5342 => "xfs",
                0x9123_683e => "btrfs",
                0x0102_1994 => "tmpfs",
                0x794c_7630 => "overlay",
                0x2fc1_2fc1 => "zfs",
                0xf2f5_2010 => "f2fs",
                _ => "local",
            };
            Finding::good(what, format!("{name} ({magic:#x})"))
        }
    }
}

fn space(path: &Path) -> Finding {
    let what = "space";
    match statvfs(path) {
        Err(error) => Finding::bad(what, error.to_string(), advice(path)),
        Ok(stat) => {
            let free = stat.f_bavail.saturating_mul(stat.f_frsize);
            let found = format!("{} MiB free", free >> 20);
            if free < FREE_BYTES_MIN {
                Finding::bad(what, found, "make room: a full disk refuses new grants")
            } else {
                Finding::good(what, found)
            }
        }
    }
}

/// The lock around every transaction must be free most of the time.
fn guard(path: &Path) -> Finding {
    let what = "guard";
    let opened = File::options().read(true).write(true).open(path);
    let file = match opened {
        Ok(file) => file,
        Err(error) => {
            let advice = format!("{} must belong to the store's user", path.display());
            return Finding::bad(what, error.to_string(), advice);
        }
    };
    let start = Instant::now();
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {
                let waited = start.elapsed().as_micros();
                return Finding::good(what, format!("free after {waited} µs"));
            }
            Err(_) if start.elapsed() < GUARD_PATIENCE => {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(error) => {
                let by = holder(&file).map_or_else(String::new, |pid| format!(", by pid {pid}"));
                return Finding::bad(
                    what,
                    format!("held for more than {GUARD_PATIENCE:?}{by}: {error}"),
                    "a process has stopped in the middle of a transaction: continue it (kill -CONT) \
                     or kill it",
                );
            }
        }
    }
}

/// The process that has the file locked, as far as the kernel shows it.
fn holder(file: &File) -> Option<u32> {
    let inode = file.metadata().ok()?.ino().to_string();
    let locks = fs::read_to_string("/proc/locks").ok()?;
    locks.lines().find_map(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        let at = words.iter().position(|word| *word == "FLOCK")?;
        let is_it = words.get(at + 4)?.rsplit(':').next() == Some(&*inode);
        if is_it { words.get(at + 3)?.parse().ok() } else { None }
    })
}

fn boot(side: &Path) -> Finding {
    let what = "boot";
    let here = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let there = fs::read_to_string(side.join("boot")).unwrap_or_default();
    let here = here.trim();
    if there.split_whitespace().next() == Some(here) {
        Finding::good(what, format!("this one, {here}"))
    } else {
        let found = format!("the store is of the boot {:?}", there.trim());
        Finding::bad(what, found, "another host uses the same files: give each host its own store")
    }
}

/// Every living client holds a lock on a file of its own, the one of this program included. Where
/// such a lock is not kept, the living would be taken for dead.
fn liveness(side: &Path) -> Finding {
    let what = "liveness";
    match count_alive(&side.join("clients")) {
        Err(error) => {
            Finding::bad(what, error.to_string(), "the store's files must belong to its user")
        }
        // The two of this program.
        Ok((alive, _)) if alive < 2 => Finding::bad(
            what,
            "the locks of living clients are not kept",
            "put the store on a local file system",
        ),
        Ok((alive, dead)) => {
            Finding::good(what, format!("{} other clients alive, {dead} dead", alive - 2))
        }
    }
}

fn count_alive(clients: &Path) -> io::Result<(usize, usize)> {
    let (mut alive, mut dead) = (0, 0);
    for entry in fs::read_dir(clients)? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "alive") {
            continue;
        }
        // One that has left since is neither.
        let Ok(file) = File::open(&path) else { continue };
        // A shared lock, and given up at once: whoever tries an exclusive one meanwhile takes the
        // client for alive, which is the safe side.
        match flock(&file, FlockOperation::NonBlockingLockShared) {
            Ok(()) => dead += 1,
            Err(_) => alive += 1,
        }
    }
    Ok((alive, dead))
}
