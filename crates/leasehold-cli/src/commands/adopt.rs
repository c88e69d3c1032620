//! `leasehold adopt`: take the grant of a ticket over, run a command while it is held.

use leasehold::{HolderInfo, Lease, LockManager, Namespace, Ticket};

use super::{
    grant::gone,
    under::{Under, cannot_start},
};
use crate::{
    args::AdoptArgs,
    exit::{Exit, Failure},
    settings::Settings,
    signals::Signals,
    store::{self, Opened, Place, Store},
    talk, ticket,
};

/// Runs the command under the grant.
pub(crate) async fn adopt(args: AdoptArgs, settings: &Settings) -> Result<Exit, Failure> {
    let ticket = ticket::read(args.grant.ticket)?;
    let lock = ticket.lock();
    if lock.name().as_str().contains('\0') {
        // Said before the grant is touched: the command could not be told the name.
        let why = format!("{lock}: a command cannot run under a name with a NUL in it");
        return Err(Failure::new(Exit::Usage, why));
    }
    let mut signals = Signals::listen().map_err(cannot_start)?;
    let place = Place::of(settings)?;
    place.say();
    if !place.exists() {
        return Err(not_started(&ticket, &place));
    }
    let store = match Store::open_unless(&place, &mut signals).await? {
        Opened::Store(store) => store,
        Opened::Signalled(signal) => return Ok(Exit::Signalled(signal)),
    };
    let inherits = if args.work.close { None } else { store.liveness()? };
    // The ticket names the namespace.
    let locks = store.manager(Namespace::default(), HolderInfo::here());
    let outcome = match take_over(&locks, &ticket).await {
        Ok(Some(lease)) => {
            let fencing = lease.fencing_token();
            talk::detail(format_args!("{lock}: adopted, fencing token {fencing}"));
            let has_ttl = lease.certain_for().is_some();
            let guarded = !args.work.keep_going && (has_ttl || !store.proves_death());
            Under { leases: &[lease], work: &args.work, guarded }
                .run(inherits, &mut signals, async |_| {})
                .await
        }
        Ok(None) => Err(not_started(&ticket, &place)),
        Err(failure) => Err(failure),
    };
    store::shut_down(&locks, &mut signals).await;
    outcome
}

/// Renews first, so that the lease begins with its full TTL. `None`: it is gone.
async fn take_over(locks: &LockManager, ticket: &Ticket) -> Result<Option<Lease>, Failure> {
    let grant = locks.restore(ticket)?;
    if grant.renew().await? { Ok(grant.adopt().renew().await?) } else { Ok(None) }
}

fn not_started(ticket: &Ticket, place: &Place) -> Failure {
    gone(ticket.lock(), place).adding("the command was not started")
}
