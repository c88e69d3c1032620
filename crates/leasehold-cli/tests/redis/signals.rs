//! Whatever ends a `run`, it leaves nothing held beyond its TTL and no process of its group, on a
//! server as on a store that proves the death of processes.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, test_kill_process_group};

use crate::{
    common::{PROGRAM, SECTION, Section, Store, catches, eventually, lives},
    session::Session,
};

/// A trial on whatever store.
type Test = fn(&Store);

pub(crate) const ALL: [(&str, Test); 13] = [
    ("a_signal_ends_a_wait_at_once", waiting),
    ("a_signal_ends_the_command_and_gives_the_lock_back", holding),
    ("no_signal_saves_a_command_whose_lease_is_lost", during_loss),
    ("a_command_that_ignores_term_keeps_the_lock_until_run_is_killed", ignores_term),
    ("a_daemon_is_left_alone_and_holds_nothing", daemon),
    ("a_daemon_of_a_killed_run_holds_nothing_beyond_the_ttl", daemon_of_killed),
    ("a_closed_terminal_ends_who_holds", closed_terminal),
    ("a_closed_terminal_ends_who_waits", closed_terminal_of_waiter),
    ("a_closed_terminal_saves_no_command_whose_lease_is_lost", closed_terminal_during_loss),
    ("a_daemon_of_a_lost_lease_is_left_alone_and_holds_nothing", daemon_of_lost),
    ("a_signal_ends_acquire_wait_and_watch", those_without_a_command),
    ("a_signal_ends_the_command_of_adopt_and_gives_the_grant_back", adopting),
    ("a_signal_while_the_grace_runs_ends_nothing_early", during_grace),
];

const SIGNALS: [Signal; 4] = [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT];
const STUBBORN: &str = "trap '' INT TERM HUP QUIT; echo in $$; read line";
/// The daemon ends by itself after a while, whatever becomes of the test.
const DAEMON: &str = "setsid sh -c 'echo in $$; exec sleep 90 </dev/null >/dev/null 2>&1' & \
                      read line; echo in $$; read line";

/// No process of the group is left.
fn group_is_gone(leader: Pid) {
    eventually("the group is gone", || test_kill_process_group(leader).is_err());
}

fn waiting(store: &Store) {
    let mut holder = store.section(&["n"]);
    holder.is_in();
    for signal in SIGNALS {
        let mut waiter = store.section(&["n"]);
        store.wait_for_counts(1, 1);
        waiter.signal(signal);
        assert_eq!(waiter.end().code(), Some(128 + signal.as_raw()), "{signal:?}");
        assert_eq!(waiter.line(), None, "its command must not run");
        assert_eq!(store.counts(), (1, 0), "it has left the queue itself: {signal:?}");
    }
    assert_eq!(holder.finish(), Some(0));
}

fn holding(store: &Store) {
    for signal in SIGNALS {
        let mut section = store.section(&["n", "--ttl", "60s"]);
        let command = section.is_in();
        section.signal(signal);
        assert_eq!(section.end().code(), Some(128 + signal.as_raw()), "{signal:?}");
        assert_eq!(store.counts(), (0, 0), "not after its TTL: {signal:?}");
        group_is_gone(command);
    }
}

fn during_loss(store: &Store) {
    for signal in SIGNALS {
        let mut section = store.script(&["n", "--ttl", "60s", "--grace", "300ms"], STUBBORN);
        let command = section.is_in();
        assert!(store.output(&["break", "n", "--yes"]).status.success());
        section.signal(signal);
        assert_eq!(section.end().code(), Some(79), "{signal:?}");
        group_is_gone(command);
        assert_eq!(store.counts(), (0, 0), "{signal:?}");
    }
}

fn ignores_term(store: &Store) {
    let section = store.script(&["n", "--ttl", "2s"], STUBBORN);
    let command = section.is_in();
    for signal in SIGNALS {
        section.signal(signal);
    }
    let refused = store.output(&["run", "n", "--wait", "2500ms", "--", "true"]);
    assert_eq!(refused.status.code(), Some(75), "its lease is renewed as before: {refused:?}");
    assert!(lives(command), "the command decides");
    section.signal(Signal::KILL);
    group_is_gone(command);
    let next = store.output(&["run", "n", "--wait", "20s", "--", "true"]);
    assert!(next.status.success(), "nothing is held beyond the TTL: {next:?}");
}

fn daemon(store: &Store) {
    let mut section = store.script(&["n", "--ttl", "60s"], DAEMON);
    let daemon = section.is_in();
    section.say("go on");
    let command = section.is_in();
    section.say("end");
    assert_eq!(section.end().code(), Some(0), "run ends with its command");
    assert_eq!(store.counts(), (0, 0));
    assert!(lives(daemon), "it has left the group, and is nobody's business");
    group_is_gone(command);
    kill_process(daemon, Signal::KILL).unwrap();
}

