//! `leasehold cancel`: reject those who wait for a lock.

use std::sync::Arc;

use leasehold::Operation;
use leasehold_core::Error;

use super::show::say_not_in_use;
use crate::{
    args::CancelArgs,
    exit::{Exit, Failure},
    report,
    settings::Settings,
    store::{Place, Store, the_one},
};

/// Rejects every waiter that is queued now (rule W5).
pub(crate) async fn cancel(args: CancelArgs, settings: &Settings) -> Result<Exit, Failure> {
    let place = Place::of(settings)?;
    place.say();
    let Some(state) = the_one(&place, &args.lock).await? else {
        say_not_in_use(&args.lock);
        return Ok(Exit::NotInUse);
    };
    let store = Store::open(&place).await?;
    let lock = Arc::new(state.lock);
    let cancelled = store.backend().cancel_all(&lock, &args.reason).await;
    // It holds nothing, so whether it leaves in good order is all the same.
    let _ = store.backend().close().await;
    let count = cancelled.map_err(|fault| Error::from_fault(fault, Operation::Cancel).on(&lock))?;
    let waiters = if count == 1 { "waiter" } else { "waiters" };
    report::print(&format!("{lock}: {count} {waiters} rejected\n"))?;
    Ok(Exit::Success)
}
