//! `leasehold list`: the locks in use.

use crate::{
    args::ListArgs,
    exit::{Exit, Failure},
    report::{self, ListDocument},
    settings::Settings,
    store::{Place, Report},
};

/// Lists the locks in use. A store that does not exist yet has none, and is not made for that.
pub(crate) fn list(args: ListArgs) -> Result<Exit, Failure> {
    let settings = Settings::new(args.store.place)?;
    let place = Place::of(&settings)?;
    let locks = if place.exists() {
        let namespace = (!args.all).then_some(&args.store.namespace);
        Report::of(&place)?.survey(namespace)?
    } else {
        Vec::new()
    };
    if args.json {
        let locks = locks.iter().map(Into::into).collect();
        report::print_json(&ListDocument { store: place.as_str(), locks })?;
    } else {
        // Said always, so that whoever misses a lock sees at once that it is another store.
        place.say();
        report::print(&report::table(&locks, args.all))?;
    }
    Ok(Exit::Success)
}
