//! `leasehold run`: wait for a lock, run a command while it is held, give the lock back.

use std::os::fd::OwnedFd;

use leasehold::{LockManager, Ttl};

use super::{
    under::{Under, cannot_start},
    wait::{Waited, Wanted, check, holder_info},
};
use crate::{
    args::RunArgs,
    exit::{Exit, Failure},
    settings::Settings,
    signals::Signals,
    store::{self, Opened, Place, Store},
};

/// Runs the command under the lock.
pub(crate) async fn run(args: RunArgs) -> Result<Exit, Failure> {
    let settings = Settings::new(args.lock.store.place.clone())?;
    let info = holder_info(&args.lock)?;
    check(&args.lock)?;
    // From here on signals are obeyed, also while the store is opened.
    let mut signals = Signals::listen().map_err(cannot_start)?;
    let place = Place::of(&settings)?;
    if settings.verbose {
        place.say();
    }
    let store = match Store::open_unless(&place, &mut signals).await? {
        Opened::Store(store) => store,
        Opened::Signalled(signal) => return Ok(Exit::Signalled(signal)),
    };
    let inherits = if args.work.close { None } else { Some(store.liveness()?) };
    let locks = store.into_manager(args.lock.store.namespace.clone(), info);
    let outcome = run_under(&locks, &args, inherits, &mut signals, settings.verbose).await;
    store::shut_down(&locks, &mut signals).await;
    outcome.map_err(|failure| failure.conflicting_as(args.lock.wait.conflict_exit_code))
}

async fn run_under(
    locks: &LockManager,
    args: &RunArgs,
    inherits: Option<OwnedFd>,
    signals: &mut Signals,
    verbose: bool,
) -> Result<Exit, Failure> {
    let wanted = Wanted::open(locks, &args.lock)?;
    wanted.warn_of_other_kinds(locks).await?;
    let ttl = args.ttl.map(Ttl::get);
    let waited = wanted
        .wait(&args.lock.wait, signals, verbose, |request| request.ttl(ttl).renew().into_future())
        .await?;
    let lease = match waited {
        Waited::Signalled(signal) => return Ok(Exit::Signalled(signal)),
        Waited::Granted(lease) => lease,
    };
    if verbose {
        wanted.say_granted(lease.fencing_token());
    }
    Under { lease: &lease, work: &args.work }.run(inherits, signals).await
}
