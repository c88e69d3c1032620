//! What the command finds in its environment.

use crate::common::{PROGRAM, Store, stdout};

trials! {
    the_lock_is_told_and_wins_over_what_is_inherited,
    nested_runs_see_the_inner_lock,
    an_adopted_grant_is_told_like_one_that_was_waited_for,
    nothing_is_inherited_but_the_standard_streams_and_the_lock,
    signals_are_as_a_command_expects_them,
}

const PRINT: &str =
    "echo $LEASEHOLD_NAME $LEASEHOLD_FENCING_TOKEN $LEASEHOLD_STORE $LEASEHOLD_TICKET";

fn the_lock_is_told_and_wins_over_what_is_inherited() {
    let store = Store::new();
    let mut command = store.leasehold(&["run", "mine", "--", "sh", "-c", PRINT]);
    command.env("LEASEHOLD_NAME", "stale").env("LEASEHOLD_FENCING_TOKEN", "1");
    command.env("LEASEHOLD_TICKET", "stale");
    let text = stdout(&command.output().unwrap());
    let fields: Vec<_> = text.split_whitespace().collect();
    assert_eq!(fields[0], "mine");
    assert!(fields[1].parse::<u64>().unwrap() > 1);
    assert_eq!(fields[2], store.url(), "the store is passed on");
    assert!(fields[3].starts_with("lh1/default/mutex/mine/"), "the ticket wins too");
}

fn nested_runs_see_the_inner_lock() {
    let store = Store::new();
    let script = format!("{PRINT}; '{PROGRAM}' run inner -- sh -c '{PRINT}'; {PRINT}");
    let text = stdout(&store.output(&["run", "outer", "--", "sh", "-c", &script]));
    let lines: Vec<Vec<_>> = text.lines().map(|line| line.split(' ').collect()).collect();
    let [before, inner, after] = &lines[..] else { panic!("three lines, not {text}") };
    assert_eq!((before[0], inner[0], after[0]), ("outer", "inner", "outer"));
    assert_eq!(before[1], after[1]);
    assert_ne!(before[1], inner[1]);
    assert_eq!(before[3], after[3]);
    assert!(inner[3].starts_with("lh1/default/mutex/inner/"), "the ticket is the inner one");
}

fn an_adopted_grant_is_told_like_one_that_was_waited_for() {
    let store = Store::new();
    let acquired = store.output(&["acquire", "a b", "--ttl", "10m", "--json"]);
    let document: serde_json::Value = serde_json::from_slice(&acquired.stdout).unwrap();
    let ticket = document["ticket"].as_str().unwrap();
    let script = "echo \"$LEASEHOLD_NAME\"; echo $LEASEHOLD_FENCING_TOKEN $LEASEHOLD_TICKET";
    let output = store.output(&["adopt", ticket, "--", "sh", "-c", script]);
    let expected = format!("a b\n{} {ticket}\n", document["fencing_token"]);
    assert_eq!(stdout(&output), expected, "the ticket stays, and so does the fencing token");
}

fn nothing_is_inherited_but_the_standard_streams_and_the_lock() {
    let store = Store::new();
    // `ls` itself opens the directory it lists.
    let count = |args: &[&str]| {
        let mut command = store.leasehold(args);
        let output = command.args(["--", "ls", "/proc/self/fd"]).output().unwrap();
        stdout(&output).lines().count()
    };
    let without = count(&["run", "n", "--close"]);
    let inherited = count(&["run", "n"]);
    assert_eq!(inherited, without + 1, "the lock is inherited, and only the lock");
    let ticket = || store.ticket(&["n", "--ttl", "10m"]);
    assert_eq!(count(&["adopt", &ticket()]), inherited);
    assert_eq!(count(&["adopt", &ticket(), "--close"]), without);
    let shell = std::process::Command::new("ls").arg("/proc/self/fd").output().unwrap();
    assert_eq!(without, stdout(&shell).lines().count(), "--close leaves the standard streams");
}

fn signals_are_as_a_command_expects_them() {
    let store = Store::new();
    let script = "grep -E '^Sig(Blk|Ign)' /proc/self/status";
    // Started like the program: see `Store::leasehold`.
    let shell = ["--default-signal", "sh", "-c", script];
    let plain = std::process::Command::new("env").args(shell).output().unwrap();
    let under = store.output(&["run", "n", "--", "sh", "-c", script]);
    assert_eq!(stdout(&under), stdout(&plain));
}
