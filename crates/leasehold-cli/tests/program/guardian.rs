//! `kill -9` of `run` where the lock passes on with it: the command's group is ended at once.

use std::{
    collections::HashSet,
    fs,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::common::{PROGRAM, SECTION, Section, Store, eventually, lives};
use rustix::process::{Pid, Signal, getpgid, kill_process};

trials! {
    the_whole_group_of_a_killed_run_is_ended_at_once,
    without_a_ttl_on_a_store_that_proves_death_there_is_none,
    with_keep_going_the_command_of_a_killed_run_goes_on,
    what_a_command_leaves_behind_is_left_alone_when_it_ends_by_itself,
    killed_at_any_moment_it_leaves_nobody,
    a_killed_guardian_is_replaced,
    both_killed_at_once_the_ttl_is_what_is_left,
    no_signal_but_kill_reaches_the_guardian_and_it_keeps_nothing_open,
    the_gate_and_the_guardian_are_no_descriptors_of_the_command,
}

/// A tenth of the TTL, for busy machines; on an idle one it takes milliseconds.
const AT_ONCE: Duration = Duration::from_secs(3);

/// A pipeline and a background process, whose five processes ignore all that asks politely.
const STUBBORN: &str = "trap '' TERM INT HUP QUIT; exec 3<&0 4>&1; \
    sh -c 'sh -c \"echo in \\$\\$ >&4; read line; exit\" <&3; read line' <&3 & \
    sh -c 'echo in $$ >&4; read line' <&3 | sh -c 'echo in $$ >&4; cat' & \
    echo in $$; read line; wait";

/// Every process, with what it was started as.
fn processes() -> Vec<(Pid, String)> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let number = |entry: &fs::DirEntry| entry.file_name().to_str()?.parse::<i32>().ok();
    let with_line = |pid: i32| {
        let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).ok()?;
        Some((Pid::from_raw(pid)?, line.replace('\0', " ")))
    };
    entries.filter_map(|entry| number(&entry)).filter_map(with_line).collect()
}

fn parent(pid: Pid) -> Option<Pid> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    Pid::from_raw(rest.split_whitespace().nth(1)?.parse().ok()?)
}

/// The guardian of a `run`, if it has one.
fn guardian(run: Pid) -> Option<Pid> {
    let is_it = |(pid, line): &(Pid, String)| {
        line.contains("__guard") && parent(*pid) == Some(run) && lives(*pid)
    };
    processes().into_iter().find(is_it).map(|(pid, _)| pid)
}

fn the_whole_group_of_a_killed_run_is_ended_at_once() {
    let store = Store::new();
    let killed = store.script(&["n", "--ttl", "30s"], STUBBORN);
    let group = [killed.is_in(), killed.is_in(), killed.is_in(), killed.is_in()];
    assert_eq!(group.iter().collect::<HashSet<_>>().len(), 4);
    let watching = guardian(killed.pid()).expect("there is a guardian");
    let start = Instant::now();
    killed.signal(Signal::KILL);
    for pid in group {
        eventually("a process of the group is ended", || !lives(pid));
    }
    assert!(start.elapsed() < AT_ONCE, "it took {:?}", start.elapsed());
    eventually("the guardian ends, too", || !lives(watching));
    let next = store.output(&["run", "n", "--wait", "10s", "--", "true"]);
    assert!(next.status.success(), "{next:?}");
}

fn without_a_ttl_on_a_store_that_proves_death_there_is_none() {
    let store = Store::new();
    for (args, expected) in [
        (&["n"][..], false),
        (&["n", "--ttl", "30s"], true),
        (&["n", "--ttl", "30s", "--close"], true),
        (&["n", "--ttl", "30s", "--keep-going"], false),
    ] {
        let mut section = store.section(args);
        section.is_in();
        assert_eq!(guardian(section.pid()).is_some(), expected, "{args:?}");
        assert_eq!(section.finish(), Some(0), "{args:?}");
    }
}

fn with_keep_going_the_command_of_a_killed_run_goes_on() {
    let store = Store::new();
    let killed = store.section(&["n", "--ttl", "1s", "--keep-going"]);
    let command = killed.is_in();
    killed.signal(Signal::KILL);
    let next = store.output(&["run", "n", "--wait", "20s", "--", "true"]);
    assert!(next.status.success(), "its TTL is over: {next:?}");
    assert!(lives(command));
}

fn what_a_command_leaves_behind_is_left_alone_when_it_ends_by_itself() {
    let store = Store::new();
    let script = "exec 3<&0; sh -c 'echo in $$; read line; read line' <&3 >&2 2>&1 & echo in $!";
    let mut section = store.script(&["n", "--ttl", "30s"], script);
    let left = section.is_in();
    assert_eq!(section.end().code(), Some(0));
    eventually("the guardian has ended", || guardian(section.pid()).is_none());
    assert!(lives(left), "it is nobody's business any more");
    section.go_on();
    eventually("it ends by itself", || !lives(left));
}

