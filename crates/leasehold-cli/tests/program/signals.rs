//! Signals: passed on to the whole group while the command runs, obeyed while waiting.

use std::{
    process::Command,
    time::{Duration, Instant},
};

use crate::common::{PROGRAM, Section, Store, catches, eventually, lives};
use rustix::process::{Pid, Signal};

trials! {
    each_is_passed_on,
    the_whole_group_gets_it,
    a_waiter_obeys_and_leaves_the_queue,
    whoever_is_opening_the_store_obeys,
    what_is_ignored_stays_ignored,
}

const ENDING: [(Signal, &str); 13] = [
    (Signal::INT, "INT"),
    (Signal::TERM, "TERM"),
    (Signal::HUP, "HUP"),
    (Signal::QUIT, "QUIT"),
    (Signal::USR1, "USR1"),
    (Signal::USR2, "USR2"),
    (Signal::ALARM, "ALRM"),
    (Signal::VTALARM, "VTALRM"),
    (Signal::PROF, "PROF"),
    (Signal::IO, "IO"),
    (Signal::POWER, "PWR"),
    (Signal::XCPU, "XCPU"),
    (Signal::XFSZ, "XFSZ"),
];

fn each_is_passed_on() {
    let store = Store::new();
    let harmless = [(Signal::WINCH, "WINCH"), (Signal::CONT, "CONT")];
    for (signal, name) in ENDING.into_iter().chain(harmless) {
        let script = format!("trap 'echo got {name}; exit 5' {name}; echo in $$; read line");
        let mut section = store.script(&["n"], &script);
        section.is_in();
        section.signal_until(signal, &format!("got {name}"));
        assert_eq!(section.end().code(), Some(5), "the command's own decision is passed on");
    }
}

fn the_whole_group_gets_it() {
    let store = Store::new();
    let script = "exec 3<&0; sh -c 'echo in $$; read line' <&3 & \
                  sh -c 'echo in $$; read line' <&3 & wait";
    let mut section = store.script(&["n"], script);
    let grandchildren = [section.is_in(), section.is_in()];
    section.signal(Signal::TERM);
    assert_eq!(section.end().code(), Some(128 + Signal::TERM.as_raw()));
    for pid in grandchildren {
        eventually("a grandchild ends", || !lives(pid));
    }
}

fn a_waiter_obeys_and_leaves_the_queue() {
    let store = Store::new();
    let mut holder = store.section(&["n"]);
    holder.is_in();
    for (signal, _) in ENDING {
        let mut waiter = store.section(&["n"]);
        store.wait_for_counts(1, 1);
        waiter.signal(Signal::WINCH);
        waiter.signal(signal);
        assert_eq!(waiter.end().code(), Some(128 + signal.as_raw()), "{signal:?}");
        assert_eq!(waiter.line(), None, "its command must not run");
        // At once, not when somebody finds out that it is dead.
        assert_eq!(store.counts(), (1, 0), "{signal:?}");
    }
    assert_eq!(holder.finish(), Some(0));
}

fn whoever_is_opening_the_store_obeys() {
    let store = Store::new();
    store.wait_for_counts(0, 0);
    assert!(store.output(&["run", "n", "--", "true"]).status.success());
    let _stopped = store.stop_inside_the_guard();
    let start = Instant::now();
    for signal in [Signal::TERM, Signal::INT] {
        let mut opening = store.section(&["n"]);
        eventually("it listens", || catches(opening.pid(), signal));
        opening.signal(signal);
        assert_eq!(opening.end().code(), Some(128 + signal.as_raw()), "{signal:?}");
        assert_eq!(opening.line(), None, "its command must not run");
    }
    // Two that had waited for the guard until they were told of the signal took 10 s.
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}

fn what_is_ignored_stays_ignored() {
    let store = Store::new();
    let mut shell = Command::new("sh");
    let script = format!(
        "trap '' HUP; exec '{PROGRAM}' run n -- sh -c \
         'grep SigIgn /proc/self/status; echo in $$; read line; exit 3'"
    );
    store.surround(&mut shell).args(["-c", &script]);
    let mut section = Section::start(shell);
    let ignored = section.line().unwrap();
    let bits = u64::from_str_radix(ignored.split_whitespace().last().unwrap(), 16).unwrap();
    assert_eq!(bits & 1, 1, "the command ignores HUP too, as under nohup(1)");
    let command: Pid = section.is_in();
    section.signal(Signal::HUP);
    assert!(lives(command));
    assert_eq!(section.finish(), Some(3));
}
