//! A command under a lease: for `run` and `adopt`, from the grant to the exit code.

use std::{io, os::fd::OwnedFd};

use leasehold::{Lease, Ticket};
use tokio::signal::unix::{self, SignalKind};

use super::{
    hold::{End, Running},
    keep::Keeper,
};
use crate::{
    args::WorkArgs,
    child::{self, Child, Start},
    exit::{Exit, Failure},
    report, settings,
    signals::Signals,
    terminal::Terminal,
};

/// What is run, and under what.
pub(crate) struct Under<'a> {
    pub(crate) lease: &'a Lease,
    pub(crate) work: &'a WorkArgs,
}

impl Under<'_> {
    /// Runs the command, unless a signal has ended all before, and gives the lock back.
    pub(crate) async fn run(
        &self,
        inherits: Option<OwnedFd>,
        signals: &mut Signals,
    ) -> Result<Exit, Failure> {
        if let Some(signal) = signals.ending_already().await {
            self.release().await;
            return Ok(Exit::Signalled(signal));
        }
        let lock = self.lease.lock();
        let outcome = self.work(inherits, signals).await;
        if let Ok(End::Lost(loss)) = outcome {
            return Err(Failure::new(
                Exit::Lost,
                format!("{lock}: {}; the command was ended", loss.why),
            ));
        }
        let still_held = self.release().await;
        match outcome.map_err(cannot_start)? {
            End::Ended(_) if !still_held => Err(Failure::new(
                Exit::Lost,
                format!("{lock}: the lease was lost while the command ran"),
            )),
            End::Ended(status) => Ok(child::exit_of(status)),
            End::Lost(_) => unreachable!("told above"),
        }
    }

    async fn work(&self, inherits: Option<OwnedFd>, signals: &mut Signals) -> io::Result<End> {
        let keeper = Keeper::new(self.lease, self.work.grace);
        let mut terminal = Terminal::controlling();
        let foreground = terminal.as_ref().is_some_and(Terminal::is_for_the_command);
        let changes = unix::signal(SignalKind::child())?;
        let lock = self.lease.lock();
        let ticket = Ticket::new(lock.clone(), self.lease.token().clone());
        let child = Child::start(Start {
            command: &self.work.command,
            environment: [
                (settings::NAME, lock.name().as_str().to_owned()),
                (settings::FENCING_TOKEN, self.lease.fencing_token().to_string()),
                (settings::TICKET, ticket.to_string()),
            ],
            inherits,
            foreground,
        })?;
        if let Some(terminal) = terminal.as_mut().filter(|_| foreground) {
            terminal.was_handed_over();
        }
        let running = Running { child, changes, signals, terminal };
        running.hold(keeper).await
    }

    /// Gives the lock back; `false`: it was lost before. A failure to give it back does not change
    /// how the command ended: it is told, and the store frees the lock when this program has ended.
    async fn release(&self) -> bool {
        match self.lease.release().await {
            Ok(held) => held,
            Err(error) => {
                let lock = self.lease.lock();
                report::say(format_args!("{lock}: giving the lock back failed: {error}"));
                true
            }
        }
    }
}

/// What is told where the command could not be started at all.
pub(crate) fn cannot_start(error: io::Error) -> Failure {
    Failure::new(Exit::NotExecutable, format!("the command cannot be started: {error}"))
}
