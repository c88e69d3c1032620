//! `leasehold show`: one lock, with everybody who holds it or waits for it.

use leasehold::{LockKind, LockState};

use crate::{
    args::ShowArgs,
    exit::{Exit, Failure},
    report::{self, ShowDocument},
    settings::Settings,
    store::{Place, Report},
};

/// Shows the lock of a name. Without a kind it is the one kind that is in use.
pub(crate) fn show(args: ShowArgs) -> Result<Exit, Failure> {
    let settings = Settings::new(args.store.place)?;
    let place = Place::of(&settings)?;
    if settings.verbose {
        place.say();
    }
    let mut states = Vec::new();
    if place.exists() {
        let kinds = args.kind.map_or_else(|| LockKind::ALL.to_vec(), |kind| vec![kind]);
        states = Report::of(&place)?.inspect(&args.store.namespace, &args.name, &kinds)?;
    }
    if let [_, _, ..] = states[..] {
        return Err(Failure::new(
            Exit::Usage,
            format!("\"{}\" is in use as {}; say which with --kind", args.name, kinds_of(&states)),
        ));
    }
    let state = states.pop();
    let exit = if state.is_some() { Exit::Success } else { Exit::NotInUse };
    if args.json {
        let lock = state.as_ref().map(Into::into);
        report::print_json(&ShowDocument { store: place.as_str(), lock })?;
    } else if let Some(state) = state {
        report::print(&report::details(&state))?;
    } else {
        let kind = args.kind.map_or_else(String::new, |kind| format!("{kind} "));
        report::say(format_args!("{kind}\"{}\": not in use", args.name));
    }
    Ok(exit)
}

fn kinds_of(states: &[LockState]) -> String {
    let kinds: Vec<_> = states.iter().map(|state| state.lock.kind().as_str()).collect();
    kinds.join(" and as ")
}
