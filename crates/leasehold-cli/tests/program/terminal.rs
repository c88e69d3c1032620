//! On a terminal: the command can read it, Ctrl-C and Ctrl-Z reach it, waiting is told.

use std::{
    fs::{File, OpenOptions},
    io::{Read, Write},
    os::{fd::OwnedFd, unix::fs::OpenOptionsExt},
    process::{Child, Command},
    sync::{Arc, Mutex},
    thread,
};

use crate::common::{PROGRAM, Store, eventually, lives};
use rustix::{
    fs::OFlags,
    process::{Pid, Signal, kill_process},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
};

/// A terminal with a session of its own on it.
struct Session {
    keyboard: File,
    screen: Arc<Mutex<String>>,
    process: Child,
}

impl Session {
    /// Starts a command as the leader of a session on a new terminal.
    fn start(store: &Store, command: &[&str]) -> Self {
        let master =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        let flags = i32::try_from(OFlags::NOCTTY.bits()).unwrap();
        let slave: OwnedFd = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(flags)
            .open(name)
            .unwrap()
            .into();
        // As in `Store::leasehold`: no signal is ignored because the tests were started so.
        let mut setsid = Command::new("env");
        store.surround(&mut setsid).args(["--default-signal", "setsid", "--ctty"]).args(command);
        let process = setsid
            .env("PS1", "$ ")
            .env_remove("ENV")
            .stdin(slave.try_clone().unwrap())
            .stdout(slave.try_clone().unwrap())
            .stderr(slave)
            .spawn()
            .unwrap();
        let keyboard = File::from(master);
        let screen = Arc::<Mutex<String>>::default();
        let (mut reader, shown) = (keyboard.try_clone().unwrap(), Arc::clone(&screen));
        thread::spawn(move || {
            let mut bytes = [0; 1024];
            // The terminal ends with an error when its last user has gone.
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                shown.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
        });
        Self { keyboard, screen, process }
    }

    fn types(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).unwrap();
    }

    fn screen(&self) -> String {
        self.screen.lock().unwrap().clone()
    }

    /// Waits until the screen has shown `text`, and forgets all up to there.
    fn shows(&self, text: &str) -> String {
        let mut before = String::new();
        eventually_or(
            &format!("the screen shows {text:?}"),
            || self.screen(),
            || {
                let mut screen = self.screen.lock().unwrap();
                let Some(at) = screen.find(text) else { return false };
                before = screen[..at + text.len()].to_owned();
                let rest = screen.split_off(at + text.len());
                *screen = rest;
                true
            },
        );
        before
    }

    /// The process id in `in PID.` on the screen.
    fn shows_pid(&self) -> Pid {
        self.shows("in ");
        let text = self.shows(".");
        Pid::from_raw(text.trim_end_matches('.').parse().unwrap()).unwrap()
    }

    fn end(&mut self) -> Option<i32> {
        let mut status = None;
        eventually("the session ends", || {
            status = self.process.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap().code()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn eventually_or(what: &str, detail: impl Fn() -> String, is_so: impl FnMut() -> bool) {
    let outcome =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| eventually(what, is_so)));
    assert!(outcome.is_ok(), "{what}; it shows {:?}", detail());
}

#[test]
fn the_command_can_read_the_terminal() {
    let store = Store::new();
    let script = "echo ready; read line; echo got:$line";
    let mut session = Session::start(&store, &[PROGRAM, "run", "n", "--", "sh", "-c", script]);
    session.shows("ready");
    session.types("hello\n");
    session.shows("got:hello");
    assert_eq!(session.end(), Some(0));
}

#[test]
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

#[test]
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

#[test]
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

#[test]
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

#[test]
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

#[test]
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

#[test]
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

#[test]
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

/// The state of a process as proc(5) has it.
fn state(pid: Pid) -> char {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    let after_name =
        |stat: String| stat.rsplit(')').next().and_then(|rest| rest.trim().chars().next());
    stat.ok().and_then(after_name).unwrap_or('X')
}
