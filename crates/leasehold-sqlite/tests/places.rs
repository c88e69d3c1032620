//! Where a store may be, what is refused, and how it is made.

mod support;

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink},
    path::Path,
    sync::Barrier,
    time::{Duration, Instant},
};

use leasehold_core::{Backend, FaultKind};
use leasehold_sqlite::{SqliteBackend, SqliteReport, default_path};
use support::{Home, Peer, granted, let_in, mutex, request, run};

/// A user who is nobody's, for whom these programs have no home.
const OTHER: [&str; 4] = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
}

fn assert_refused(home: &Home, kind: FaultKind, says: &str) {
    let fault = home.fault();
    assert_eq!(fault.kind(), kind, "{fault}");
    assert!(fault.to_string().contains(says), "{fault}");
}

#[test]
fn everything_of_a_store_is_private() {
    let home = Home::new();
    let client = home.open();
    granted(&client, &request(&mutex("private")));
    assert_eq!(mode(&home.path()), 0o600);
    assert_eq!(mode(&home.0.path().join("locks.db-wal")), 0o600);
    assert_eq!(mode(&home.0.path().join("locks.db-shm")), 0o600);
    assert_eq!(mode(&home.0.path().join("locks.db.d")), 0o700);
    for directory in ["clients", "wake"] {
        assert_eq!(mode(&home.side(directory)), 0o700);
    }
    for file in ["guard", "fence", "boot"] {
        assert_eq!(mode(&home.side(file)), 0o600);
    }
}

#[test]
fn threads_that_create_a_store_at_the_same_moment_share_it() {
    for _ in 0..10 {
        let home = Home::new();
        let barrier = Barrier::new(4);
        let clients: Vec<SqliteBackend> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        barrier.wait();
                        home.open()
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let lock = mutex("shared");
        granted(&clients[0], &request(&lock));
        for client in &clients[1..] {
            assert!(support::is_busy(client, &support::try_request(&lock)));
        }
    }
}

#[test]
fn processes_that_create_a_store_at_the_same_moment_share_it() {
    let home = Home::new();
    let peers: Vec<_> = (0..6).map(|_| Peer::start(&home.path(), &["stay"])).collect();
    for peer in &peers {
        peer.says("opened");
    }
    assert_eq!(fs::read_dir(home.side("clients")).unwrap().count(), 6);
    for peer in peers {
        peer.end();
    }
}

#[test]
fn another_layout_version_is_refused() {
    let home = Home::new();
    support::run(home.open().close()).unwrap();
    let conn = rusqlite::Connection::open(home.path()).unwrap();
    conn.execute_batch("PRAGMA user_version = 99").unwrap();
    conn.close().unwrap();
    assert_refused(&home, FaultKind::Layout, "layout version 99");
}

#[test]
fn a_database_of_something_else_is_refused_and_left_alone() {
    let home = Home::new();
    let conn = rusqlite::Connection::open(home.path()).unwrap();
    conn.execute_batch("CREATE TABLE theirs (a)").unwrap();
    conn.close().unwrap();
    let_in(&home.path(), 0o600);
    let before = fs::read(home.path()).unwrap();
    assert_refused(&home, FaultKind::Corrupt, "no store of Leasehold");
    assert_eq!(fs::read(home.path()).unwrap(), before);
}

#[test]
fn a_file_that_is_no_database_is_refused_and_left_alone() {
    let home = Home::new();
    fs::write(home.path(), "dear diary, ".repeat(500)).unwrap();
    let_in(&home.path(), 0o600);
    assert_refused(&home, FaultKind::Corrupt, "locks.db");
    assert!(fs::read_to_string(home.path()).unwrap().starts_with("dear diary"));
}

#[test]
fn nothing_is_made_beside_what_can_be_no_store() {
    let home = Home::new();
    fs::create_dir(home.path()).unwrap();
    assert_refused(&home, FaultKind::Unsafe, "neither a plain file");
    assert!(!home.0.path().join("locks.db.d").exists());
}

#[test]
fn an_empty_file_becomes_a_store() {
    let home = Home::new();
    fs::write(home.path(), "").unwrap();
    let_in(&home.path(), 0o600);
    granted(&home.open(), &request(&mutex("empty")));
}

#[test]
fn links_are_refused() {
    let (home, elsewhere) = (Home::new(), Home::new());
    drop(elsewhere.open());
    symlink(elsewhere.path(), home.path()).unwrap();
    assert_refused(&home, FaultKind::Unsafe, "symbolic link");
    fs::remove_file(home.path()).unwrap();
    let side = home.0.path().join("locks.db.d");
    assert!(!side.exists());
    symlink(elsewhere.0.path().join("locks.db.d"), &side).unwrap();
    assert_refused(&home, FaultKind::Unsafe, "symbolic link");
    fs::remove_file(&side).unwrap();
    drop(home.open());
    fs::remove_file(home.side("guard")).unwrap();
    symlink(elsewhere.side("guard"), home.side("guard")).unwrap();
    assert_refused(&home, FaultKind::Unsafe, "symbolic link");
}

