//! `run` and `adopt` while the lock is held: the command runs, its lease is watched, signals are
//! passed on; and if the lease is lost, the whole process group of the command is ended.

use std::{io, pin::pin, process::ExitStatus, time::Duration};

use rustix::process::{Signal, kill_current_process_group};
use tokio::{
    signal::unix,
    time::{Instant, sleep_until},
};

use super::keep::{Keepers, Loss};
use crate::{
    child::{Change, Child},
    guardian::Guardian,
    signals::Signals,
    talk,
    terminal::Terminal,
};

/// How often a group that is being ended is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// A stop of this program that was shorter was none: its group has no shell that would continue
/// it, so the system does not stop it for the terminal's sake.
const NOT_STOPPED: Duration = Duration::from_millis(50);

/// How long a command that cannot be stopped for the terminal's sake pauses instead.
const PAUSE: Duration = Duration::from_secs(1);

/// As good as for ever, for a grace that no clock can count.
const GRACE_MAX: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// How the command ended.
#[derive(Debug)]
pub(crate) enum End {
    /// By itself.
    Ended(ExitStatus),
    /// It was ended, because the lease was lost.
    Lost(Loss),
}

/// The command, and what belongs to it while it runs.
#[derive(Debug)]
pub(crate) struct Running<'a> {
    pub(crate) child: Child,
    /// Tells that something became of the command; listened to since before it was started.
    pub(crate) changes: unix::Signal,
    pub(crate) signals: &'a mut Signals,
    pub(crate) terminal: Option<Terminal>,
    /// Ends the command with this program, where the lock would pass on then.
    pub(crate) guardian: Option<Guardian>,
    /// Whether the command goes on when its lease is lost.
    pub(crate) keep_going: bool,
}

impl Running<'_> {
    /// Returns when the command has ended.
    pub(crate) async fn hold(mut self, keepers: Keepers<'_>) -> io::Result<End> {
        let mut over = pin!(keepers.until_over());
        let mut goes_on = false;
        // When the stopped command is to go on.
        let mut resume: Option<Instant> = None;
        loop {
            // In this order: a loss that was found out after a long stop of this program comes
            // before anything that would let the command go on.
            tokio::select! {
                biased;
                loss = &mut over, if !goes_on => {
                    if !self.keep_going {
                        return self.end(loss).await;
                    }
                    goes_on = true;
                    talk::warning(format_args!("{}; the command goes on", loss.why));
                }
                _ = self.changes.recv() => {
                    while let Some(change) = self.child.change()? {
                        match change {
                            Change::Ended(status) => return Ok(self.ended(status)),
                            Change::Stopped(signal) => resume = self.stopped(signal),
                        }
                    }
                    self.keep_guardian();
                }
                () = at(resume) => {
                    resume = None;
                    self.resume();
                }
                signal = self.signals.next() => self.child.signal(signal),
            }
        }
    }

    fn ended(&mut self, status: ExitStatus) -> End {
        if let Some(guardian) = self.guardian.take() {
            guardian.dismiss();
        }
        End::Ended(status)
    }

    /// Whoever kills the guardian leaves the command unguarded for a moment only.
    fn keep_guardian(&mut self) {
        let Some(guardian) = &mut self.guardian else { return };
        match guardian.keep() {
            Ok(false) => {}
            Ok(true) => talk::detail("the guardian was killed; another one watches"),
            Err(error) => {
                talk::warning(format_args!(
                    "nobody ends the command if this program is killed: the guardian is gone: {error}"
                ));
                self.guardian = None;
            }
        }
    }

    /// The command was stopped. Where the terminal was the reason, either it gets the terminal, or
    /// this program stops as well, with its own group, so that the shell takes over; the answer is
    /// when the command is to go on. Other stops are somebody's wish and are left alone.
    fn stopped(&mut self, signal: Signal) -> Option<Instant> {
        let terminal = self.terminal.as_mut()?;
        let wants_terminal = signal == Signal::TTIN || signal == Signal::TTOU;
        if wants_terminal && terminal.is_ours() {
            return Some(Instant::now());
        }
        if !wants_terminal && signal != Signal::TSTP {
            return None;
        }
        terminal.take_back();
        let before = Instant::now();
        // This program is stopped in here and goes on when its shell continues it.
        let _ = kill_current_process_group(signal);
        let stopped_for = before.elapsed();
        Some(if stopped_for < NOT_STOPPED { Instant::now() + PAUSE } else { Instant::now() })
    }

    fn resume(&mut self) {
        if let Some(terminal) = &mut self.terminal
            && terminal.is_ours()
        {
            terminal.hand_over(self.child.group());
        }
        self.child.signal(Signal::CONT);
    }

    /// Ends the whole group: TERM, and after the grace KILL, whether or not the command itself
    /// has ended by then.
    async fn end(mut self, loss: Loss) -> io::Result<End> {
        let now = Instant::now();
        let kill_at = now.checked_add(loss.grace).unwrap_or(now + GRACE_MAX);
        self.child.signal(Signal::TERM);
        // A stopped process would hear of it too late.
        self.child.signal(Signal::CONT);
        let mut ended = false;
        while Instant::now() < kill_at && self.somebody_is_left(ended) {
            tokio::select! {
                _ = self.changes.recv(), if !ended => ended = self.has_ended()?,
                signal = self.signals.next() => self.child.signal(signal),
                () = sleep_until(kill_at.min(Instant::now() + LOOK)) => {}
            }
        }
        if self.somebody_is_left(ended) {
            self.child.signal(Signal::KILL);
        }
        while !ended {
            self.changes.recv().await;
            ended = self.has_ended()?;
        }
        if let Some(guardian) = self.guardian.take() {
            guardian.dismiss();
        }
        Ok(End::Lost(loss))
    }

    fn somebody_is_left(&self, ended: bool) -> bool {
        !ended || self.child.group_lives()
    }

    fn has_ended(&self) -> io::Result<bool> {
        while let Some(change) = self.child.change()? {
            if let Change::Ended(_) = change {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}
