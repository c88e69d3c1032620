//! The controlling terminal and its foreground process group.
//!
//! The command runs in a process group of its own, and only the foreground group may read the
//! terminal. So the terminal is handed to the command's group and taken back afterwards, as a shell
//! does with its jobs.

use std::{
    fs::{File, OpenOptions},
    io,
    os::fd::AsFd,
};

use nix::sys::signal::{SigSet, Signal as NixSignal};
use rustix::{
    fs::{FileType, fstat},
    process::{Pid, getpgrp},
    termios::{tcgetpgrp, tcsetpgrp},
};

/// The controlling terminal of this process.
#[derive(Debug)]
pub(crate) struct Terminal {
    tty: File,
    handed_over: bool,
}

impl Terminal {
    /// The controlling terminal, when there is one.
    pub(crate) fn controlling() -> Option<Self> {
        Some(Self { tty: open().ok()?, handed_over: false })
    }

    /// Whether this process is in the foreground.
    pub(crate) fn is_ours(&self) -> bool {
        tcgetpgrp(&self.tty).is_ok_and(|group| group == getpgrp())
    }

    /// Whether the command should have the terminal from the start: this program is in the
    /// foreground, and not part of a pipeline. In `leasehold run … | less` it is `less` that reads
    /// the terminal; a command that wants it nevertheless gets it when it asks.
    pub(crate) fn is_for_the_command(&self) -> bool {
        self.is_ours() && !is_pipe(io::stdin()) && !is_pipe(io::stdout())
    }

    /// Notes that the command has taken the terminal by itself, before its `exec`.
    pub(crate) fn was_handed_over(&mut self) {
        self.handed_over = true;
    }

    /// Makes `group` the foreground group.
    pub(crate) fn hand_over(&mut self, group: Pid) {
        self.handed_over = set_foreground(&self.tty, group).is_ok();
    }

    /// Makes this process's group the foreground group again, if it was handed over.
    pub(crate) fn take_back(&mut self) {
        if std::mem::take(&mut self.handed_over) {
            // It fails only where the terminal is gone, and then there is nothing to take.
            let _ = set_foreground(&self.tty, getpgrp());
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.take_back();
    }
}

/// Makes this process's group the foreground group, from inside of it.
pub(crate) fn come_to_foreground() {
    // It fails only where the terminal is gone; the command finds out by itself.
    let _ = open().and_then(|tty| set_foreground(tty, getpgrp()));
}

fn open() -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open("/dev/tty")
}

fn is_pipe(stream: impl AsFd) -> bool {
    fstat(stream).is_ok_and(|stat| {
        matches!(FileType::from_raw_mode(stat.st_mode), FileType::Fifo | FileType::Socket)
    })
}

/// A process in the background that changes the foreground group is stopped by SIGTTOU, unless it
/// blocks that signal.
fn set_foreground(terminal: impl AsFd, group: Pid) -> io::Result<()> {
    let mut stop = SigSet::empty();
    stop.add(NixSignal::SIGTTOU);
    let before = stop.thread_swap_mask(nix::sys::signal::SigmaskHow::SIG_BLOCK)?;
    let done = tcsetpgrp(terminal, group);
    before.thread_set_mask()?;
    Ok(done?)
}
