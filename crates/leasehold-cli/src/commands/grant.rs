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
    settings: &Settings,
    act: impl AsyncFnOnce(&LeaseRef) -> Result<bool, Failure>,
) -> Result<Exit, Failure> {
    let ticket = ticket::read(args.ticket)?;
    let place = Place::of(settings)?;
    place.say();
    if !place.exists() {
        return Err(gone(ticket.lock(), &place));
    }
    // The ticket names the namespace.
    let locks = Store::open(&place).await?.manager(Namespace::default(), HolderInfo::here());
    let grant = locks.restore(&ticket)?;
    let outcome = act(&grant).await;
    // It holds nothing, so whether it leaves in good order is all the same.
    let _ = locks.shutdown().await;
    if outcome? { Ok(Exit::Success) } else { Err(gone(ticket.lock(), &place)) }
}

/// What is told where the store does not know the grant, or does not exist. A ticket does not say
/// of which store it is, so one that is used on the wrong store looks the same.
pub(crate) fn gone(lock: &LockId, place: &Place) -> Failure {
    let place = place.as_str();
    let why = format!("{lock}: the grant of this ticket is gone, or of another store than {place}");
    Failure::new(Exit::Lost, why)
}
