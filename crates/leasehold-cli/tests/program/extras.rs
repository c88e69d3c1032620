//! What `run` does beyond one lock and one command.

use std::{
    fs,
    time::{Duration, Instant},
};

use crate::common::{PROGRAM, Store, eventually, stderr, stdout};
use rustix::process::Signal;
use serde_json::Value;

trials! {
    several_locks_are_acquired_together_and_told,
    several_locks_in_opposite_orders_do_not_deadlock,
    a_run_of_one_lock_forgets_the_numbers_of_an_outer_run_of_several,
    losing_one_of_several_ends_the_command,
    names_that_begin_with_a_dash,
    max_hold_ends_the_command_whatever_it_does,
    keep_going_outlives_a_lost_lease_and_passes_its_code_on,
    skip_takes_busy_quietly_and_nothing_else,
    a_waiter_that_is_cancelled_is_no_skip,
    at_most_once_per_counts_successes_by_the_store,
    at_most_once_per_lets_the_next_one_in_after_the_time,
    a_success_that_is_too_old_for_this_run_is_none,
    who_waited_behind_a_success_does_not_repeat_it,
    a_run_that_waits_for_itself_is_told,
    messages_as_documents,
    the_store_is_named_before_or_after_the_command,
    a_child_that_makes_itself_a_daemon_is_left_alone_but_holds_what_it_inherits,
    signals_while_the_lease_is_being_lost_do_not_save_the_command,
    the_missing_separator_is_told,
}

fn several_locks_are_acquired_together_and_told() {
    let store = Store::new();
    let script = "echo $LEASEHOLD_NAME $LEASEHOLD_NAME_2 $LEASEHOLD_NAME_3; \
                  echo $LEASEHOLD_TICKET_2; env | grep -c LEASEHOLD_FENCING_TOKEN; echo in $$; read line; exit 0";
    let mut section = store.script(&["b", "a", "a"], script);
    assert_eq!(section.line().as_deref(), Some("a b"), "in one order for everybody, each once");
    assert!(section.line().unwrap().starts_with("lh1/default/mutex/b/"));
    assert_eq!(section.line().as_deref(), Some("2"));
    section.is_in();
    assert_eq!(store.counts(), (2, 0));
    for name in ["a", "b"] {
        let busy = store.output(&["run", name, "--no-wait", "--", "true"]);
        assert_eq!(busy.status.code(), Some(75), "{name}");
    }
    assert_eq!(section.finish(), Some(0));
    assert_eq!(store.counts(), (0, 0));
}

fn several_locks_in_opposite_orders_do_not_deadlock() {
    let store = Store::new();
    let mut holder = store.section(&["b"]);
    holder.is_in();
    let mut one = store.section(&["a", "b"]);
    let mut other = store.section(&["b", "a"]);
    eventually("one waits for b and the other for a", || store.counts() == (2, 2));
    let refused = store.output(&["run", "c", "b", "--wait", "50ms", "--", "true"]);
    assert_eq!(refused.status.code(), Some(75));
    assert_eq!(store.counts(), (2, 2), "what it had, it has given back");
    assert_eq!(holder.finish(), Some(0));
    one.go_on();
    other.go_on();
    assert_eq!((one.end().code(), other.end().code()), (Some(0), Some(0)));
}

fn a_run_of_one_lock_forgets_the_numbers_of_an_outer_run_of_several() {
    let store = Store::new();
    let script = format!("'{PROGRAM}' run c -- sh -c 'echo $LEASEHOLD_NAME:$LEASEHOLD_NAME_2'");
    let output = store.output(&["run", "a", "b", "--", "sh", "-c", &script]);
    assert_eq!(stdout(&output), "c:\n", "{output:?}");
}

fn losing_one_of_several_ends_the_command() {
    let store = Store::new();
    let mut section = store.section(&["a", "b"]);
    section.is_in();
    let broken = store.output(&["break", "b", "--yes"]);
    assert!(broken.status.success(), "{broken:?}");
    assert_eq!(section.end().code(), Some(79));
    assert!(section.errors().starts_with("leasehold: mutex \"b\": the lease was lost"));
    assert_eq!(store.counts(), (0, 0));
}

fn names_that_begin_with_a_dash() {
    let store = Store::new();
    let output = store.output(&["run", "--name=-x", "--", "sh", "-c", "echo $LEASEHOLD_NAME"]);
    assert_eq!(stdout(&output), "-x\n", "{output:?}");
    let mut section = store.section(&["--name=-x", "--name", "y"]);
    section.is_in();
    for args in [&["show", "--", "-x"][..], &["show", "--name=-x"], &["show", "y"]] {
        assert!(store.output(args).status.success(), "{args:?}");
    }
    assert_eq!(section.finish(), Some(0));
}

