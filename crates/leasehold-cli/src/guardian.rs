//! The guardian: a small process of its own that ends the command's process group when `run` is
//! gone without having said goodbye, as after `kill -9`.
//!
//! It is this program once more, in a process group of its own, so that neither Ctrl-C nor the end
//! of the command's group reaches it. It holds one end of a pipe whose other end only `run` has:
//! the kernel closes that with `run`, however it ends. The order makes it safe at every moment: the
//! guardian is started first, then the command's process, which waits at a gate; the guardian is
//! told the group, and only then the gate is opened. If `run` is killed before that, the gate falls
//! shut and the command has never begun.

use std::{
    fs,
    io::{self, BufRead, BufReader, Write},
    os::unix::process::CommandExt,
    process::{self, ChildStdin, Command, Stdio},
};

use nix::sys::signal::SigSet;
use rustix::process::{Pid, Signal, kill_process_group};

use crate::exit::Exit;

/// What `run` says when the command has ended by itself.
const GOODBYE: &str = "done\n";

/// The longest line that the guardian reads.
const LINE_MAX: u64 = 64;

/// How often a guardian that was killed is replaced.
const REPLACEMENTS_MAX: u32 = 8;

/// The guardian, as `run` has it.
#[derive(Debug)]
pub(crate) struct Guardian {
    process: process::Child,
    line: ChildStdin,
    group: Option<Pid>,
    replaced: u32,
}

impl Guardian {
    /// Starts it. It watches over nothing yet.
    pub(crate) fn start() -> io::Result<Self> {
        let (process, line) = start()?;
        Ok(Self { process, line, group: None, replaced: 0 })
    }

    /// From now on the group ends with this program.
    pub(crate) fn watch(&mut self, group: Pid) -> io::Result<()> {
        self.group = Some(group);
        self.line.write_all(format!("{}\n", group.as_raw_nonzero()).as_bytes())
    }

    /// Looks whether the guardian lives, and starts another one in its place if it does not. Says
    /// whether it had to.
    pub(crate) fn keep(&mut self) -> io::Result<bool> {
        if self.process.try_wait()?.is_none() {
            return Ok(false);
        }
        if self.replaced == REPLACEMENTS_MAX {
            return Err(io::Error::other("it was killed again and again"));
        }
        self.replaced += 1;
        (self.process, self.line) = start()?;
        match self.group {
            Some(group) => self.watch(group).map(|()| true),
            None => Ok(true),
        }
    }

    /// The command has ended: what it left behind may go on.
    pub(crate) fn dismiss(mut self) {
        // One that was killed needs no goodbye.
        let _ = self.line.write_all(GOODBYE.as_bytes());
    }
}

fn start() -> io::Result<(process::Child, ChildStdin)> {
    let mut process = Command::new("/proc/self/exe")
        .arg0("leasehold")
        .arg("__guard")
        .process_group(0)
        .stdin(Stdio::piped())
        // Who reads this program's output must not wait for the guardian.
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let line = process.stdin.take().expect("stdin is a pipe");
    Ok((process, line))
}

/// The hidden part: waits for the end of `run`.
pub(crate) fn guard() -> Exit {
    // A signal that is meant for `run` and its command may be sent to every process of this name;
    // only KILL ends the guardian, and then `run` starts another.
    if SigSet::all().thread_block().is_err() {
        return Exit::Unavailable;
    }
    close_inherited();
    // It keeps no directory busy.
    let _ = std::env::set_current_dir("/");
    let mut lines = BufReader::new(io::stdin().lock());
    let Some(group) = next(&mut lines).and_then(|line| Pid::from_raw(line.parse().ok()?)) else {
        return Exit::Success;
    };
    if next(&mut lines).is_none_or(|line| line != GOODBYE.trim_end()) {
        // At once: whatever is given to the command as grace may be the next holder's time.
        let _ = kill_process_group(group, Signal::KILL);
    }
    Exit::Success
}

/// The next line; `None`: `run` is gone.
fn next(lines: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    let read = io::Read::take(lines, LINE_MAX).read_line(&mut line);
    (read.is_ok() && line.ends_with('\n')).then(|| line.trim_end().to_owned())
}

/// What `run` was given open for its command (a lock, the end of a pipe) must not live on here.
fn close_inherited() {
    let open = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let numbers: Vec<i32> =
        open.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for number in numbers.into_iter().filter(|number| *number > 2) {
        // The directory that was just listed is among them, and closed already.
        let _ = nix::unistd::close(number);
    }
}
