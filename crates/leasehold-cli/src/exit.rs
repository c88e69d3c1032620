//! Every way the program ends, with its exit code.
//!
//! | code | meaning |
//! | --- | --- |
//! | 0 | done; of `run` and `adopt`: the command ended with 0 |
//! | 1 | `show`, `cancel`, `break`: the lock is not in use; `doctor`: the store is not healthy |
//! | 64 | wrong usage: an unknown option, an invalid name, weight, TTL or URL, a lock that is in use with another capacity |
//! | 69 | the store is unavailable, damaged or not safe to use |
//! | 74 | the output could not be written |
//! | 75 | the lock was not acquired, or the wait was cancelled (`-E` sets another code) |
//! | 79 | the lease was lost or destroyed, or `--max-hold` was over, while the command ran; the command was ended; of `renew`, `release` and `adopt`: the grant was gone already |
//! | 126 | the command was found but could not be executed |
//! | 127 | the command was not found |
//! | 128 + n | of `run` and `adopt`: signal n ended the command, or came while it waited for the lock |
//!
//! `run` and `adopt` pass the command's own exit code on, so a command that uses one of these codes
//! looks like the program; the message on stderr tells them apart.

use std::{fmt, process::ExitCode};

use leasehold::{Error, ErrorKind};
use rustix::process::Signal;

/// The table above for `--help`.
pub(crate) const HELP: &str = "\
Exit codes:
    0        done; of `run` and `adopt`: the command ended with 0
    1        `show`, `cancel`, `break`: the lock is not in use; `doctor`: not healthy
    64       wrong usage, or the lock is in use with another capacity
    69       the store is unavailable, damaged or not safe to use
    74       the output could not be written
    75       not acquired, or the wait was cancelled (see -E)
    79       the lease was lost or destroyed, or --max-hold was over: the command was ended;
             of `renew`, `release`, `adopt`: the grant was gone already
    126      the command could not be executed
    127      the command was not found
    128 + n  signal n ended the command, or came while waiting
    other    the command's own";

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Everything was done.
    Success,
    /// Nobody uses the lock.
    NotInUse,
    /// `doctor` found something wrong.
    NotHealthy,
    /// The arguments cannot be obeyed.
    Usage,
    /// The store cannot be used.
    Unavailable,
    /// The output could not be written.
    Output,
    /// The lock was not acquired; the code is 75 unless `-E` gave another.
    NotAcquired(u8),
    /// The lease ended before the command did, or the grant of a ticket was gone already.
    Lost,
    /// The command could not be executed.
    NotExecutable,
    /// The command was not found.
    NotFound,
    /// The command ended with this code.
    Command(u8),
    /// A signal ended the command or the wait.
    Signalled(Signal),
}

impl Exit {
    /// Not acquired, with the code it has unless `-E` gives another.
    pub(crate) const NOT_ACQUIRED: Self = Self::NotAcquired(75);

    /// The exit code.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::NotInUse | Self::NotHealthy => 1,
            Self::Usage => 64,
            Self::Unavailable => 69,
            Self::Output => 74,
            Self::NotAcquired(code) | Self::Command(code) => code,
            Self::Lost => 79,
            Self::NotExecutable => 126,
            Self::NotFound => 127,
            // Signals are at most 64, so the sum fits.
            Self::Signalled(signal) => 128_u8.saturating_add(signal_number(signal)),
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// Why a command of the program failed: the exit code, and what to say on stderr.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    message: String,
    busy: bool,
}

impl Failure {
    /// A failure with its message.
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), busy: false }
    }

    /// The same with another exit code.
    pub(crate) fn with_exit(mut self, exit: Exit) -> Self {
        self.exit = exit;
        self
    }

    /// The same, and what follows from it.
    pub(crate) fn adding(mut self, consequence: &str) -> Self {
        self.message.push_str("; ");
        self.message.push_str(consequence);
        self
    }

    /// Whether the lock was busy: not cancelled, not destroyed, no failure (rule W3).
    pub(crate) fn is_busy(&self) -> bool {
        self.busy
    }

    /// The same, with this exit code where the lock was not acquired (`-E`).
    pub(crate) fn conflicting_as(mut self, code: Option<u8>) -> Self {
        if let (Exit::NotAcquired(_), Some(code)) = (self.exit, code) {
            self.exit = Exit::NotAcquired(code);
        }
        self
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let exit = match error.kind() {
            ErrorKind::InvalidArgument { .. } | ErrorKind::ConfigMismatch { .. } => Exit::Usage,
            ErrorKind::Timeout
            | ErrorKind::Cancelled { .. }
            | ErrorKind::QueueFull { .. }
            | ErrorKind::Stale
            | ErrorKind::Destroyed => Exit::NOT_ACQUIRED,
            ErrorKind::Lost { .. } => Exit::Lost,
            _ => Exit::Unavailable,
        };
        let busy = error.is_timeout();
        Self { exit, message: with_sources(&error), busy }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// An error and what caused it in one line, each said once.
fn with_sources(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

fn signal_number(signal: Signal) -> u8 {
    u8::try_from(signal.as_raw()).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_of_the_table_is_in_the_help() {
        let all = [
            Exit::Success,
            Exit::NotInUse,
            Exit::NotHealthy,
            Exit::Usage,
            Exit::Unavailable,
            Exit::Output,
            Exit::NOT_ACQUIRED,
            Exit::Lost,
            Exit::NotExecutable,
            Exit::NotFound,
        ];
        for exit in all {
            let row = format!("\n    {} ", exit.code());
            assert!(HELP.contains(&row), "{exit:?} is missing");
        }
        assert_eq!(Exit::Signalled(Signal::TERM).code(), 143);
    }

    #[test]
    fn only_a_conflict_takes_the_conflict_code() {
        let conflict = Failure::new(Exit::NOT_ACQUIRED, "").conflicting_as(Some(9));
        assert_eq!(conflict.exit.code(), 9);
        let usage = Failure::new(Exit::Usage, "").conflicting_as(Some(9));
        assert_eq!(usage.exit.code(), 64);
    }
}