fn max_hold_ends_the_command_whatever_it_does() {
    let store = Store::new();
    let script = "trap '' TERM; echo in $$; read line";
    let start = Instant::now();
    let mut section = store.script(&["n", "--max-hold", "300ms", "--grace", "200ms"], script);
    section.is_in();
    assert_eq!(section.end().code(), Some(79));
    assert!(start.elapsed() >= Duration::from_millis(500), "{:?}", start.elapsed());
    let why = "leasehold: mutex \"n\": held for 300ms, as long as --max-hold allows; the command was \
               ended\n";
    assert_eq!(section.errors(), why);
    assert_eq!(store.counts(), (0, 0));
    let quick = store.output(&["run", "n", "--max-hold", "20s", "--", "sh", "-c", "exit 3"]);
    assert_eq!(quick.status.code(), Some(3), "{quick:?}");
}

fn keep_going_outlives_a_lost_lease_and_passes_its_code_on() {
    let store = Store::new();
    let mut section = store.script(&["n", "--keep-going"], "echo in $$; read line; exit 4");
    section.is_in();
    assert!(store.output(&["break", "n", "--yes"]).status.success());
    let mut next = store.section(&["n"]);
    next.is_in();
    assert_eq!(section.finish(), Some(4));
    let errors = section.errors();
    assert!(errors.starts_with("leasehold: warning: mutex \"n\": the lease was lost"), "{errors}");
    assert!(errors.ends_with("; the command goes on\n"), "{errors}");
    assert_eq!(store.counts(), (1, 0), "it takes nothing from who came next");
    assert_eq!(next.finish(), Some(0));
}

fn skip_takes_busy_quietly_and_nothing_else() {
    let store = Store::new();
    let mut holder = store.section(&["n"]);
    holder.is_in();
    for args in [
        &["run", "n", "--skip"][..],
        &["run", "n", "--skip", "--no-wait"],
        &["run", "n", "--skip", "--wait", "50ms"],
    ] {
        let output = store.output(&[args, &["--", "echo", "ran"]].concat());
        let seen = (output.status.code(), stdout(&output), stderr(&output));
        assert_eq!(seen, (Some(0), String::new(), String::new()), "{args:?}");
    }
    let told = stderr(&store.output(&["run", "n", "--skip", "-v", "--", "true"]));
    assert!(told.contains("not free") && told.contains("skipped"), "{told}");
    let mismatch =
        store.output(&["run", "n", "--skip", "--store", "sqlite:/no/such/dir/x", "--", "true"]);
    assert_eq!(mismatch.status.code(), Some(69), "no failure is skipped");
    assert_eq!(holder.finish(), Some(0));
    let output = store.output(&["run", "n", "--skip", "--", "echo", "ran"]);
    assert_eq!(stdout(&output), "ran\n");
}

fn a_waiter_that_is_cancelled_is_no_skip() {
    let store = Store::new();
    let mut holder = store.section(&["n"]);
    holder.is_in();
    let mut waiter = store.section(&["n", "--skip", "--wait", "1h"]);
    store.wait_for_counts(1, 1);
    assert!(store.output(&["cancel", "n"]).status.success());
    assert_eq!(waiter.end().code(), Some(75));
    assert_eq!(holder.finish(), Some(0));
}

fn at_most_once_per_counts_successes_by_the_store() {
    let store = Store::new();
    let log = store.dir().join("log");
    let run = |script: &str| {
        let script = format!("echo ran >>'{}'; {script}", log.display());
        let args = ["run", "n", "--at-most-once-per", "1h", "--", "sh", "-c", &script];
        store.output(&args).status.code()
    };
    let runs = || fs::read_to_string(&log).unwrap_or_default().lines().count();
    assert_eq!(run("exit 3"), Some(3));
    assert_eq!(run("exit 0"), Some(0), "a failure does not count");
    assert_eq!(runs(), 2);
    assert_eq!((run("exit 5"), runs()), (Some(0), 2), "skipped");
    let told = store.output(&["run", "n", "--at-most-once-per", "1h", "-v", "--", "true"]);
    assert!(stderr(&told).contains("\"n\" has succeeded"), "{told:?}");
    let other = store.output(&["run", "m", "--at-most-once-per", "1h", "--", "echo", "ran"]);
    assert_eq!(stdout(&other), "ran\n", "another lock has its own");
    let free = store.output(&["run", "n", "--", "echo", "ran"]);
    assert_eq!(stdout(&free), "ran\n", "without the option nothing is skipped");
    let forget = ["break", "n", "--namespace", "default!last-success", "--yes"];
    assert!(store.output(&forget).status.success());
    assert_eq!((run("exit 0"), runs()), (Some(0), 3));
}

fn at_most_once_per_lets_the_next_one_in_after_the_time() {
    let store = Store::new();
    let run =
        || stdout(&store.output(&["run", "n", "--at-most-once-per", "1s", "--", "echo", "ran"]));
    assert_eq!(run(), "ran\n");
    assert_eq!(run(), "");
    eventually("the time is over", || run() == "ran\n");
}

fn a_success_that_is_too_old_for_this_run_is_none() {
    let store = Store::new();
    let run = |per: &str| {
        stdout(&store.output(&["run", "n", "--at-most-once-per", per, "--", "echo", "ran"]))
    };
    assert_eq!(run("1h"), "ran\n");
    assert_eq!(run("10m"), "", "younger than either");
    eventually("it is older than that, and recorded still", || run("3s") == "ran\n");
    assert_eq!(run("10m"), "", "the newer one is recorded in its place");
}

