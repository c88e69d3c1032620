//! The grant that a ticket names, for the commands that take one.

use leasehold::{HolderInfo, LeaseRef, LockId, Namespace};

use crate::{
    args::GrantArgs,
    exit::{Exit, Failure},
    settings::Settings,
    store::{Place, Store},
    ticket,
};

/// Does something with the grant, which says whether the grant was still alive.
pub(crate) async fn on_grant(
    args: GrantArgs,
    act: impl AsyncFnOnce(&LeaseRef) -> Result<bool, Failure>,
) -> Result<Exit, Failure> {
    let settings = Settings::new(args.place)?;
    let ticket = ticket::read(args.ticket)?;
    let place = Place::of(&settings)?;
    if settings.verbose {
        place.say();
    }
    if !place.exists() {
        return Err(gone(ticket.lock()));
    }
    // The ticket names the namespace.
    let locks = Store::open(&place)?.into_manager(Namespace::default(), HolderInfo::here());
    let grant = locks.restore(&ticket)?;
    let outcome = act(&grant).await;
    // It holds nothing, so whether it leaves in good order is all the same.
    let _ = locks.shutdown().await;
    if outcome? { Ok(Exit::Success) } else { Err(gone(ticket.lock())) }
}

/// What is told where the store does not know the grant, or does not exist.
pub(crate) fn gone(lock: &LockId) -> Failure {
    Failure::new(Exit::Lost, format!("{lock}: the grant of this ticket is gone"))
}
