//! `leasehold list`: the locks in use.

use crate::{
    args::ListArgs,
    exit::{Exit, Failure},
    report::{self, ListDocument},
    settings::Settings,
    store::{Look, Place},
    talk,
};

/// Lists the locks in use. A store that does not exist yet has none, and is not made for that.
pub(crate) async fn list(args: ListArgs, settings: &Settings) -> Result<Exit, Failure> {
    let place = Place::of(settings)?;
    let namespace = &args.namespace.namespace;
    let locks = Look::at(&place).await?.survey((!args.all).then_some(namespace)).await?;
    if args.json {
        let locks = locks.iter().map(Into::into).collect();
        report::print_json(&ListDocument { store: place.as_str(), locks })?;
        return Ok(Exit::Success);
    }
    // Said always, so that whoever misses a lock sees at once that it is another store.
    talk::note(place.told());
    if locks.is_empty() {
        let hint = "`leasehold list --all` shows those of all namespaces";
        talk::note(if args.all {
            "no lock is in use".to_owned()
        } else {
            format!("no lock is in use in the namespace {namespace}; {hint}")
        });
    }
    report::print(&report::table(&locks, args.all))?;
    Ok(Exit::Success)
}
