//! The store that the settings name: where it is, and this program's client of it.

use std::{os::fd::OwnedFd, path::PathBuf, sync::Arc, thread};

use leasehold::{
    HolderInfo, LockId, LockKind, LockManager, LockName, LockState, Namespace, Operation,
};
use leasehold_core::{Error, Fault};
use leasehold_sqlite::{SqliteBackend, SqliteReport};
use rustix::process::Signal;
use tokio::sync::oneshot;

use crate::{
    exit::{Exit, Failure},
    report,
    settings::Settings,
    signals::Signals,
};

/// Where a store is.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    path: PathBuf,
    /// The default store: its directory is made when it is not there.
    default: bool,
    url: String,
}

impl Place {
    /// The place that the settings name. Nothing is touched.
    pub(crate) fn of(settings: &Settings) -> Result<Self, Failure> {
        let Some(url) = &settings.store else {
            let path = leasehold_sqlite::default_path().map_err(opening)?;
            let url = format!("sqlite:{}", path.display());
            return Ok(Self { path, default: true, url });
        };
        match url.split_once(':') {
            Some(("sqlite", _)) => {
                let path = leasehold_sqlite::path_of_url(url).map_err(naming)?;
                Ok(Self { path, default: false, url: url.clone() })
            }
            Some(("memory", _)) => Err(Failure::new(
                Exit::Usage,
                "memory: is a store of one process alone, where nothing can be shared; \
                 use sqlite:PATH",
            )),
            // The rest is not repeated: it may hold a password.
            Some((scheme, _)) => Err(Failure::new(
                Exit::Usage,
                format!("no store is called {scheme:?}; use sqlite:PATH"),
            )),
            None => Err(Failure::new(Exit::Usage, "a store is named by a URL: sqlite:PATH")),
        }
    }

    /// Whether there is something at the place, fit to be a store or not.
    pub(crate) fn exists(&self) -> bool {
        if self.path.symlink_metadata().is_ok() {
            return true;
        }
        // An unsafe thing in the place of the default store's directory is to be told, not passed
        // over because it has no database in it.
        self.default && self.path.parent().is_some_and(|parent| parent.symlink_metadata().is_ok())
    }

    /// As people name it.
    pub(crate) fn as_str(&self) -> &str {
        &self.url
    }

    /// Tells the place on stderr.
    pub(crate) fn say(&self) {
        let missing = if self.exists() { "" } else { " (not there yet)" };
        report::say(format_args!("store: {}{missing}", self.url));
    }
}

/// This program's client of a store.
#[derive(Debug)]
pub(crate) struct Store(SqliteBackend);

impl Store {
    /// Opens the store; it is made when it is not there.
    pub(crate) fn open(place: &Place) -> Result<Self, Failure> {
        let opened = if place.default {
            SqliteBackend::open_default()
        } else {
            SqliteBackend::open(&place.path)
        };
        opened.map(Self).map_err(opening)
    }

    /// The same for who listens to signals: one that ends is obeyed also while the store is busy.
    pub(crate) async fn open_unless(
        place: &Place,
        signals: &mut Signals,
    ) -> Result<Opened, Failure> {
        let (tell, opened) = oneshot::channel();
        let place = place.clone();
        // A thread of its own, since the runtime would wait for one of its own at the end. If the
        // program ends first, it is as if it was killed while opening, which leaves nothing behind.
        thread::Builder::new()
            .name("open-store".into())
            .spawn(move || {
                let _ = tell.send(Self::open(&place));
            })
            .map_err(|error| Failure::new(Exit::Unavailable, format!("cannot start: {error}")))?;
        tokio::select! {
            biased;
            opened = opened => opened.expect("opening does not panic").map(Opened::Store),
            signal = signals.next_ending() => Ok(Opened::Signalled(signal)),
        }
    }

    /// What keeps this client alive in the eyes of others, for the command to inherit.
    pub(crate) fn liveness(&self) -> Result<OwnedFd, Failure> {
        self.0.liveness().map_err(opening)
    }

    /// A manager of named locks on this client.
    pub(crate) fn into_manager(self, namespace: Namespace, info: HolderInfo) -> LockManager {
        LockManager::builder().namespace(namespace).info(info).backend(self.0)
    }
}

/// What came first.
#[derive(Debug)]
pub(crate) enum Opened {
    /// The store was opened.
    Store(Store),
    /// A signal ends the program.
    Signalled(Signal),
}

/// A look at a store, which works also while a process has stopped in the middle of it.
#[derive(Debug)]
pub(crate) struct Report(SqliteReport);

impl Report {
    /// Looks at a place. Nothing is registered there.
    pub(crate) fn of(place: &Place) -> Result<Self, Failure> {
        let opened = if place.default {
            SqliteReport::open_default()
        } else {
            SqliteReport::open(&place.path)
        };
        opened.map(Self).map_err(opening)
    }

    /// The locks in use, of one namespace or of all.
    pub(crate) fn survey(
        &mut self,
        namespace: Option<&Namespace>,
    ) -> Result<Vec<LockState>, Failure> {
        self.0.survey(namespace).map_err(looking)
    }

    /// The locks of a name that are in use, of these kinds.
    pub(crate) fn inspect(
        &mut self,
        namespace: &Namespace,
        name: &LockName,
        kinds: &[LockKind],
    ) -> Result<Vec<LockState>, Failure> {
        let mut states = Vec::new();
        for kind in kinds {
            let lock = Arc::new(LockId::new(namespace.clone(), *kind, name.clone()));
            states.extend(self.0.inspect(&lock).map_err(looking)?);
        }
        Ok(states)
    }
}

/// Ends a manager in good order, unless a signal comes: whoever is in a hurry is not kept by a slow
/// store, which frees what is left anyway.
pub(crate) async fn shut_down(locks: &LockManager, signals: &mut Signals) {
    tokio::select! {
        closed = locks.shutdown() => {
            if let Err(error) = closed {
                // What was to be given back was given back, or has been reported.
                report::say(format_args!("closing the store failed: {error}"));
            }
        }
        _ = signals.next_ending() => {}
    }
}

/// What a URL asks for and no store has is wrong usage.
fn naming(fault: Fault) -> Failure {
    opening(fault).with_exit(Exit::Usage)
}

fn opening(fault: Fault) -> Failure {
    Error::from_fault(fault, Operation::Connect).into()
}

fn looking(fault: Fault) -> Failure {
    Error::from_fault(fault, Operation::Inspect).into()
}
