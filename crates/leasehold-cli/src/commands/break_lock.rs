//! `leasehold break`: destroy a lock that others hold, and say whom that robs.

use std::{fmt::Write as _, sync::Arc};

use leasehold::{LockState, Operation};
use leasehold_core::Error;

use super::show::say_not_in_use;
use crate::{
    args::BreakArgs,
    duration,
    exit::{Exit, Failure},
    report,
    settings::Settings,
    store::{Place, Store, the_one},
};

/// Destroys the generation that was looked at, and no later one (rule N5).
pub(crate) async fn break_lock(args: BreakArgs, settings: &Settings) -> Result<Exit, Failure> {
    let place = Place::of(settings)?;
    place.say();
    let Some(state) = the_one(&place, &args.lock).await? else {
        say_not_in_use(&args.lock);
        return Ok(Exit::NotInUse);
    };
    if !args.yes {
        report::print(&robbed(&state, "would rob", "would be rejected"))?;
        let why = format!("{}: nothing was destroyed; say --yes to do it", state.lock);
        return Err(Failure::new(Exit::Usage, why));
    }
    let store = Store::open(&place).await?;
    let lock = Arc::new(state.lock.clone());
    let destroyed = store.backend().destroy(&lock, Some(state.generation), &args.reason).await;
    // It holds nothing, so whether it leaves in good order is all the same.
    let _ = store.backend().close().await;
    destroyed.map_err(|fault| Error::from_fault(fault, Operation::Destroy).on(&lock))?;
    report::print(&robbed(&state, "robs", "rejected"))?;
    Ok(Exit::Success)
}

fn robbed(state: &LockState, robs: &str, rejected: &str) -> String {
    let lock = &state.lock;
    let mut text = String::new();
    for holder in &state.holders {
        let held_for = duration::format(holder.held_for);
        let _ = writeln!(text, "{lock}: {robs} {}, who has held it for {held_for}", holder.info);
    }
    if state.holders.is_empty() {
        let _ = writeln!(text, "{lock}: {robs} nobody");
    }
    for waiter in &state.waiters {
        let waited_for = duration::format(waiter.waited_for);
        let _ = writeln!(text, "{lock}: {} {rejected}, after {waited_for}", waiter.info);
    }
    text
}