fn who_waited_behind_a_success_does_not_repeat_it() {
    let store = Store::new();
    let mut first = store.section(&["n", "--at-most-once-per", "1h"]);
    first.is_in();
    let mut second = store.section(&["n", "--at-most-once-per", "1h"]);
    store.wait_for_counts(1, 1);
    assert_eq!(first.finish(), Some(0));
    assert_eq!(second.end().code(), Some(0));
    assert_eq!(second.line(), None, "its command must not run");
    assert_eq!(store.counts(), (0, 0));
}

fn a_run_that_waits_for_itself_is_told() {
    let store = Store::new();
    let inner = |name: &str| format!("'{PROGRAM}' run {name} --wait 300ms -- true");
    let told = |outer: &[&str], script: &str| {
        let output = store.output(&[outer, &["--", "sh", "-c", script]].concat());
        (output.status.code(), stderr(&output).contains("waits inside of a `leasehold run`"))
    };
    assert_eq!(told(&["run", "n"], &inner("n")), (Some(75), true));
    assert_eq!(told(&["run", "n"], &inner("m")), (Some(0), false));
    let between = format!("'{PROGRAM}' run m -- sh -c \"{}\"", inner("n"));
    assert_eq!(told(&["run", "n"], &between), (Some(75), true), "through another lock");
    let two = ["run", "n", "--permits", "2"];
    assert_eq!(told(&two, &inner("n --permits 2 --weight 2")), (Some(75), true), "of 2 permits");
    assert_eq!(told(&two, &inner("n --permits 2")), (Some(0), false), "there is one for each");
    // Another store is another lock, whatever the environment says.
    let other = Store::new();
    let mut holder = other.section(&["n"]);
    holder.is_in();
    let elsewhere = format!("{} --store '{}'", inner("n").replace(" -- true", ""), other.url());
    assert_eq!(told(&["run", "n"], &format!("{elsewhere} -- true")), (Some(75), false));
    assert_eq!(holder.finish(), Some(0));
}

fn messages_as_documents() {
    let store = Store::new();
    for args in [&["run", "n", "true", "--log-format", "json"][..], &["--log-format=json", "lsit"]]
    {
        let output = store.output(args);
        assert_eq!(output.status.code(), Some(64));
        let text = stderr(&output);
        let told: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        assert_eq!(told["level"], "error", "wrong usage, too: {text}");
    }
    let args = ["run", "n", "-v", "--log-format", "json", "--", "true"];
    let text = stderr(&store.output(&args));
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert_eq!(lines[1]["level"], "debug");
    assert!(lines[1]["message"].as_str().unwrap().starts_with("mutex \"n\": granted"));
    assert!(lines[1]["time"].as_str().unwrap().ends_with('Z'));
    let mut holder = store.section(&["n"]);
    holder.is_in();
    let quiet =
        store.output(&["run", "n", "-q", "--no-wait", "--log-format", "json", "--", "true"]);
    let failure: Value = serde_json::from_str(&stderr(&quiet)).unwrap();
    assert_eq!(failure["level"], "error");
    assert_eq!(holder.finish(), Some(0));
}

fn the_store_is_named_before_or_after_the_command() {
    let store = Store::new();
    let other = Store::new();
    let url = other.url();
    for args in [&["--store", &url, "list", "--json"][..], &["list", "--json", "--store", &url]] {
        assert!(stdout(&store.output(args)).contains(&url), "{args:?}");
    }
}

fn a_child_that_makes_itself_a_daemon_is_left_alone_but_holds_what_it_inherits() {
    let store = Store::new();
    let script = "exec 3<&0; setsid sh -c 'echo in $$; read line' <&3 & wait_for=$!; sleep 0.05";
    let mut section = store.script(&["n"], script);
    let daemon = section.is_in();
    assert_eq!(section.end().code(), Some(0), "run ends with its command");
    let next = store.output(&["run", "n", "--wait", "10s", "--", "true"]);
    assert!(next.status.success(), "run has given the lock back: {next:?}");
    assert!(crate::common::lives(daemon));
    section.go_on();
}

fn signals_while_the_lease_is_being_lost_do_not_save_the_command() {
    let store = Store::new();
    for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT] {
        let script = "trap '' INT TERM HUP QUIT; echo in $$; read line";
        let mut section = store.script(&["n", "--grace", "300ms"], script);
        let command = section.is_in();
        assert!(store.output(&["break", "n", "--yes"]).status.success());
        section.signal(signal);
        assert_eq!(section.end().code(), Some(79), "{signal:?}");
        eventually("the command is killed", || !crate::common::lives(command));
        assert_eq!(store.counts(), (0, 0));
    }
}

fn the_missing_separator_is_told() {
    let store = Store::new();
    let output = store.output(&["run", "n", "true"]);
    assert_eq!(output.status.code(), Some(64));
    assert!(
        stderr(&output).ends_with(
            "leasehold: the command stands after `--`: leasehold run NAME -- CMD ARGS\n"
        )
    );
}
