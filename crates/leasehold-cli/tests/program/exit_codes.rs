//! Exit code, stdout and stderr of the real program, case by case.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    process::{Command, Stdio},
};

use crate::common::{PROGRAM, Store, stderr, stdout};

trials! {
    the_command_s_own_code_is_passed_on,
    a_command_that_cannot_be_started,
    wrong_usage,
    durations_are_explained,
    a_capacity_that_is_not_the_one_in_use,
    stores_that_are_none,
    a_store_under_another_clock_is_unavailable,
    nothing_in_use,
    help_and_version,
    verbose_says_where_and_what,
    a_reader_that_has_gone_away_is_no_error,
}

/// Exit code, stdout and stderr; the test's directory is written as `DIR`.
#[track_caller]
fn check(store: &Store, args: &[&str], code: i32, out: &str, err: &str) {
    let output = store.output(args);
    let dir = store.dir().display().to_string();
    let seen = (
        output.status.code(),
        stdout(&output).replace(&dir, "DIR"),
        stderr(&output).replace(&dir, "DIR"),
    );
    assert_eq!(seen, (Some(code), out.to_owned(), err.to_owned()), "{args:?}");
}

fn the_command_s_own_code_is_passed_on() {
    let store = Store::new();
    check(&store, &["run", "n", "--", "true"], 0, "", "");
    check(&store, &["run", "n", "--", "sh", "-c", "echo a; echo b >&2; exit 7"], 7, "a\n", "b\n");
    check(&store, &["run", "n", "--", "sh", "-c", "exit 255"], 255, "", "");
    check(&store, &["run", "n", "--", "sh", "-c", "kill -TERM $$"], 143, "", "");
    check(&store, &["run", "n", "--", "sh", "-c", "kill -KILL $$"], 137, "", "");
    check(&store, &["run", "n", "--", "sh", "-c", "kill -40 $$"], 168, "", "");
}

fn a_command_that_cannot_be_started() {
    let store = Store::new();
    let command_not_found = "leasehold: no-such-program: command not found\n";
    check(&store, &["run", "n", "--", "no-such-program"], 127, "", command_not_found);
    check(
        &store,
        &["run", "n", "--", "/"],
        126,
        "",
        "leasehold: /: cannot be executed: Permission denied (os error 13)\n",
    );
    let file = store.dir().join("script");
    fs::write(&file, "echo ran by the shell\n").unwrap();
    let file_name = file.to_str().unwrap();
    check(
        &store,
        &["run", "n", "--", file_name],
        126,
        "",
        "leasehold: DIR/script: cannot be executed: Permission denied (os error 13)\n",
    );
    // As execvp(3) does it, so that a script without a first line works as it does in a shell.
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    check(&store, &["run", "n", "--", file_name], 0, "ran by the shell\n", "");
    store.wait_for_counts(0, 0);
}

fn wrong_usage() {
    let store = Store::new();
    for args in [
        &[][..],
        &["walk"],
        &["run"],
        &["run", "n"],
        &["run", "", "--", "true"],
        &["run", "n", "true"],
        &["run", "n", "--permits", "0", "--", "true"],
        &["run", "n", "--permits", "-1", "--", "true"],
        &["run", "n", "--permits", "3", "--weight", "0", "--", "true"],
        &["run", "n", "--ttl", "0", "--", "true"],
        &["run", "n", "--ttl", "100d", "--", "true"],
        &["run", "n", "--wait", "soon", "--", "true"],
        &["run", "n", "-E", "256", "--", "true"],
        &["list", "--namespace", ""],
        &["show", "n", "--kind", "rwlock"],
    ] {
        let output = store.output(args);
        assert_eq!(output.status.code(), Some(64), "{args:?}: {output:?}");
        assert_eq!(stdout(&output), "", "{args:?}");
        assert_ne!(stderr(&output), "", "{args:?}");
    }
    let long = "x".repeat(513);
    let output = store.output(&["run", &long, "--", "true"]);
    assert_eq!(output.status.code(), Some(64));
    assert!(stderr(&output).contains("longer than 512 bytes"), "{output:?}");
    check(
        &store,
        &["run", "n", "--permits", "2", "--weight", "3", "--", "true"],
        64,
        "",
        "leasehold: semaphore \"n\": a weight of 3 is above the capacity of 2\n",
    );
    let output = store.output(&["run", "n", "--label", "a\nb", "--", "true"]);
    assert_eq!(output.status.code(), Some(64), "{output:?}");
    assert!(!store.database().exists(), "wrong usage has made a store");
}

fn durations_are_explained() {
    let store = Store::new();
    let output = store.output(&["run", "n", "--wait", "10x", "--", "true"]);
    assert!(stderr(&output).contains("1h30m"), "{output:?}");
}

fn a_capacity_that_is_not_the_one_in_use() {
    let store = Store::new();
    let mut holder = store.section(&["n", "--permits", "3"]);
    holder.is_in();
    check(
        &store,
        &["run", "n", "--permits", "5", "--", "true"],
        64,
        "",
        "leasehold: semaphore \"n\": in use with a capacity of 3, asked for with a capacity of 5\n",
    );
    assert_eq!(holder.finish(), Some(0));
    check(&store, &["run", "n", "--permits", "5", "--", "true"], 0, "", "");
}

