//! The default store: one place per user, whatever the environment; private; nobody else's.
//!
//! Root would pass these tests by accident, so the program runs as other users; where the tests
//! themselves do not run as root, they are shown as ignored.

#[path = "program/common.rs"]
mod common;

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink},
    path::{Path, PathBuf},
    process::{Command, ExitCode, Output, Stdio},
};

use common::{PROGRAM, SECTION, Section, eventually, stderr, stdout};
use libtest_mimic::Trial;

fn main() -> ExitCode {
    let trials = [
        ("shells_with_different_surroundings_meet", meet as fn()),
        ("a_symlink_in_its_place_is_refused", symlink_refused),
        ("a_directory_of_somebody_else_is_refused", foreign_refused),
        ("a_store_that_may_not_be_written_is_refused", read_only_refused),
    ];
    let ignored = !rustix::process::geteuid().is_root();
    let trials = trials.into_iter().map(|(name, test)| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
        .with_ignored_flag(ignored)
    });
    common::run(trials.collect())
}

/// A user, and the program where that user can execute it.
struct User {
    uid: u32,
    dir: tempfile::TempDir,
}

impl User {
    fn new(uid: u32) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        // By another process: this one's other tests start programs meanwhile, which would inherit
        // the open copy for a moment, and a file that is open for writing cannot be executed.
        let copied = Command::new("cp").arg(PROGRAM).arg(dir.path().join("leasehold")).status();
        assert!(copied.unwrap().success());
        Self { uid, dir }
    }

    /// `leasehold ARGS…` as this user, with nothing but `variables` in the environment.
    fn leasehold(&self, variables: &[&str], args: &[&str]) -> Command {
        let mut command = Command::new("setpriv");
        let id = self.uid.to_string();
        command
            .args([&format!("--reuid={id}"), &format!("--regid={id}"), "--clear-groups"])
            .args(["env", "-i"])
            .args(variables)
            .arg(self.dir.path().join("leasehold"))
            .args(args)
            .current_dir("/")
            .stdin(Stdio::null());
        command
    }

    fn output(&self, variables: &[&str], args: &[&str]) -> Output {
        self.leasehold(variables, args).output().unwrap()
    }

    /// The store's directory of a user without a home.
    fn place(&self) -> PathBuf {
        PathBuf::from(format!("/var/tmp/leasehold-{}", self.uid))
    }
}

fn meet() {
    let nobody = User::new(65_534);
    let own = tempfile::tempdir().unwrap();
    chown(own.path(), Some(65_534), Some(65_534)).unwrap();
    let own = own.path().to_str().unwrap();
    let other = [
        &format!("HOME={own}"),
        &format!("XDG_STATE_HOME={own}/state"),
        &format!("XDG_DATA_HOME={own}/data"),
        &format!("XDG_RUNTIME_DIR={own}"),
        &format!("TMPDIR={own}"),
        "USER=root",
        "LOGNAME=root",
        "LEASEHOLD_STORE=",
    ];
    // The store is that of a real user of this machine: names of our own, and nothing removed.
    let name = &format!("test-{}", std::process::id());

    let mut holder =
        Section::start(nobody.leasehold(&[], &["run", name, "--", "sh", "-c", SECTION]));
    holder.is_in();
    let refused = nobody.output(&other, &["run", name, "--no-wait", "--", "true"]);
    assert_eq!(refused.status.code(), Some(75), "{refused:?}");
    let lists = [nobody.output(&[], &["list"]), nobody.output(&other, &["list"])];
    assert_eq!(stderr(&lists[0]), stderr(&lists[1]), "the place is not the same");
    for list in &lists {
        assert!(stdout(list).contains(name.as_str()), "{list:?}");
        assert!(stderr(list).contains("/var/tmp/leasehold-65534"), "{list:?}");
    }
    let mut waiter =
        Section::start(nobody.leasehold(&other, &["run", name, "--", "sh", "-c", SECTION]));
    eventually("the other one waits", || {
        stdout(&nobody.output(&[], &["show", name])).contains("waiter 1:")
    });
    assert_eq!(holder.finish(), Some(0));
    waiter.is_in();
    assert_eq!(waiter.finish(), Some(0));

    let place = fs::symlink_metadata(nobody.place()).unwrap();
    assert!(place.is_dir());
    assert_eq!((place.uid(), place.mode() & 0o7777), (65_534, 0o700));
    assert_eq!(
        fs::read_dir(own).unwrap().count(),
        0,
        "something was left in the environment's places"
    );
}

fn symlink_refused() {
    let user = User::new(64_731);
    let target = tempfile::tempdir().unwrap();
    chown(target.path(), Some(user.uid), Some(user.uid)).unwrap();
    let _gone = Remove::first(&user.place());
    symlink(target.path(), user.place()).unwrap();
    refused(&user);
    assert_eq!(fs::read_dir(target.path()).unwrap().count(), 0);
}

fn foreign_refused() {
    let user = User::new(64_732);
    let _gone = Remove::first(&user.place());
    fs::create_dir(user.place()).unwrap();
    // Even one that lets the user in.
    fs::set_permissions(user.place(), fs::Permissions::from_mode(0o777)).unwrap();
    refused(&user);
    assert_eq!(fs::read_dir(user.place()).unwrap().count(), 0);
}

#[track_caller]
fn refused(user: &User) {
    for args in [&["run", "n", "--", "echo", "ran"][..], &["list"], &["show", "n"]] {
        let output = user.output(&[], args);
        assert_eq!(output.status.code(), Some(69), "{args:?}: {output:?}");
        assert_eq!(stdout(&output), "");
        let place = user.place().display().to_string();
        assert!(stderr(&output).contains(&place), "{output:?}");
    }
}

fn read_only_refused() {
    let user = User::new(64_733);
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let url = format!("sqlite:{}", dir.path().join("locks.db").display());
    let output = user.output(&[], &["run", "n", "--store", &url, "--", "echo", "ran"]);
    assert_eq!(output.status.code(), Some(69), "{output:?}");
    assert_eq!(stdout(&output), "");
    assert!(stderr(&output).contains("locks.db"), "{output:?}");
}

/// Removes what a test has made in a shared place, before and after it.
struct Remove(PathBuf);

impl Remove {
    fn first(path: &Path) -> Self {
        let remove = Self(path.to_owned());
        remove.remove();
        remove
    }

    fn remove(&self) {
        let _ = fs::remove_file(&self.0);
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Drop for Remove {
    fn drop(&mut self) {
        self.remove();
    }
}