fn daemon_of_killed(store: &Store) {
    let mut section = store.script(&["n", "--ttl", "2s"], DAEMON);
    let daemon = section.is_in();
    section.say("go on");
    let command = section.is_in();
    let start = Instant::now();
    section.signal(Signal::KILL);
    group_is_gone(command);
    let next = store.output(&["run", "n", "--wait", "20s", "--", "true"]);
    assert!(next.status.success(), "{next:?}");
    // The TTL, and what a busy machine adds.
    assert!(start.elapsed() < Duration::from_secs(8), "{:?}", start.elapsed());
    assert!(lives(daemon), "docs/cli.md says so: the guardian ends the group");
    kill_process(daemon, Signal::KILL).unwrap();
}

fn closed_terminal(store: &Store) {
    let mut session = Session::start(store, &["sh", "-i"]);
    session.shows("$ ");
    let script = "echo i\"\"n $$.; while :; do sleep 5; done";
    session.types(&format!("'{PROGRAM}' run n --ttl 60s -- sh -c '{script}'\n"));
    let command = session.shows_pid();
    assert_eq!(store.counts(), (1, 0));
    session.hang_up();
    group_is_gone(command);
    store.wait_for_counts(0, 0);
}

fn closed_terminal_of_waiter(store: &Store) {
    let mut holder = store.section(&["n", "--ttl", "60s"]);
    holder.is_in();
    let mut session = Session::start(store, &["sh", "-i"]);
    session.shows("$ ");
    session.types(&format!("'{PROGRAM}' run n -- sh -c '{SECTION}'\n"));
    store.wait_for_counts(1, 1);
    let waiter = store.list()[0]["waiters"][0]["pid"].as_i64().and_then(|pid| pid.try_into().ok());
    let waiter = waiter.and_then(Pid::from_raw).expect("a process id");
    session.hang_up();
    eventually("the waiter has ended", || !lives(waiter));
    assert_eq!(store.counts(), (1, 0), "it has left the queue itself");
    assert!(kill_process(holder.pid(), Signal::CONT).is_ok(), "the holder has heard nothing");
    assert_eq!(holder.finish(), Some(0));
}

fn closed_terminal_during_loss(store: &Store) {
    let mut session = Session::start(store, &["sh", "-i"]);
    session.shows("$ ");
    let script = "trap \"\" TERM HUP; echo i\"\"n $$.; while :; do sleep 5; done";
    session.types(&format!("'{PROGRAM}' run n --ttl 60s --grace 2s -- sh -c '{script}'\n"));
    let command = session.shows_pid();
    assert!(store.output(&["break", "n", "--yes"]).status.success());
    session.hang_up();
    group_is_gone(command);
    assert_eq!(store.counts(), (0, 0));
}

fn daemon_of_lost(store: &Store) {
    let mut section = store.script(&["n", "--ttl", "60s", "--grace", "300ms"], DAEMON);
    let daemon = section.is_in();
    section.say("go on");
    let command = section.is_in();
    assert!(store.output(&["break", "n", "--yes"]).status.success());
    assert_eq!(section.end().code(), Some(79));
    group_is_gone(command);
    assert_eq!(store.counts(), (0, 0));
    assert!(lives(daemon), "it has left the group, and is nobody's business");
    kill_process(daemon, Signal::KILL).unwrap();
}

fn those_without_a_command(store: &Store) {
    let mut holder = store.section(&["n", "--ttl", "60s"]);
    holder.is_in();
    for signal in SIGNALS {
        let mut acquire = Section::start(store.leasehold(&["acquire", "n", "--ttl", "10m"]));
        store.wait_for_counts(1, 1);
        let mut wait = Section::start(store.leasehold(&["wait", "n"]));
        let mut watch = Section::start(store.leasehold(&["watch", "n"]));
        assert!(watch.line().is_some(), "it watches");
        eventually("wait listens", || catches(wait.pid(), signal));
        for section in [&mut acquire, &mut wait, &mut watch] {
            section.signal(signal);
            assert_eq!(section.end().code(), Some(128 + signal.as_raw()), "{signal:?}");
        }
        assert_eq!(acquire.line(), None, "nothing was acquired");
        assert_eq!(store.counts(), (1, 0), "it has left the queue itself: {signal:?}");
    }
    assert_eq!(holder.finish(), Some(0));
}

fn adopting(store: &Store) {
    for signal in SIGNALS {
        let ticket = store.ticket(&["n", "--ttl", "10m"]);
        let mut section = store.start("adopt", &[&ticket], SECTION);
        let command = section.is_in();
        section.signal(signal);
        assert_eq!(section.end().code(), Some(128 + signal.as_raw()), "{signal:?}");
        assert_eq!(store.counts(), (0, 0), "not after its TTL: {signal:?}");
        group_is_gone(command);
    }
}

fn during_grace(store: &Store) {
    let script = "trap 'echo told; trap \"\" TERM INT HUP QUIT' TERM; echo in $$; read line; \
                  read line; echo done; exit 0";
    let mut section = store.script(&["n", "--ttl", "60s", "--grace", "20s"], script);
    let command = section.is_in();
    assert!(store.output(&["break", "n", "--yes"]).status.success());
    assert_eq!(section.line().as_deref(), Some("told"));
    for signal in SIGNALS {
        section.signal(signal);
    }
    section.go_on();
    assert_eq!(section.line().as_deref(), Some("done"), "it has its grace, and its own end");
    assert_eq!(section.end().code(), Some(79));
    group_is_gone(command);
    assert_eq!(store.counts(), (0, 0));
}