#[test]
fn a_directory_that_is_reached_through_a_link_is_the_same_store() {
    let (home, elsewhere) = (Home::new(), Home::new());
    let client = home.open();
    granted(&client, &request(&mutex("one")));
    let link = elsewhere.0.path().join("link");
    symlink(home.0.path(), &link).unwrap();
    let same = SqliteBackend::open(link.join("locks.db")).unwrap();
    assert_eq!(same.path(), client.path());
    assert!(support::is_busy(&same, &support::try_request(&mutex("one"))));
}

#[test]
fn a_directory_that_others_can_write_is_refused() {
    let home = Home::new();
    // A sticky bit keeps others from removing files, not from making them first.
    for mode in [0o777, 0o770, 0o1777] {
        let_in(home.0.path(), mode);
        assert_refused(&home, FaultKind::Unsafe, "can be written by others");
    }
    let_in(home.0.path(), 0o755);
    drop(home.open());
}

#[test]
fn a_store_that_is_open_to_others_is_refused() {
    let home = Home::new();
    support::run(home.open().close()).unwrap();
    let_in(&home.path(), 0o644);
    assert_refused(&home, FaultKind::Unsafe, "open to others");
    let_in(&home.path(), 0o600);
    let_in(&home.0.path().join("locks.db.d"), 0o755);
    assert_refused(&home, FaultKind::Unsafe, "open to others");
}

#[test]
fn a_store_of_another_user_is_refused() {
    need_root();
    let home = Home::new();
    support::run(home.open().close()).unwrap();
    chown(home.path(), Some(65534), None).unwrap();
    assert_refused(&home, FaultKind::Unsafe, "another user");
    chown(home.path(), Some(0), None).unwrap();
    chown(home.0.path().join("locks.db.d"), Some(65534), None).unwrap();
    assert_refused(&home, FaultKind::Unsafe, "another user");
    chown(home.0.path().join("locks.db.d"), Some(0), None).unwrap();
    chown(home.0.path(), Some(65534), None).unwrap();
    assert_refused(&home, FaultKind::Unsafe, "another user");
}

#[test]
fn a_directory_that_must_not_be_written_is_told() {
    need_root();
    let home = Home::new();
    let_in(home.0.path(), 0o755);
    let peer = Peer::start_by(&OTHER, &home.path(), &["open"]);
    peer.says("fault Denied");
}

#[test]
fn a_read_only_file_system_is_told() {
    need_root();
    let home = Home::new();
    support::run(home.open().close()).unwrap();
    // A mount namespace of its own, so that nothing is left behind.
    let here = home.0.path().display().to_string();
    let script = format!(
        "mount --bind '{here}' '{here}' && mount -o remount,ro,bind '{here}' && exec \"$@\""
    );
    let program = ["unshare", "--mount", "sh", "-c", &script, "sh"];
    Peer::start_by(&program, &home.path(), &["open"]).says("fault Denied");
}

#[test]
fn a_directory_that_is_missing_is_told() {
    let home = Home::new();
    let fault = SqliteBackend::open(home.0.path().join("missing/locks.db")).unwrap_err();
    assert_eq!(fault.kind(), FaultKind::Unsafe);
    assert!(fault.to_string().contains("missing"), "{fault}");
}

#[test]
fn urls_open_what_they_name() {
    let home = Home::new();
    let spaced = home.0.path().join("my locks.db");
    let url = format!("sqlite://{}", spaced.display()).replace(' ', "%20");
    let client = SqliteBackend::from_url(&url).unwrap();
    assert_eq!(client.path(), fs::canonicalize(&spaced).unwrap());
    assert_eq!(SqliteBackend::from_url("memory:").unwrap_err().kind(), FaultKind::Unsupported);
}

#[test]
fn a_path_longer_than_a_pipe_may_have_works() {
    let home = Home::new();
    // Longer than the 108 bytes of a socket's path; the database itself may have 500.
    let deep = home.0.path().join("d".repeat(200)).join("e".repeat(200));
    fs::create_dir_all(&deep).unwrap();
    let (a, b) = (
        SqliteBackend::open(deep.join("locks.db")).unwrap(),
        SqliteBackend::open(deep.join("locks.db")).unwrap(),
    );
    let held = request(&mutex("deep"));
    granted(&a, &held);
    let wanted = request(&mutex("deep"));
    let place = support::queued(&b, &wanted);
    support::release(&a, &held);
    support::told_granted(&b, &wanted, &place);
    let fault = SqliteBackend::open(deep.join("f".repeat(200))).unwrap_err();
    assert_eq!(fault.kind(), FaultKind::Unsafe, "{fault}");
}

