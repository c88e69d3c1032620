//! The store that the settings name: where it is, this program's client of it, and a look at it.

mod look;
mod place;

pub(crate) use look::{Look, the_one};
pub(crate) use place::Place;

use std::{os::fd::OwnedFd, sync::Arc, thread};

use leasehold::{HolderInfo, LockManager, Namespace, Operation};
use leasehold_core::{Backend, Error, Fault};
use leasehold_sqlite::SqliteBackend;
use rustix::process::Signal;
use tokio::sync::oneshot;

use crate::{
    exit::{Exit, Failure},
    signals::Signals,
    talk,
};

/// This program's client of a store.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    backend: Arc<dyn Backend>,
    /// The same, where it is one of these: what is special about it is asked here.
    special: Special,
}

#[derive(Clone, Debug)]
enum Special {
    Sqlite(Arc<SqliteBackend>),
    #[cfg(feature = "redis")]
    Redis(Arc<leasehold_redis::RedisBackend>),
}

impl Store {
    /// Opens the store; it is made when it is not there.
    pub(crate) async fn open(place: &Place) -> Result<Self, Failure> {
        match place {
            Place::Sqlite { .. } => sqlite(place),
            #[cfg(feature = "redis")]
            Place::Redis { config, .. } => {
                let connected = leasehold_redis::RedisBackend::connect((**config).clone()).await;
                let redis = Arc::new(connected.map_err(opening)?);
                let backend: Arc<dyn Backend> = redis.clone();
                Ok(Self { backend, special: Special::Redis(redis) })
            }
        }
    }

    /// The same for who listens to signals: one that ends is obeyed also while the store is busy.
    pub(crate) async fn open_unless(
        place: &Place,
        signals: &mut Signals,
    ) -> Result<Opened, Failure> {
        tokio::select! {
            biased;
            opened = Self::open_beside(place) => opened.map(Opened::Store),
            signal = signals.next_ending() => Ok(Opened::Signalled(signal)),
        }
    }

    /// Opens without blocking this thread.
    async fn open_beside(place: &Place) -> Result<Self, Failure> {
        if !matches!(place, Place::Sqlite { .. }) {
            return Self::open(place).await;
        }
        let (tell, opened) = oneshot::channel();
        let place = place.clone();
        // A thread of its own, since the runtime would wait for one of its own at the end. If the
        // program ends first, it is as if it was killed while opening, which leaves nothing behind.
        thread::Builder::new()
            .name("open-store".into())
            .spawn(move || {
                let _ = tell.send(sqlite(&place));
            })
            .map_err(|error| Failure::new(Exit::Unavailable, format!("cannot start: {error}")))?;
        opened.await.expect("opening does not panic")
    }

    /// The client itself.
    pub(crate) fn backend(&self) -> &Arc<dyn Backend> {
        &self.backend
    }

    /// Whether the store frees what a dead process held, so that a grant without a TTL is no risk.
    pub(crate) fn proves_death(&self) -> bool {
        self.backend.capabilities().proves_death
    }

    /// What keeps this client alive in the eyes of others, for the command to inherit; `None`: this
    /// store has no such thing.
    pub(crate) fn liveness(&self) -> Result<Option<OwnedFd>, Failure> {
        match &self.special {
            Special::Sqlite(sqlite) => sqlite.liveness().map(Some).map_err(opening),
            #[cfg(feature = "redis")]
            Special::Redis(_) => Ok(None),
        }
    }

    /// The client, where it is one of Redis.
    #[cfg(feature = "redis")]
    pub(crate) fn redis(&self) -> Option<&leasehold_redis::RedisBackend> {
        match &self.special {
            Special::Redis(redis) => Some(redis),
            Special::Sqlite(_) => None,
        }
    }

    /// A manager of named locks on this client.
    pub(crate) fn manager(&self, namespace: Namespace, info: HolderInfo) -> LockManager {
        LockManager::builder().namespace(namespace).info(info).shared(Arc::clone(&self.backend))
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

/// Ends a manager in good order, unless a signal comes: whoever is in a hurry is not kept by a slow
/// store, which frees what is left anyway.
pub(crate) async fn shut_down(locks: &LockManager, signals: &mut Signals) {
    tokio::select! {
        closed = locks.shutdown() => {
            if let Err(error) = closed {
                // What was to be given back was given back, or has been reported.
                talk::warning(format_args!("closing the store failed: {error}"));
            }
        }
        _ = signals.next_ending() => {}
    }
}

fn sqlite(place: &Place) -> Result<Store, Failure> {
    let opened = match place {
        Place::Sqlite { default: true, .. } => SqliteBackend::open_default(),
        Place::Sqlite { path, .. } => SqliteBackend::open(path),
        #[cfg(feature = "redis")]
        Place::Redis { .. } => unreachable!("a server is no file"),
    };
    let sqlite = Arc::new(opened.map_err(opening)?);
    let backend: Arc<dyn Backend> = sqlite.clone();
    Ok(Store { backend, special: Special::Sqlite(sqlite) })
}

fn opening(fault: Fault) -> Failure {
    Error::from_fault(fault, Operation::Connect).into()
}

fn looking(fault: Fault) -> Failure {
    Error::from_fault(fault, Operation::Inspect).into()
}
