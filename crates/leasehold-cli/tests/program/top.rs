//! The live screen, on a pseudo-terminal.

use crate::{
    common::{PROGRAM, Store, eventually, stderr},
    session::{Session, state},
};
use rustix::process::{Pid, Signal, kill_process};

trials! {
    it_shows_holders_and_waiters_and_leaves_the_terminal_as_it_was,
    keys_select_a_lock_and_change_the_order,
    a_signal_gives_the_terminal_back,
    it_follows_the_size_of_the_terminal,
    control_z_stops_it_and_fg_draws_it_again,
    a_pause_keeps_the_picture,
    without_a_terminal_it_says_what_to_use,
    a_closed_terminal_leaves_nobody,
}

fn pid(session: &Session) -> Pid {
    Pid::from_child(&session.process)
}

fn it_shows_holders_and_waiters_and_leaves_the_terminal_as_it_was() {
    let store = Store::new();
    let mut holder = store.section(&["orders", "--label", "long work"]);
    holder.is_in();
    let waiter = store.section(&["orders"]);
    store.wait_for_counts(1, 1);
    let mut session = Session::start(&store, &[PROGRAM, "top", "--every", "50ms"]);
    session.resize(120, 20);
    session.shows("\x1b[?1049h");
    let raw = session.settings();
    session.shows("locks 1  holders 1  waiters 1");
    session.shows("orders");
    session.types("\r");
    session.shows("holder 1: pid ");
    session.shows("(long work)");
    session.shows("waiter 1: pid ");
    session.types("\x1b");
    session.shows("NAMESPACE");
    session.types("/nothing\r");
    session.shows("no lock of that name is in use");
    session.types("/\x1b");
    session.shows("orders");
    session.types("s");
    session.shows("by waiting");
    assert_eq!(holder.finish(), Some(0));
    session.shows("waiters 0");
    session.types("q");
    session.shows("\x1b[?25h\x1b[?1049l");
    assert_eq!(session.end(), Some(0));
    assert_ne!(
        session.settings().local_modes,
        raw.local_modes,
        "the terminal is raw while it is shown, and cooked again after it"
    );
    drop(waiter);
}

fn keys_select_a_lock_and_change_the_order() {
    let store = Store::new();
    let mut first = store.section(&["alpha", "--label", "first"]);
    first.is_in();
    let mut second = store.section(&["beta", "--label", "second", "--ttl", "1m"]);
    second.is_in();
    let mut waiter = store.section(&["beta"]);
    store.wait_for_counts(2, 1);
    let mut session =
        Session::start_sized(&store, &[PROGRAM, "top", "--every", "1h"], Some((120, 20)));
    session.shows("q end");
    // Drawn once for each key, so what follows the status is that picture.
    let mut order = |keys: &str, status: &str| {
        session.types(keys);
        session.shows(status);
        let picture = session.shows("q end");
        picture.find("alpha") < picture.find("beta")
    };
    assert!(order("r", "by name, reversed") != order("r", "by name"));
    assert!(!order("s", "by waiting"), "who is waited for most comes first");
    assert!(order("s", "by held"), "who has held longest");
    assert!(!order("s", "by ttl"), "whose TTL ends first, and none does last");
    assert!(order("s", "by name"));
    for (keys, label) in [("\x1b[B\r", "second"), ("\x1b[A\r", "first"), ("\x1b[F\r", "second")] {
        session.types(keys);
        session.shows("holder 1: pid ");
        session.shows(&format!("({label})"));
        session.shows("q end");
        session.types("\x1b");
        session.shows("NAMESPACE");
        session.shows("q end");
    }
    session.types("q");
    assert_eq!(session.end(), Some(0));
    for section in [&mut first, &mut second, &mut waiter] {
        assert_eq!(section.finish(), Some(0));
    }
}

fn a_signal_gives_the_terminal_back() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::HUP, 129), (Signal::INT, 130)] {
        let store = Store::new();
        let mut session = Session::start(&store, &[PROGRAM, "top"]);
        session.shows("no lock is in use");
        kill_process(pid(&session), signal).unwrap();
        session.shows("\x1b[?25h\x1b[?1049l");
        assert_eq!(session.end(), Some(code));
    }
}

fn it_follows_the_size_of_the_terminal() {
    let store = Store::new();
    let mut session = Session::start(&store, &[PROGRAM, "top", "--every", "1h"]);
    session.shows("q end");
    session.resize(20, 6);
    // Cut at the twentieth column.
    session.shows("…");
    session.resize(100, 10);
    session.shows("q end");
    session.types("q");
    assert_eq!(session.end(), Some(0));
}

fn control_z_stops_it_and_fg_draws_it_again() {
    let store = Store::new();
    let mut session = Session::start(&store, &["sh", "-i"]);
    session.shows("$ ");
    session.types(&format!("'{PROGRAM}' top --every 100ms\n"));
    session.shows("no lock is in use");
    session.types("\x1a");
    session.shows("\x1b[?1049l");
    session.shows("$ ");
    session.types("fg\n");
    session.shows("\x1b[?1049h");
    session.shows("no lock is in use");
    session.types("q");
    session.shows("\x1b[?1049l");
    // What is typed before is read by the screen.
    session.shows("$ ");
    session.types("exit\n");
    session.end();
}

fn a_pause_keeps_the_picture() {
    let store = Store::new();
    let mut holder = store.section(&["orders"]);
    holder.is_in();
    let mut session = Session::start(&store, &[PROGRAM, "top", "--every", "20ms"]);
    session.shows("orders");
    session.types(" ");
    session.shows("PAUSED");
    assert_eq!(holder.finish(), Some(0));
    // Drawn again, and nothing was looked at.
    session.types("r");
    session.shows("reversed");
    session.shows("orders");
    session.types(" ");
    session.shows("no lock is in use");
    session.types("\x03");
    assert_eq!(session.end(), Some(0));
}

fn without_a_terminal_it_says_what_to_use() {
    let store = Store::new();
    let output = store.output(&["top"]);
    assert_eq!(output.status.code(), Some(64));
    assert!(stderr(&output).contains("leasehold watch"), "{output:?}");
}

fn a_closed_terminal_leaves_nobody() {
    let store = Store::new();
    let script = format!("'{PROGRAM}' run n -- sh -c 'echo i\"\"n $$.; while :; do sleep 5; done'");
    let mut session = Session::start(&store, &["sh", "-i"]);
    session.shows("$ ");
    session.types(&format!("{script}\n"));
    let command = session.shows_pid();
    assert_eq!(store.counts(), (1, 0));
    session.hang_up();
    eventually("the command is ended", || state(command) == 'X');
    store.wait_for_counts(0, 0);
}