fn stores_that_are_none() {
    let store = Store::new();
    for (url, code) in [
        ("mysql://user:hunter2@host", 64),
        ("redis://user:hunter2@host:x", 64),
        ("redis://user:hunter2@127.0.0.1:1", 69),
        ("memory:", 64),
        ("locks", 64),
        ("hunter2@127.0.0.1:6379", 64),
        ("hunter2", 64),
    ] {
        let output = store.output(&["run", "n", "--store", url, "--", "true"]);
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        assert!(!stderr(&output).contains("hunter2"), "a password is shown");
    }
    fs::write(store.database(), "no database at all, and long enough to be looked at\n".repeat(9))
        .unwrap();
    for args in [&["run", "n", "--", "true"][..], &["list"], &["show", "n"]] {
        let output = store.output(args);
        assert_eq!(output.status.code(), Some(69), "{args:?}: {output:?}");
        assert!(stderr(&output).contains("locks.db"), "{output:?}");
    }
    let nowhere = store.url().replace("locks.db", "no/such/dir/locks.db");
    let output = store.output(&["run", "n", "--store", &nowhere, "--", "true"]);
    assert_eq!(output.status.code(), Some(69), "{output:?}");
}

fn a_store_under_another_clock_is_unavailable() {
    let store = Store::new();
    check(&store, &["run", "n", "--", "true"], 0, "", "");
    let boot = store.dir().join("locks.db.d/boot");
    let here = fs::read_to_string(&boot).unwrap();
    let (id, _) = here.split_once(' ').unwrap();
    fs::write(&boot, format!("{id} time:[1]\n")).unwrap();
    for args in [&["run", "n", "--", "true"][..], &["list"], &["show", "n"]] {
        let output = store.output(args);
        assert_eq!(output.status.code(), Some(69), "{args:?}: {output:?}");
        assert!(stderr(&output).contains("time namespace"), "{output:?}");
    }
}

fn nothing_in_use() {
    let store = Store::new();
    let place = "leasehold: store: sqlite:DIR/locks.db";
    let none_of = "leasehold: no lock is in use in the namespace default; `leasehold list --all` shows \
                   those of all namespaces\n";
    check(&store, &["list"], 0, "", &format!("{place} (not there yet)\n{none_of}"));
    let none_at_all = format!("{place} (not there yet)\nleasehold: no lock is in use\n");
    check(&store, &["list", "--all"], 0, "", &none_at_all);
    check(&store, &["list", "-q"], 0, "", "");
    check(&store, &["show", "n"], 1, "", "leasehold: \"n\": not in use\n");
    let kind = ["show", "n", "--kind", "mutex"];
    check(&store, &kind, 1, "", "leasehold: mutex \"n\": not in use\n");
    let empty = "{\n  \"store\": \"sqlite:DIR/locks.db\",\n  \"locks\": []\n}\n";
    check(&store, &["list", "--json"], 0, empty, "");
    let none = "{\n  \"store\": \"sqlite:DIR/locks.db\",\n  \"lock\": null\n}\n";
    check(&store, &["show", "n", "--json"], 1, none, "");
    assert!(!store.database().exists(), "looking has made a store");
    check(&store, &["run", "n", "--", "true"], 0, "", "");
    check(&store, &["list"], 0, "", &format!("{place}\n{none_of}"));
    check(&store, &["list", "--json"], 0, empty, "");
}

fn help_and_version() {
    let store = Store::new();
    for args in [&["--help"][..], &["--version"], &["run", "--help"], &["help", "list"]] {
        let output = store.output(args);
        assert_eq!(output.status.code(), Some(0), "{args:?}");
        assert_ne!(stdout(&output), "");
        assert_eq!(stderr(&output), "");
        assert!(!stdout(&output).contains("__exec"));
    }
    assert!(stdout(&store.output(&["run", "--help"])).contains("Exit codes:"));
}

fn verbose_says_where_and_what() {
    let store = Store::new();
    let output = store.output(&["run", "n", "-v", "--", "true"]);
    let text = stderr(&output).replace(&store.dir().display().to_string(), "DIR");
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0], "leasehold: store: sqlite:DIR/locks.db (not there yet)");
    assert!(lines[1].starts_with("leasehold: mutex \"n\": granted, fencing token "), "{text}");
    assert_eq!(lines.len(), 2, "{text}");
}

fn a_reader_that_has_gone_away_is_no_error() {
    let store = Store::new();
    let mut holder = store.section(&["n"]);
    holder.is_in();
    for command in ["list", "list --json", "show n", "--help"] {
        let script = format!("exec 3>&1; {{ '{PROGRAM}' {command}; echo $? >&3; }} | exec true");
        let mut shell = Command::new("sh");
        let output = store.surround(&mut shell).args(["-c", &script]).output().unwrap();
        assert_eq!(stdout(&output), "0\n", "{command}: {output:?}");
    }
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let status = store.leasehold(&["list"]).stdout(full).stderr(Stdio::null()).status().unwrap();
    assert_eq!(status.code(), Some(74));
    assert_eq!(holder.finish(), Some(0));
}
