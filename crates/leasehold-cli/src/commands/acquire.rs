//! `leasehold acquire`: wait for a lock, print the ticket of a grant that stays.

use leasehold::{Detached, LockManager};
use serde::Serialize;

use super::wait::{Waited, Wanted, check, holder_info};
use crate::{
    args::AcquireArgs,
    exit::{Exit, Failure},
    report,
    settings::Settings,
    signals::Signals,
    store::{self, Opened, Place, Store},
};

/// The document of `acquire --json`.
#[derive(Serialize)]
struct Document<'a> {
    ticket: String,
    fencing_token: u64,
    namespace: &'a str,
    /// `mutex`, `semaphore` or `rw-lock`.
    kind: &'static str,
    name: &'a str,
    ttl_ms: u32,
}

/// Acquires for whoever has the ticket (rule T8).
pub(crate) async fn acquire(args: AcquireArgs) -> Result<Exit, Failure> {
    let settings = Settings::new(args.lock.store.place.clone())?;
    let info = holder_info(&args.lock)?;
    check(&args.lock)?;
    let mut signals = Signals::listen()
        .map_err(|error| Failure::new(Exit::Unavailable, format!("cannot start: {error}")))?;
    let place = Place::of(&settings)?;
    if settings.verbose {
        place.say();
    }
    let store = match Store::open_unless(&place, &mut signals).await? {
        Opened::Store(store) => store,
        Opened::Signalled(signal) => return Ok(Exit::Signalled(signal)),
    };
    let locks = store.into_manager(args.lock.store.namespace.clone(), info);
    let outcome = acquire_from(&locks, &args, &mut signals, settings.verbose).await;
    store::shut_down(&locks, &mut signals).await;
    outcome.map_err(|failure| failure.conflicting_as(args.lock.wait.conflict_exit_code))
}

async fn acquire_from(
    locks: &LockManager,
    args: &AcquireArgs,
    signals: &mut Signals,
    verbose: bool,
) -> Result<Exit, Failure> {
    let wanted = Wanted::open(locks, &args.lock)?;
    wanted.warn_of_other_kinds(locks).await?;
    let waited = wanted
        .wait(&args.lock.wait, signals, verbose, |request| request.ttl(args.ttl.get()).detached())
        .await?;
    let detached = match waited {
        Waited::Signalled(signal) => return Ok(Exit::Signalled(signal)),
        Waited::Granted(detached) => detached,
    };
    if let Some(signal) = signals.ending_already().await {
        give_back(locks, &wanted, &detached).await;
        return Ok(Exit::Signalled(signal));
    }
    if verbose {
        wanted.say_granted(detached.fencing_token());
    }
    if let Err(failure) = print(args, &detached) {
        // Nobody has the ticket, so nobody else could.
        give_back(locks, &wanted, &detached).await;
        return Err(failure);
    }
    Ok(Exit::Success)
}

fn print(args: &AcquireArgs, detached: &Detached) -> Result<(), Failure> {
    let ticket = detached.ticket();
    if !args.json {
        return report::deliver(&format!("{ticket}\n"));
    }
    let lock = ticket.lock();
    report::deliver(&report::json(&Document {
        ticket: ticket.to_string(),
        fencing_token: detached.fencing_token().get(),
        namespace: lock.namespace().as_str(),
        kind: lock.kind().as_str(),
        name: lock.name().as_str(),
        ttl_ms: args.ttl.as_millis(),
    })?)
}

async fn give_back(locks: &LockManager, wanted: &Wanted, detached: &Detached) {
    let released = match locks.restore(detached.ticket()) {
        Ok(grant) => grant.release().await,
        Err(error) => Err(error),
    };
    if let Err(error) = released {
        report::say(format_args!("{wanted}: giving the lock back failed: {error}"));
    }
}
