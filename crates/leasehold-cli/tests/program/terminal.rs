//! On a terminal: the command can read it, Ctrl-C and Ctrl-Z reach it, waiting is told.

use crate::{
    common::{PROGRAM, Store, eventually, lives},
    session::{Session, state},
};
use rustix::process::{Signal, kill_process};

trials! {
    the_command_can_read_the_terminal,
    a_command_in_a_pipeline_gets_the_terminal_when_it_asks,
    the_terminal_is_taken_back,
    control_c_ends_the_command,
    control_c_ends_the_command_of_a_pipeline,
    control_z_stops_the_command_and_fg_continues_it,
    a_job_in_the_background_stops_when_it_reads_and_continues_in_the_foreground,
    a_stop_that_is_not_the_terminal_s_is_left_alone,
    waiting_is_told,
    what_takes_long_tells_how_it_goes,
}

fn the_command_can_read_the_terminal() {
    let store = Store::new();
    let script = "echo ready; read line; echo got:$line";
    let mut session = Session::start(&store, &[PROGRAM, "run", "n", "--", "sh", "-c", script]);
    session.shows("ready");
    session.types("hello\n");
    session.shows("got:hello");
    assert_eq!(session.end(), Some(0));
}

fn a_command_in_a_pipeline_gets_the_terminal_when_it_asks() {
    let store = Store::new();
    let script =
        format!("'{PROGRAM}' run n -- sh -c 'echo ready; read line; echo got:$line' | cat");
    let mut session = Session::start(&store, &["sh", "-c", &script]);
    session.shows("ready");
    session.types("hello\n");
    session.shows("got:hello");
    assert_eq!(session.end(), Some(0));
}

fn the_terminal_is_taken_back() {
    let store = Store::new();
    let script = format!(
        "'{PROGRAM}' run n -- sh -c 'echo ready; read line; exit 3'; echo code:$?; \
         read line; echo got:$line"
    );
    let mut session = Session::start(&store, &["sh", "-c", &script]);
    session.shows("ready");
    session.types("one\n");
    session.shows("code:3");
    session.types("two\n");
    session.shows("got:two");
    assert_eq!(session.end(), Some(0));
}

fn control_c_ends_the_command() {
    let store = Store::new();
    let script = "echo in $$.; read line";
    let mut session = Session::start(&store, &[PROGRAM, "run", "n", "--", "sh", "-c", script]);
    let command = session.shows_pid();
    session.types("\x03");
    assert_eq!(session.end(), Some(130));
    assert!(!lives(command));
    store.wait_for_counts(0, 0);
}

fn control_c_ends_the_command_of_a_pipeline() {
    let store = Store::new();
    // The terminal sends the signal to the whole pipeline, and the program passes it on.
    let script = format!("trap : INT; '{PROGRAM}' run n -- sleep 100 | cat; echo over");
    let mut session = Session::start(&store, &["sh", "-c", &script]);
    store.wait_for_counts(1, 0);
    session.types("\x03");
    session.shows("over");
    store.wait_for_counts(0, 0);
    session.end();
}

fn control_z_stops_the_command_and_fg_continues_it() {
    let store = Store::new();
    let mut session = Session::start(&store, &["sh", "-i"]);
    session.shows("$ ");
    session.types(&format!(
        "'{PROGRAM}' run n -- sh -c 'echo i\"\"n $$.; read line; echo got:$line'\n"
    ));
    let command = session.shows_pid();
    session.types("\x1a");
    session.shows("$ ");
    assert_eq!(state(command), 'T', "the command is stopped");
    assert_eq!(store.counts(), (1, 0), "and keeps the lock");
    session.types("fg\n");
    eventually("the command goes on", || state(command) != 'T');
    session.types("hello\n");
    session.shows("got:hello");
    session.shows("$ ");
    session.types("exit\n");
    session.end();
}

fn a_job_in_the_background_stops_when_it_reads_and_continues_in_the_foreground() {
    let store = Store::new();
    let mut session = Session::start(&store, &["sh", "-i"]);
    session.shows("$ ");
    session.types(&format!(
        "'{PROGRAM}' run n -- sh -c 'echo i\"\"n $$.; read line; echo got:$line' &\n"
    ));
    let command = session.shows_pid();
    eventually("the command is stopped", || state(command) == 'T');
    session.types("fg\n");
    eventually("the command goes on", || state(command) != 'T');
    session.types("hello\n");
    session.shows("got:hello");
    session.types("exit\n");
    session.end();
}

fn a_stop_that_is_not_the_terminal_s_is_left_alone() {
    let store = Store::new();
    let script = "echo in $$.; read line";
    let mut session = Session::start(&store, &[PROGRAM, "run", "n", "--", "sh", "-c", script]);
    let command = session.shows_pid();
    kill_process(command, Signal::STOP).unwrap();
    eventually("it is stopped", || state(command) == 'T');
    assert_eq!(store.counts(), (1, 0));
    kill_process(command, Signal::CONT).unwrap();
    session.types("\n");
    assert_eq!(session.end(), Some(0));
    assert!(!lives(command));
}

fn waiting_is_told() {
    let store = Store::new();
    let mut holder = store.section(&["n", "--label", "long work"]);
    holder.is_in();
    let mut ahead = store.section(&["n"]);
    store.wait_for_counts(1, 1);
    let mut session = Session::start(&store, &[PROGRAM, "run", "n", "--", "echo", "granted"]);
    session.shows("leasehold: mutex \"n\": waiting, 1 ahead; held by pid ");
    session.shows("(long work) for ");
    assert_eq!(holder.finish(), Some(0));
    session.shows("waiting, next in line; held by pid ");
    ahead.is_in();
    assert_eq!(ahead.finish(), Some(0));
    session.shows("granted");
    assert_eq!(session.end(), Some(0));
}

fn what_takes_long_tells_how_it_goes() {
    let store = Store::new();
    let mut holder = store.section(&["n", "--label", "long work"]);
    holder.is_in();
    let mut session = Session::start(&store, &[PROGRAM, "wait", "n"]);
    session.shows("leasehold: mutex \"n\": waiting; held by pid ");
    session.shows("(long work) for ");
    assert_eq!(holder.finish(), Some(0));
    assert_eq!(session.end(), Some(0));
    eventually("the line is gone", || session.screen().ends_with("\r\x1b[K"));
    let mut session =
        Session::start(&store, &[PROGRAM, "bench", "--time", "50ms", "--clients", "2"]);
    for part in ["1 of 3: ", "2 of 3: ", "3 of 3: ", "pairs/s"] {
        session.shows(part);
    }
    assert_eq!(session.end(), Some(0));
}