#[test]
fn the_default_store_is_the_same_in_every_environment() {
    need_root();
    let directory = Path::new("/var/tmp/leasehold-65534");
    let _ = fs::remove_dir_all(directory);
    let clean: Vec<&str> = OTHER.into_iter().chain(["env", "-i"]).collect();
    let other: Vec<&str> = OTHER
        .into_iter()
        .chain(["env", "HOME=/tmp", "XDG_STATE_HOME=/tmp/x", "TMPDIR=/tmp/y"])
        .collect();
    for program in [&clean, &other] {
        let said = Peer::start_by(program, Path::new("default"), &["open"]).says("opened");
        assert_eq!(said, directory.join("locks.db").display().to_string());
    }
    let made = fs::symlink_metadata(directory).unwrap();
    assert_eq!((made.uid(), mode(directory)), (65534, 0o700));
    // A foreign owner, then a link, in its place.
    chown(directory, Some(0), None).unwrap();
    Peer::start_by(&clean, Path::new("default"), &["open"]).says("fault Unsafe");
    fs::remove_dir_all(directory).unwrap();
    let elsewhere = Home::new();
    chown(elsewhere.0.path(), Some(65534), None).unwrap();
    symlink(elsewhere.0.path(), directory).unwrap();
    Peer::start_by(&clean, Path::new("default"), &["open"]).says("fault Unsafe");
    fs::remove_file(directory).unwrap();
}

#[test]
fn the_default_store_is_in_the_home_of_the_password_database() {
    let path = default_path().unwrap();
    let home = nix_home();
    assert!(
        path == home.join(".local/state/leasehold/locks.db") || path.starts_with("/var/tmp/"),
        "{}",
        path.display()
    );
}

/// The home directory of this user, read from the password file by hand.
fn nix_home() -> std::path::PathBuf {
    let uid = rustix::process::geteuid().as_raw().to_string();
    let passwd = fs::read_to_string("/etc/passwd").unwrap();
    passwd
        .lines()
        .map(|line| line.split(':').collect::<Vec<_>>())
        .find(|fields| fields[2] == uid)
        .map_or_else(|| "/nonexistent".into(), |fields| fields[5].into())
}

#[test]
fn opening_takes_milliseconds() {
    let home = Home::new();
    support::run(home.open().close()).unwrap();
    let mut times: Vec<Duration> = (0..20)
        .map(|_| {
            let start = Instant::now();
            let client = home.open();
            let taken = start.elapsed();
            support::run(client.close()).unwrap();
            taken
        })
        .collect();
    times.sort();
    // About 1 ms on an idle machine.
    assert!(times[10] < Duration::from_millis(50), "{times:?}");
}

/// Tests of rights prove nothing for a user who cannot change them, and must not seem to.
fn need_root() {
    assert!(
        rustix::process::geteuid().is_root(),
        "this test needs root, to be two users: run it under sudo or in a container"
    );
}

#[test]
fn a_pipe_in_the_place_of_a_liveness_file_keeps_nobody() {
    let home = Home::new();
    run(home.open().close()).unwrap();
    let clients = fs::File::open(home.side("clients")).unwrap();
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mkfifoat(&clients, "0123456789abcdef.alive", mode).unwrap();
    let (tell, opened) = std::sync::mpsc::channel();
    let path = home.path();
    std::thread::spawn(move || tell.send(SqliteBackend::open(path).map(drop)));
    opened.recv_timeout(support::LONG).expect("it does not hang").unwrap();
    assert!(!home.side("clients/0123456789abcdef.alive").exists(), "it is nobody's");
}

#[test]
fn a_report_makes_no_store() {
    let home = Home::new();
    assert!(SqliteReport::open(home.path()).unwrap().survey(None).unwrap().is_empty());
    assert!(!home.path().exists());
    run(home.open().close()).unwrap();
    fs::write(home.path(), "this is no store, and no database either; a report says so").unwrap();
    assert_eq!(SqliteReport::open(home.path()).unwrap_err().kind(), FaultKind::Corrupt);
}

/// What cleans up `/var/tmp` removes what looks a month old.
#[test]
fn a_store_in_use_does_not_look_abandoned() {
    let home = Home::new();
    let client = home.open();
    granted(&client, &request(&mutex("fresh")));
    let id = client.client();
    let alive = format!("clients/{id}.alive");
    let files = ["guard", "boot", "fence", "clients", "wake", &alive].map(|name| home.side(name));
    let month_ago = std::time::SystemTime::now() - Duration::from_secs(31 * 24 * 3600);
    let age = |path: &Path| fs::metadata(path).unwrap().modified().unwrap().elapsed().unwrap();
    let pipe = home.side(&format!("wake/{id}"));
    let everything = || files.iter().chain([&pipe]).cloned().chain([home.path()]);
    for path in everything() {
        // A pipe is opened in both directions, so that opening it waits for nobody.
        let file = fs::File::options().read(true).write(!path.is_dir()).open(&path).unwrap();
        file.set_modified(month_ago).unwrap();
        assert!(age(&path) > Duration::from_secs(24 * 3600), "{}", path.display());
    }
    let other = home.open();
    for path in everything() {
        assert!(age(&path) < Duration::from_secs(3600), "{}", path.display());
    }
    drop(other);
}
