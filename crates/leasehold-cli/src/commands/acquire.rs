//! `leasehold acquire`: wait for a lock, print the ticket of a grant that stays.

use leasehold::{Detached, LockManager};
use serde::Serialize;

use super::request::{Line, Waited, Wanted, check, holder_info};
use crate::{
    args::AcquireArgs,
    exit::{Exit, Failure},
    report,
    settings::Settings,
    signals::Signals,
    store::{self, Opened, Place, Store},
    talk,
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
pub(crate) async fn acquire(args: AcquireArgs, settings: &Settings) -> Result<Exit, Failure> {
    let info = holder_info(&args.request)?;
    check(&args.request.share, args.name.get())?;
    let mut signals = Signals::listen()
        .map_err(|error| Failure::new(Exit::Unavailable, format!("cannot start: {error}")))?;
    let place = Place::of(settings)?;
    place.say();
    let store = match Store::open_unless(&place, &mut signals).await? {
        Opened::Store(store) => store,
        Opened::Signalled(signal) => return Ok(Exit::Signalled(signal)),
    };
    let locks = store.manager(args.request.namespace.namespace.clone(), info);
    let outcome = acquire_from(&locks, &args, &mut signals).await;
    store::shut_down(&locks, &mut signals).await;
    outcome.map_err(|failure| failure.conflicting_as(args.request.wait.conflict_exit_code))
}

async fn acquire_from(
    locks: &LockManager,
    args: &AcquireArgs,
    signals: &mut Signals,
) -> Result<Exit, Failure> {
    let wanted = [Wanted::open(locks, args.name.get(), &args.request.share)?];
    wanted[0].warn_of_other_kinds(locks).await?;
    let (mut requests, line) = Line::of(&wanted);
    let request = requests.pop().expect("one lock, one request");
    let request = request.timeout(args.request.wait.timeout()).ttl(args.ttl.get());
    let detached = match line.wait(request.detached(), signals).await? {
        Waited::Signalled(signal) => return Ok(Exit::Signalled(signal)),
        Waited::Granted(detached) => detached,
    };
    if let Some(signal) = signals.ending_already().await {
        give_back(locks, &detached).await;
        return Ok(Exit::Signalled(signal));
    }
    let (lock, fencing) = (detached.ticket().lock(), detached.fencing_token());
    talk::detail(format_args!("{lock}: granted, fencing token {fencing}"));
    if let Err(failure) = print(args, &detached) {
        // Nobody has the ticket, so nobody else could.
        give_back(locks, &detached).await;
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

async fn give_back(locks: &LockManager, detached: &Detached) {
    let released = match locks.restore(detached.ticket()) {
        Ok(grant) => grant.release().await,
        Err(error) => Err(error),
    };
    if let Err(error) = released {
        let lock = detached.ticket().lock();
        talk::warning(format_args!("{lock}: giving the lock back failed: {error}"));
    }
}