/// Kills `run` at moments spread over its whole life; whatever has begun must be ended.
fn killed_at_any_moment_it_leaves_nobody() {
    let store = Store::new();
    let mark = format!("mark-{}", std::process::id());
    thread::scope(|scope| {
        for worker in 0..4_u64 {
            let (store, mark) = (&store, &mark);
            scope.spawn(move || {
                for round in 0..12_u64 {
                    let name = format!("n{worker}");
                    let script =
                        format!(": {mark}; trap '' TERM HUP INT; while :; do sleep 5; done");
                    let mut run = store
                        .leasehold(&["run", &name, "--ttl", "60s", "--", "sh", "-c", &script])
                        .stdout(Stdio::null())
                        .spawn()
                        .unwrap();
                    // sleep: reason: a moment to be killed at, spread over start and hold.
                    thread::sleep(Duration::from_micros(worker * 900 + round * 3700));
                    run.kill().unwrap();
                    run.wait().unwrap();
                }
            });
        }
    });
    let left = || -> Vec<_> {
        let is_left = |(pid, line): &(Pid, String)| line.contains(mark.as_str()) && lives(*pid);
        processes().into_iter().filter(is_left).collect()
    };
    eventually("nobody is left", || left().is_empty());
    store.wait_for_counts(0, 0);
}

fn a_killed_guardian_is_replaced() {
    let store = Store::new();
    let run = store.script(&["n", "--ttl", "30s", "-v"], SECTION);
    let command = run.is_in();
    let first = guardian(run.pid()).unwrap();
    kill_process(first, Signal::KILL).unwrap();
    let mut second = None;
    eventually("another guardian watches", || {
        second = guardian(run.pid()).filter(|pid| *pid != first);
        second.is_some()
    });
    assert!(lives(command), "the command goes on meanwhile");
    run.signal(Signal::KILL);
    eventually("the command is ended", || !lives(command));
}

fn both_killed_at_once_the_ttl_is_what_is_left() {
    let store = Store::new();
    let run = store.section(&["n", "--ttl", "1s"]);
    let command = run.is_in();
    let watching = guardian(run.pid()).unwrap();
    // Stopped, it can replace nobody.
    run.signal(Signal::STOP);
    kill_process(watching, Signal::KILL).unwrap();
    run.signal(Signal::KILL);
    let next = store.output(&["run", "n", "--wait", "20s", "--", "true"]);
    assert!(next.status.success(), "{next:?}");
    assert!(lives(command), "nobody is there to end it: docs/cli.md says so");
}

fn no_signal_but_kill_reaches_the_guardian_and_it_keeps_nothing_open() {
    let store = Store::new();
    let mut shell = Command::new("sh");
    // A descriptor that `run` is given for its command, and a directory.
    let script = format!("exec 9>held; exec '{PROGRAM}' run n --ttl 30s -- sh -c '{SECTION}'");
    store.surround(&mut shell).current_dir(store.dir()).args(["-c", &script]);
    let mut run = Section::start(shell);
    let command = run.is_in();
    let watching = guardian(run.pid()).unwrap();
    assert_ne!(getpgid(Some(watching)).unwrap(), getpgid(Some(run.pid())).unwrap());
    assert_ne!(getpgid(Some(watching)).unwrap(), getpgid(Some(command)).unwrap());
    for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT, Signal::USR1] {
        kill_process(watching, signal).unwrap();
    }
    let of = |what: &str| format!("/proc/{}/{what}", watching.as_raw_nonzero());
    eventually("it has only its standard streams", || {
        fs::read_dir(of("fd")).is_ok_and(|entries| {
            entries
                .flatten()
                .all(|entry| matches!(entry.file_name().to_str(), Some("0" | "1" | "2")))
        })
    });
    assert_eq!(fs::read_link(of("cwd")).unwrap(), fs::canonicalize("/").unwrap());
    assert!(fs::read_link(format!("/proc/{}/fd/9", command.as_raw_nonzero())).is_ok());
    assert!(lives(watching), "it was ended by a signal");
    assert_eq!(run.finish(), Some(0));
    eventually("the guardian ends with run", || !lives(watching));
}

fn the_gate_and_the_guardian_are_no_descriptors_of_the_command() {
    let store = Store::new();
    let count = |args: &[&str]| {
        let mut command = store.leasehold(args);
        let output = command.args(["--", "ls", "/proc/self/fd"]).output().unwrap();
        String::from_utf8(output.stdout).unwrap().lines().count()
    };
    assert_eq!(count(&["run", "n", "--ttl", "30s"]), count(&["run", "n"]));
    let script = "grep -E '^Sig(Blk|Ign)' /proc/self/status";
    let guarded = store.output(&["run", "n", "--ttl", "30s", "--", "sh", "-c", script]);
    let plain = store.output(&["run", "n", "--", "sh", "-c", script]);
    assert_eq!(guarded.stdout, plain.stdout, "signals are as without a guardian");
}
