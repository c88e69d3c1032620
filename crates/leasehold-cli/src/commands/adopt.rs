//! `leasehold adopt`: take the grant of a ticket over, run a command while it is held.

use leasehold::{HolderInfo, Lease, LockManager, Namespace, Ticket};

use super::{
    grant::gone,
    under::{Under, cannot_start},
};
use crate::{
    args::AdoptArgs,
    exit::{Exit, Failure},
    report,
    settings::Settings,
    signals::Signals,
    store::{self, Opened, Place, Store},
    ticket,
};

/// Runs the command under the grant.
pub(crate) async fn adopt(args: AdoptArgs) -> Result<Exit, Failure> {
    let settings = Settings::new(args.grant.place)?;
    let ticket = ticket::read(args.grant.ticket)?;
    let lock = ticket.lock();
    if lock.name().as_str().contains('\0') {
        // Said before the grant is touched: the command could not be told the name.
        let why = format!("{lock}: a command cannot run under a name with a NUL in it");
        return Err(Failure::new(Exit::Usage, why));
    }
    let mut signals = Signals::listen().map_err(cannot_start)?;
    let place = Place::of(&settings)?;
    if settings.verbose {
        place.say();
    }
    if !place.exists() {
        return Err(not_started(&ticket));
    }
    let store = match Store::open_unless(&place, &mut signals).await? {
        Opened::Store(store) => store,
        Opened::Signalled(signal) => return Ok(Exit::Signalled(signal)),
    };
    let inherits = if args.work.close { None } else { Some(store.liveness()?) };
    // The ticket names the namespace.
    let locks = store.into_manager(Namespace::default(), HolderInfo::here());
    let outcome = match take_over(&locks, &ticket).await {
        Ok(lease) => {
            if settings.verbose {
                let fencing = lease.fencing_token();
                report::say(format_args!("{lock}: adopted, fencing token {fencing}"));
            }
            Under { lease: &lease, work: &args.work }.run(inherits, &mut signals).await
        }
        Err(failure) => Err(failure),
    };
    store::shut_down(&locks, &mut signals).await;
    outcome
}

/// Renews first, so that the lease begins with its full TTL.
async fn take_over(locks: &LockManager, ticket: &Ticket) -> Result<Lease, Failure> {
    let grant = locks.restore(ticket)?;
    let lease = if grant.renew().await? { grant.adopt().renew().await? } else { None };
    lease.ok_or_else(|| not_started(ticket))
}

fn not_started(ticket: &Ticket) -> Failure {
    gone(ticket.lock()).adding("the command was not started")
}
