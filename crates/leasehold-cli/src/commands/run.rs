//! `leasehold run`: wait for a lock, run a command while it is held, give the lock back.

use std::{os::fd::OwnedFd, process::ExitStatus};

use leasehold::{Acquire, Lease, LockManager, Ttl};

use super::{
    request::{Line, Waited, Wanted, check, holder_info},
    success::Success,
    under::{Under, cannot_start},
};
use crate::{
    args::RunArgs,
    exit::{Exit, Failure},
    settings::Settings,
    signals::Signals,
    store::{self, Opened, Place, Store},
    talk,
};

/// Runs the command under the lock.
pub(crate) async fn run(args: RunArgs, settings: &Settings) -> Result<Exit, Failure> {
    let info = holder_info(&args.request)?;
    let names = args.names.get();
    names.iter().try_for_each(|name| check(&args.request.share, name))?;
    // From here on signals are obeyed, also while the store is opened.
    let mut signals = Signals::listen().map_err(cannot_start)?;
    let place = Place::of(settings)?;
    place.say();
    let store = match Store::open_unless(&place, &mut signals).await? {
        Opened::Store(store) => store,
        Opened::Signalled(signal) => return Ok(Exit::Signalled(signal)),
    };
    let inherits = if args.work.close { None } else { store.liveness()? };
    let locks = store.manager(args.request.namespace.namespace.clone(), info.clone());
    let success = match args.at_most_once_per {
        Some(ttl) => {
            Some(Success::new(&store, &args.request.namespace.namespace, &names, info, ttl)?)
        }
        None => None,
    };
    let run = Run { args: &args, store: &store, locks: &locks, success };
    let outcome = run.wait_and_work(inherits, &mut signals).await;
    store::shut_down(&locks, &mut signals).await;
    outcome
}

struct Run<'a> {
    args: &'a RunArgs,
    store: &'a Store,
    locks: &'a LockManager,
    success: Option<Success<'a>>,
}

impl Run<'_> {
    async fn wait_and_work(
        &self,
        inherits: Option<OwnedFd>,
        signals: &mut Signals,
    ) -> Result<Exit, Failure> {
        // Before the wait, which may be for nothing, and again under the lock.
        if self.succeeded_lately().await? {
            return Ok(Exit::Success);
        }
        let leases = match self.wait(signals).await {
            Ok(Waited::Granted(leases)) => leases,
            Ok(Waited::Signalled(signal)) => return Ok(Exit::Signalled(signal)),
            Err(failure) if self.args.skip && failure.is_busy() => {
                talk::detail(format_args!("{failure}; skipped"));
                return Ok(Exit::Success);
            }
            Err(failure) => {
                let code = self.args.request.wait.conflict_exit_code;
                return Err(failure.conflicting_as(code));
            }
        };
        if self.succeeded_lately().await? {
            return Ok(Exit::Success);
        }
        let guarded =
            !self.args.work.keep_going && (self.args.ttl.is_some() || !self.store.proves_death());
        Under { leases: &leases, work: &self.args.work, guarded }
            .run(inherits, signals, async |status| self.note_success(status).await)
            .await
    }

    async fn wait(&self, signals: &mut Signals) -> Result<Waited<Vec<Lease>>, Failure> {
        let args = self.args;
        let mut wanted = Vec::new();
        for name in args.names.get() {
            wanted.push(Wanted::open(self.locks, name, &args.request.share)?);
        }
        for wanted in &wanted {
            wanted.warn_of_other_kinds(self.locks).await?;
        }
        let skips = args.skip && args.request.wait.wait.is_none();
        let timeout =
            if skips { Some(std::time::Duration::ZERO) } else { args.request.wait.timeout() };
        let (mut requests, line) = Line::of(&wanted);
        requests = requests.into_iter().map(|request| self.with_ttl(request)).collect();
        let waited = match <[Acquire; 1]>::try_from(requests) {
            Ok([request]) => {
                let one = async { request.timeout(timeout).await.map(|lease| vec![lease]) };
                line.wait(one, signals).await?
            }
            Err(requests) => {
                let all = self.locks.acquire_all(requests).timeout(timeout);
                line.wait(all.into_future(), signals).await?
            }
        };
        if let Waited::Granted(leases) = &waited {
            for lease in leases {
                let (lock, fencing) = (lease.lock(), lease.fencing_token());
                talk::detail(format_args!("{lock}: granted, fencing token {fencing}"));
            }
        }
        Ok(waited)
    }

    /// Without `--ttl` there is none where the store finds out that this program has died, and the
    /// default one, renewed, where it cannot (rule L2).
    fn with_ttl(&self, request: Acquire) -> Acquire {
        match self.args.ttl.map(Ttl::get) {
            Some(ttl) => request.ttl(ttl).renew(),
            None if self.store.proves_death() => request.ttl(None),
            None => request.renew(),
        }
    }

    async fn succeeded_lately(&self) -> Result<bool, Failure> {
        let Some(success) = &self.success else { return Ok(false) };
        let Some(ago) = success.lately().await? else { return Ok(false) };
        talk::detail(format_args!("skipped: {ago}"));
        Ok(true)
    }

    async fn note_success(&self, status: ExitStatus) {
        if let Some(success) = self.success.as_ref().filter(|_| status.success())
            && let Err(error) = success.note().await
        {
            talk::warning(format_args!("the success could not be recorded: {error}"));
        }
    }
}
