//! A look at a store, which works also while a process has stopped in the middle of it.

use std::sync::Arc;

use leasehold::{LockId, LockKind, LockName, LockState, Namespace};
use leasehold_sqlite::SqliteReport;

use super::{Place, looking, opening};
use crate::{
    args::LockArgs,
    exit::{Exit, Failure},
};

/// A look at a store. Nothing is made or registered there.
#[derive(Debug)]
pub(crate) enum Look {
    /// There is nothing to be looked at yet.
    Nothing,
    /// A database of this machine.
    Sqlite(Box<SqliteReport>),
    /// A client of another store.
    #[cfg(feature = "redis")]
    Client(Arc<dyn leasehold::Backend>),
}

impl Look {
    /// Looks at a place.
    pub(crate) async fn at(place: &Place) -> Result<Self, Failure> {
        if !place.exists() {
            return Ok(Self::Nothing);
        }
        let opened = match place {
            Place::Sqlite { default: true, .. } => SqliteReport::open_default(),
            Place::Sqlite { path, .. } => SqliteReport::open(path),
            #[cfg(feature = "redis")]
            Place::Redis { .. } => {
                let store = super::Store::open(place).await?;
                return Ok(Self::Client(Arc::clone(store.backend())));
            }
        };
        opened.map(|report| Self::Sqlite(Box::new(report))).map_err(opening)
    }

    /// Looks again at a place that may have come into being, or been made anew, since.
    pub(crate) async fn again(&mut self, place: &Place) -> Result<(), Failure> {
        if matches!(self, Self::Nothing) || !place.exists() {
            *self = Self::at(place).await?;
        }
        Ok(())
    }

    /// The locks in use, of one namespace or of all.
    pub(crate) async fn survey(
        &mut self,
        namespace: Option<&Namespace>,
    ) -> Result<Vec<LockState>, Failure> {
        match self {
            Self::Nothing => Ok(Vec::new()),
            Self::Sqlite(report) => report.survey(namespace).map_err(looking),
            #[cfg(feature = "redis")]
            Self::Client(backend) => backend.survey(namespace).await.map_err(looking),
        }
    }

    /// The locks of a name that are in use, of one kind or of all.
    pub(crate) async fn inspect(
        &mut self,
        namespace: &Namespace,
        name: &LockName,
        kind: Option<LockKind>,
    ) -> Result<Vec<LockState>, Failure> {
        let kinds = kind.map_or_else(|| LockKind::ALL.to_vec(), |kind| vec![kind]);
        let mut states = Vec::new();
        for kind in kinds {
            let lock = Arc::new(LockId::new(namespace.clone(), kind, name.clone()));
            match self {
                Self::Nothing => {}
                Self::Sqlite(report) => states.extend(report.inspect(&lock).map_err(looking)?),
                #[cfg(feature = "redis")]
                Self::Client(backend) => {
                    states.extend(backend.inspect(&lock).await.map_err(looking)?);
                }
            }
        }
        Ok(states)
    }
}

/// The lock that the arguments name, if it is in use. Without a kind it is the one kind that is.
pub(crate) async fn the_one(place: &Place, lock: &LockArgs) -> Result<Option<LockState>, Failure> {
    let name = lock.name.get();
    let mut look = Look::at(place).await?;
    let states = look.inspect(&lock.namespace.namespace, name, lock.kind.kind).await?;
    one_of(states, name)
}

/// The only one of these, if there is any.
fn one_of(mut states: Vec<LockState>, name: &LockName) -> Result<Option<LockState>, Failure> {
    if let [_, _, ..] = states[..] {
        let kinds: Vec<_> = states.iter().map(|state| state.lock.kind().as_str()).collect();
        let kinds = kinds.join(" and as ");
        let why = format!("\"{name}\" is in use as {kinds}; say which with --kind");
        return Err(Failure::new(Exit::Usage, why));
    }
    Ok(states.pop())
}
