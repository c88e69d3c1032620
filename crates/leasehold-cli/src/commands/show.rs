//! `leasehold show`: one lock, with everybody who holds it or waits for it.

use crate::{
    args::{LockArgs, ShowArgs},
    exit::{Exit, Failure},
    report::{self, ShowDocument},
    settings::Settings,
    store::{Place, the_one},
    talk,
};

/// Shows the lock of a name. Without a kind it is the one kind that is in use.
pub(crate) async fn show(args: ShowArgs, settings: &Settings) -> Result<Exit, Failure> {
    let place = Place::of(settings)?;
    place.say();
    let state = the_one(&place, &args.lock).await?;
    let exit = if state.is_some() { Exit::Success } else { Exit::NotInUse };
    if args.json {
        let lock = state.as_ref().map(Into::into);
        report::print_json(&ShowDocument { store: place.as_str(), lock })?;
    } else if let Some(state) = state {
        report::print(&report::details(&state))?;
    } else {
        say_not_in_use(&args.lock);
    }
    Ok(exit)
}

/// What is told where nobody uses the lock.
pub(crate) fn say_not_in_use(lock: &LockArgs) {
    let kind = lock.kind.kind.map_or_else(String::new, |kind| format!("{kind} "));
    talk::note(format_args!("{kind}\"{}\": not in use", lock.name.get()));
}
