//! A command under leases: for `run` and `adopt`, from the grant to the exit code.

use std::{env, ffi::OsString, io, os::fd::OwnedFd, process::ExitStatus};

use leasehold::{Lease, Ticket};
use tokio::signal::unix::{self, SignalKind};

use super::{
    hold::{End, Running},
    keep::Keepers,
};
use crate::{
    args::WorkArgs,
    child::{self, Child, Start},
    exit::{Exit, Failure},
    guardian::Guardian,
    settings,
    signals::Signals,
    talk,
    terminal::Terminal,
};

/// How many enclosing grants a command is told of.
const HELD_MAX: usize = 32;

/// What is run, and under what.
pub(crate) struct Under<'a> {
    /// At least one.
    pub(crate) leases: &'a [Lease],
    pub(crate) work: &'a WorkArgs,
    /// Whether the command must end with this program, because the locks pass on then.
    pub(crate) guarded: bool,
}

impl Under<'_> {
    /// Runs the command, unless a signal has ended all before, and gives the locks back; before
    /// that `after` sees how the command has ended by itself.
    pub(crate) async fn run(
        &self,
        inherits: Option<OwnedFd>,
        signals: &mut Signals,
        after: impl AsyncFnOnce(ExitStatus),
    ) -> Result<Exit, Failure> {
        if let Some(signal) = signals.ending_already().await {
            self.release().await;
            return Ok(Exit::Signalled(signal));
        }
        let outcome = self.work(inherits, signals).await;
        if let Ok(End::Lost(loss)) = outcome {
            return Err(Failure::new(Exit::Lost, format!("{}; the command was ended", loss.why)));
        }
        if let Ok(End::Ended(status)) = &outcome {
            after(*status).await;
        }
        let lost = self.release().await;
        match outcome.map_err(cannot_start)? {
            End::Ended(status) => match lost {
                Some(lock) if !self.work.keep_going => Err(Failure::new(
                    Exit::Lost,
                    format!("{lock}: the lease was lost while the command ran"),
                )),
                _ => Ok(child::exit_of(status)),
            },
            End::Lost(_) => unreachable!("told above"),
        }
    }

    async fn work(&self, inherits: Option<OwnedFd>, signals: &mut Signals) -> io::Result<End> {
        let keepers = Keepers::new(self.leases, self.work.grace, self.work.max_hold);
        let mut terminal = Terminal::controlling();
        let foreground = terminal.as_ref().is_some_and(Terminal::is_for_the_command);
        let changes = unix::signal(SignalKind::child())?;
        let mut guardian = if self.guarded { Some(Guardian::start()?) } else { None };
        let mut child = Child::start(Start {
            command: &self.work.command,
            environment: self.environment(),
            without: numbered(),
            inherits,
            foreground,
            gated: self.guarded,
        })?;
        if let Some(guardian) = &mut guardian {
            // If it was killed just now, it is replaced as later on.
            let _ = guardian.watch(child.group());
            guardian.keep()?;
        }
        // It fails only where the command's process is gone already, which is told below.
        let _ = child.let_go();
        if let Some(terminal) = terminal.as_mut().filter(|_| foreground) {
            terminal.was_handed_over();
        }
        let keep_going = self.work.keep_going;
        let running = Running { child, changes, signals, terminal, guardian, keep_going };
        running.hold(keepers).await
    }

    /// The first lock by the plain names, the others by numbered ones.
    fn environment(&self) -> Vec<(String, String)> {
        let mut variables = Vec::new();
        let mut held: Vec<String> = Vec::new();
        for (place, lease) in self.leases.iter().enumerate() {
            let lock = lease.lock();
            let ticket = Ticket::new(lock.clone(), lease.token().clone()).to_string();
            let name = |variable: &str| match place {
                0 => variable.to_owned(),
                _ => format!("{variable}_{}", place + 1),
            };
            variables.push((name(settings::NAME), lock.name().as_str().to_owned()));
            variables.push((name(settings::FENCING_TOKEN), lease.fencing_token().to_string()));
            variables.push((name(settings::TICKET), ticket.clone()));
            held.push(ticket);
        }
        let outer = env::var(settings::HELD).unwrap_or_default();
        held.extend(outer.split_whitespace().map(str::to_owned));
        held.truncate(HELD_MAX);
        variables.push((settings::HELD.to_owned(), held.join(" ")));
        variables
    }

    /// Gives the locks back, the last one first; the answer is one that was lost before. A failure
    /// to give one back does not change how the command ended: it is told, and the store frees the
    /// lock when this program has ended.
    async fn release(&self) -> Option<String> {
        let mut lost = None;
        for lease in self.leases.iter().rev() {
            let lock = lease.lock();
            match lease.release().await {
                Ok(true) => {}
                Ok(false) => lost = Some(lock.to_string()),
                Err(error) => {
                    talk::warning(format_args!("{lock}: giving the lock back failed: {error}"));
                }
            }
        }
        lost
    }
}

/// Variables of an enclosing `run` of several locks, which would be taken for this one's.
fn numbered() -> Vec<OsString> {
    let is_numbered = |variable: &OsString| {
        let text = variable.to_str().unwrap_or_default();
        [settings::NAME, settings::FENCING_TOKEN, settings::TICKET].iter().any(|plain| {
            let rest = text.strip_prefix(plain).and_then(|rest| rest.strip_prefix('_'));
            rest.is_some_and(|number| number.parse::<usize>().is_ok())
        })
    };
    env::vars_os().map(|(variable, _)| variable).filter(is_numbered).collect()
}

/// What is told where the command could not be started at all.
pub(crate) fn cannot_start(error: io::Error) -> Failure {
    Failure::new(Exit::NotExecutable, format!("the command cannot be started: {error}"))
}
