//! A pseudo-terminal with a session of its own on it.
#![allow(dead_code, reason = "each test program uses its part")]

use std::{
    fs::{File, OpenOptions},
    io::{Read, Write},
    os::{fd::OwnedFd, unix::fs::OpenOptionsExt},
    process::{Child, Command},
    sync::{Arc, Mutex},
    thread,
};

use crate::common::{Store, eventually};
use rustix::{
    fs::OFlags,
    process::Pid,
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Termios, Winsize, tcgetattr, tcsetwinsize},
};

/// A terminal with a session of its own on it.
pub(crate) struct Session {
    pub(crate) keyboard: File,
    screen: Arc<Mutex<String>>,
    pub(crate) process: Child,
}

impl Session {
    /// Starts a command as the leader of a session on a new terminal.
    pub(crate) fn start(store: &Store, command: &[&str]) -> Self {
        Self::start_sized(store, command, None)
    }

    /// The same, on a terminal of so many columns and rows.
    pub(crate) fn start_sized(store: &Store, command: &[&str], size: Option<(u16, u16)>) -> Self {
        let master =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        if let Some((ws_col, ws_row)) = size {
            let size = Winsize { ws_row, ws_col, ws_xpixel: 0, ws_ypixel: 0 };
            tcsetwinsize(&master, size).unwrap();
        }
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

    pub(crate) fn types(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).unwrap();
    }

    pub(crate) fn screen(&self) -> String {
        self.screen.lock().unwrap().clone()
    }

    /// Waits until the screen has shown `text`, and forgets all up to there.
    pub(crate) fn shows(&self, text: &str) -> String {
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
    pub(crate) fn shows_pid(&self) -> Pid {
        self.shows("in ");
        let text = self.shows(".");
        Pid::from_raw(text.trim_end_matches('.').parse().unwrap()).unwrap()
    }

    /// Another size; the foreground group is told.
    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.keyboard, size).unwrap();
    }

    /// How the terminal is set.
    pub(crate) fn settings(&self) -> Termios {
        tcgetattr(&self.keyboard).unwrap()
    }

    /// The terminal is closed, as by a connection that breaks.
    pub(crate) fn hang_up(&mut self) {
        // The kernel hangs up when the leader of the session ends.
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    pub(crate) fn end(&mut self) -> Option<i32> {
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
    if outcome.is_err() {
        let shown: Vec<char> = detail().chars().collect();
        let last = shown[shown.len().saturating_sub(1000)..].iter().collect::<String>();
        panic!("{what}; it shows at last {last:?}");
    }
}

/// The state of a process as proc(5) has it.
pub(crate) fn state(pid: Pid) -> char {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    let after_name =
        |stat: String| stat.rsplit(')').next().and_then(|rest| rest.trim().chars().next());
    stat.ok().and_then(after_name).unwrap_or('X')
}
