//! The static build of docs/cli.md: one file that needs no library of the machine that it runs on.
//!
//! It is built here, unoptimized, into a target folder of its own.

#[path = "program/common.rs"]
mod common;

use std::{
    env, fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    sync::LazyLock,
};

use common::{Store, stderr, stdout};
use test_servers::{Flavor, Server};

fn main() -> ExitCode {
    let is_other = !cfg!(all(target_os = "linux", target_env = "gnu"));
    let is_root = rustix::process::geteuid().is_root();
    let no_server = Flavor::Redis70.installed().is_err();
    common::run(vec![
        common::trial("it_asks_for_no_library", no_library).with_ignored_flag(is_other),
        common::trial("it_runs_commands_on_a_file", on_file).with_ignored_flag(is_other),
        common::trial("it_runs_commands_on_a_server", on_server)
            .with_ignored_flag(is_other || no_server),
        // Only root can become somebody else.
        common::trial("who_is_not_in_the_list_of_users_has_a_store", unknown_user)
            .with_ignored_flag(is_other || !is_root),
    ])
}

static BUILT: LazyLock<PathBuf> = LazyLock::new(|| {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("static");
    let target = format!("{}-unknown-linux-gnu", env::consts::ARCH);
    let mut cargo = Command::new(env!("CARGO"));
    // What the outer cargo says of its own package is nothing for the inner one.
    for (name, _) in env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("CARGO_PKG") || name.starts_with("CARGO_MANIFEST") {
            cargo.env_remove(&*name);
        }
    }
    cargo
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("RUSTFLAGS", "-C target-feature=+crt-static")
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .args(["build", "--locked", "--offline", "-p", "leasehold-cli", "--target", &target])
        .arg("--target-dir")
        .arg(&place);
    let output = cargo.output().expect("cargo is there");
    assert!(output.status.success(), "{}", stderr(&output));
    place.join(target).join("debug/leasehold")
});

/// The types of ELF program headers that a program with libraries has: who loads them.
const PT_INTERP: u32 = 3;

fn no_library() {
    let elf = fs::read(&*BUILT).unwrap();
    assert_eq!(&elf[..5], b"\x7fELF\x02", "an ELF file of 64 bits");
    let number = |at: usize, bytes: usize| {
        let mut word = [0; 8];
        word[..bytes].copy_from_slice(&elf[at..at + bytes]);
        usize::try_from(u64::from_le_bytes(word)).unwrap()
    };
    let (table, size, count) = (number(0x20, 8), number(0x36, 2), number(0x38, 2));
    let types: Vec<_> = (0..count).map(|entry| number(table + entry * size, 4)).collect();
    assert!(types.contains(&1), "it has something to load: {types:?}");
    assert!(!types.contains(&(PT_INTERP as usize)), "it needs a loader: {types:?}");
}

/// `leasehold ARGS…` of this build on a store.
fn leasehold(store: &Store, args: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(&*BUILT);
    let output = store.surround(&mut command).args(args).output().unwrap();
    (output.status.code(), stdout(&output) + &stderr(&output))
}

fn on_file() {
    let store = Store::new();
    assert_eq!(leasehold(&store, &["run", "n", "--", "echo", "hi"]), (Some(0), "hi\n".to_owned()));
    let (code, said) = leasehold(&store, &["doctor"]);
    assert_eq!(code, Some(0), "{said}");
}

fn on_server() {
    let server = Server::start(Flavor::Redis70).expect("it is installed");
    let store = Store::on_server(&server.url(), "static");
    assert_eq!(leasehold(&store, &["run", "n", "--", "echo", "hi"]), (Some(0), "hi\n".to_owned()));
}

fn unknown_user() {
    const UID: u32 = 54_321;
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    assert!(!users.contains(&format!(":{UID}:")), "there is such a user on this machine");
    let place = PathBuf::from(format!("/var/tmp/leasehold-{UID}"));
    let was_there = place.exists();
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = dir.path().join("leasehold");
    let copied = Command::new("cp").arg(&*BUILT).arg(&program).status();
    assert!(copied.unwrap().success());
    for variables in [&[][..], &["HOME=/nonexistent"]] {
        let run = |args: &[&str]| {
            let id = UID.to_string();
            let mut command = Command::new("setpriv");
            command.args([&format!("--reuid={id}"), &format!("--regid={id}"), "--clear-groups"]);
            command.args(["env", "-i"]).args(variables).arg(&program).args(args);
            let output = command.current_dir("/").output().unwrap();
            assert!(output.status.success(), "{output:?}");
            (stdout(&output), stderr(&output))
        };
        let name = format!("test-{}", std::process::id());
        assert_eq!(run(&["run", &name, "--", "echo", "hi"]).0, "hi\n");
        let (_, told) = run(&["list"]);
        assert!(told.contains(&format!("sqlite:{}/locks.db", place.display())), "{told}");
    }
    if !was_there {
        fs::remove_dir_all(place).unwrap();
    }
}
