//! The command as a process: started in a group of its own, signalled as a group, waited for.

use std::{
    ffi::OsString,
    fs::File,
    io::{self, PipeWriter, Read, Write},
    os::{
        fd::{AsFd, AsRawFd, OwnedFd},
        unix::process::{CommandExt, ExitStatusExt},
    },
    process::{Command, ExitStatus},
};

use rustix::{
    io::{FdFlags, fcntl_setfd},
    process::{Pid, Signal, WaitOptions, kill_process_group, test_kill_process_group, waitpid},
};

use crate::{
    args::ExecArgs,
    exit::{Exit, Failure},
    talk, terminal,
};

/// How the command is started. Not to be shown: the environment holds a ticket.
pub(crate) struct Start<'a> {
    /// The command and its arguments.
    pub(crate) command: &'a [OsString],
    /// Variables that win over inherited ones.
    pub(crate) environment: Vec<(String, String)>,
    /// Inherited variables that are of no meaning for it.
    pub(crate) without: Vec<OsString>,
    /// What the command inherits beside the standard streams.
    pub(crate) inherits: Option<OwnedFd>,
    /// Whether it takes the terminal.
    pub(crate) foreground: bool,
    /// Whether it waits until it is let go.
    pub(crate) gated: bool,
}

/// The running command. Its process id is the id of its group.
#[derive(Debug)]
pub(crate) struct Child {
    pid: Pid,
    /// Where the command's process waits; the command does not begin when this is dropped.
    gate: Option<PipeWriter>,
}

/// What became of the command.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change {
    /// It ended.
    Ended(ExitStatus),
    /// A signal stopped it.
    Stopped(Signal),
}

impl Child {
    /// Starts the command by way of [`become_command`], which prints why a command could not be
    /// executed and ends with 126 or 127.
    pub(crate) fn start(start: Start<'_>) -> io::Result<Self> {
        // Also after an upgrade has replaced the file during a long wait, this is still the
        // program that is running.
        let mut command = Command::new("/proc/self/exe");
        command.arg0("leasehold").arg("__exec").process_group(0);
        // A command that cannot be executed is told there.
        command.args(talk::as_argument());
        start.without.iter().for_each(|variable| {
            command.env_remove(variable);
        });
        command.envs(start.environment);
        if start.foreground {
            command.arg("--foreground");
        }
        let gate = if start.gated { Some(io::pipe()?) } else { None };
        if let Some((inside, _)) = &gate {
            inherit(inside)?;
            command.arg(format!("--gate={}", inside.as_raw_fd()));
        }
        command.arg("--").args(start.command);
        if let Some(inherited) = &start.inherits {
            // This program starts nothing else from here on, so nothing else inherits it; and here
            // it is closed again when `start` goes out of scope.
            inherit(inherited)?;
        }
        let child = command.spawn()?;
        Ok(Self { pid: Pid::from_child(&child), gate: gate.map(|(_, outside)| outside) })
    }

    /// Lets the command begin.
    pub(crate) fn let_go(&mut self) -> io::Result<()> {
        match self.gate.take() {
            Some(mut gate) => gate.write_all(b"!"),
            None => Ok(()),
        }
    }

    /// The id of the command's process group.
    pub(crate) fn group(&self) -> Pid {
        self.pid
    }

    /// Sends a signal to the whole group. There may be nobody left to receive it.
    pub(crate) fn signal(&self, signal: Signal) {
        let _ = kill_process_group(self.pid, signal);
    }

    /// Whether a process of the group is left. Ask only while or shortly after the command lives:
    /// the id of an empty group is given to others one day.
    pub(crate) fn group_lives(&self) -> bool {
        test_kill_process_group(self.pid).is_ok()
    }

    /// The next change since the last look. After `Ended` it must not be asked again.
    pub(crate) fn change(&self) -> io::Result<Option<Change>> {
        let options = WaitOptions::NOHANG | WaitOptions::UNTRACED;
        let Some((_, status)) = waitpid(Some(self.pid), options)? else { return Ok(None) };
        let status = ExitStatus::from_raw(status.as_raw());
        Ok(Some(match status.stopped_signal().and_then(Signal::from_named_raw) {
            Some(signal) => Change::Stopped(signal),
            None => Change::Ended(status),
        }))
    }
}

/// How the program ends after a command that ended so.
pub(crate) fn exit_of(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Command(u8::try_from(code).unwrap_or(u8::MAX)),
        (None, Some(signal)) => Signal::from_named_raw(signal)
            .map_or_else(|| Exit::Command(real_time_code(signal)), Exit::Signalled),
        (None, None) => unreachable!("a process ends with a code or by a signal"),
    }
}

/// Real-time signals have no name.
fn real_time_code(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(u8::MAX)
}

fn inherit(descriptor: impl AsFd) -> io::Result<()> {
    Ok(fcntl_setfd(descriptor, FdFlags::empty())?)
}

/// The hidden part: inside the new process group, waits at the gate, takes the terminal and becomes
/// the command. Returns only if that fails.
pub(crate) fn become_command(args: &ExecArgs) -> Result<Exit, Failure> {
    if let Some(gate) = args.gate
        && !is_let_go(gate)
    {
        // `run` was killed before anybody watched over the command.
        return Ok(Exit::Lost);
    }
    if args.foreground {
        terminal::come_to_foreground();
    }
    let (program, arguments) = args.command.split_first().expect("clap requires a command");
    let error = Command::new(program).args(arguments).exec();
    let exit = match error.kind() {
        io::ErrorKind::NotFound => Exit::NotFound,
        _ => Exit::NotExecutable,
    };
    let program = program.display();
    Err(Failure::new(
        exit,
        match exit {
            Exit::NotFound => format!("{program}: command not found"),
            _ => format!("{program}: cannot be executed: {error}"),
        },
    ))
}

/// Waits at the gate. The command must not inherit it: what is opened here is closed by `exec`.
fn is_let_go(gate: i32) -> bool {
    let opened = File::open(format!("/proc/self/fd/{gate}"));
    let closed = nix::unistd::close(gate);
    let (Ok(mut gate), Ok(())) = (opened, closed) else { return false };
    matches!(gate.read(&mut [0]), Ok(1))
}
