//! `leasehold run`: wait for a lock, run a command while it is held, give the lock back.

use std::{io, os::fd::OwnedFd};

use leasehold::{HolderInfo, Lease, LockKind, LockManager};
use tokio::signal::unix::{self, SignalKind};

use super::{
    hold::{End, Running},
    keep::Keeper,
    wait::{Waited, Wanted},
};
use crate::{
    args::RunArgs,
    child::{self, Child, Start},
    exit::{Exit, Failure},
    report,
    settings::{self, Settings},
    signals::Signals,
    store::{Place, Store},
    terminal::Terminal,
};

/// Runs the command under the lock.
pub(crate) async fn run(args: RunArgs) -> Result<Exit, Failure> {
    let settings = Settings::new(args.store.clone())?;
    let info = holder_info(&args)?;
    check_weight(&args)?;
    // From here on signals are obeyed, also while the store is opened.
    let mut signals = Signals::listen().map_err(cannot_start)?;
    let place = Place::of(&settings)?;
    if settings.verbose {
        place.say();
    }
    let store = Store::open(&place)?;
    let inherits = if args.close { None } else { Some(store.liveness()?) };
    let locks = store.into_manager(settings.namespace, info);
    let run = Run { args: &args, locks: &locks, verbose: settings.verbose };
    let outcome = run.to_its_end(inherits, &mut signals).await;
    tokio::select! {
        closed = locks.shutdown() => {
            if let Err(error) = closed {
                // What was to be given back was given back, or has been reported.
                report::say(format_args!("closing the store failed: {error}"));
            }
        }
        // Whoever is in a hurry is not kept by a slow store, which frees what is left anyway.
        _ = signals.next_ending() => {}
    }
    outcome.map_err(|failure| failure.conflicting_as(args.wait.conflict_exit_code))
}

/// One run under way.
struct Run<'a> {
    args: &'a RunArgs,
    locks: &'a LockManager,
    verbose: bool,
}

impl Run<'_> {
    async fn to_its_end(
        &self,
        inherits: Option<OwnedFd>,
        signals: &mut Signals,
    ) -> Result<Exit, Failure> {
        let wanted = Wanted::open(self.locks, self.args)?;
        self.warn_of_other_kinds(wanted.kind()).await?;
        let waited = wanted.wait(&self.args.wait, self.args.ttl, signals, self.verbose).await?;
        let lease = match waited {
            Waited::Signalled(signal) => return Ok(Exit::Signalled(signal)),
            Waited::Granted(lease) => lease,
        };
        if let Some(signal) = signals.ending_already().await {
            self.release(&wanted, &lease).await;
            return Ok(Exit::Signalled(signal));
        }
        if self.verbose {
            report::say(format_args!("{wanted}: granted, fencing token {}", lease.fencing_token()));
        }
        let outcome = self.under(&lease, inherits, signals).await;
        if let Ok(End::Lost(loss)) = outcome {
            return Err(Failure::new(
                Exit::Lost,
                format!("{wanted}: {}; the command was ended", loss.why),
            ));
        }
        let still_held = self.release(&wanted, &lease).await;
        match outcome.map_err(cannot_start)? {
            End::Ended(_) if !still_held => Err(Failure::new(
                Exit::Lost,
                format!("{wanted}: the lease was lost while the command ran"),
            )),
            End::Ended(status) => Ok(child::exit_of(status)),
            End::Lost(_) => unreachable!("told above"),
        }
    }

    async fn under(
        &self,
        lease: &Lease,
        inherits: Option<OwnedFd>,
        signals: &mut Signals,
    ) -> io::Result<End> {
        let keeper = Keeper::new(lease, self.args.ttl, self.args.grace);
        let mut terminal = Terminal::controlling();
        let foreground = terminal.as_ref().is_some_and(Terminal::is_for_the_command);
        let changes = unix::signal(SignalKind::child())?;
        let child = Child::start(Start {
            command: &self.args.command,
            environment: [
                (settings::NAME, self.args.name.as_str().to_owned()),
                (settings::FENCING_TOKEN, lease.fencing_token().to_string()),
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
    async fn release(&self, wanted: &Wanted, lease: &Lease) -> bool {
        match lease.release().await {
            Ok(held) => held,
            Err(error) => {
                report::say(format_args!("{wanted}: giving the lock back failed: {error}"));
                true
            }
        }
    }

    /// One name may be in use as several kinds, which do not exclude each other (rule N1): most
    /// likely a mistake.
    async fn warn_of_other_kinds(&self, kind: LockKind) -> Result<(), Failure> {
        let name = || self.args.name.clone();
        for other in LockKind::ALL.into_iter().filter(|other| *other != kind) {
            let state = match other {
                LockKind::Mutex => self.locks.mutex(name())?.inspect().await?,
                LockKind::Semaphore => self.locks.semaphore(name(), 1)?.inspect().await?,
                LockKind::RwLock => self.locks.rw_lock(name())?.inspect().await?,
            };
            if state.is_some() {
                let name = &self.args.name;
                report::say(format_args!(
                    "warning: \"{name}\" is also in use as a {other}, which does not exclude this {kind}"
                ));
            }
        }
        Ok(())
    }
}

fn holder_info(args: &RunArgs) -> Result<HolderInfo, Failure> {
    let info = HolderInfo::here();
    match &args.label {
        None => Ok(info),
        Some(label) => {
            info.labelled(label).map_err(|error| Failure::new(Exit::Usage, error.to_string()))
        }
    }
}

/// What can be refused without the store is refused before the store is touched (rule W6).
fn check_weight(args: &RunArgs) -> Result<(), Failure> {
    match (args.share.permits, args.share.weight) {
        (Some(permits), Some(weight)) if weight.get() > permits.get() => Err(Failure::new(
            Exit::Usage,
            format!(
                "semaphore \"{}\": a weight of {weight} is above the capacity of {permits}",
                args.name
            ),
        )),
        _ => Ok(()),
    }
}

fn cannot_start(error: io::Error) -> Failure {
    Failure::new(Exit::NotExecutable, format!("the command cannot be started: {error}"))
}
