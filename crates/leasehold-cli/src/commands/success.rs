//! `run --at-most-once-per`: when the command has succeeded last, recorded in the store.
//!
//! A success is a grant that nobody gives back: of the mutex of the same name in a companion
//! namespace, bound to its token (rule T8), with the duration as its TTL. So the store's own clock
//! decides how long it counts (rule L1), wherever the next `run` is, and nothing needs to be cleaned
//! up. It is noted and looked at while the lock itself is held, so no two runs can both find none,
//! unless several may hold the lock at a time.

use leasehold::{HolderInfo, LockName, NamedMutex, Namespace, Ttl};

use crate::{
    duration,
    exit::{Exit, Failure},
    store::Store,
};

/// What follows the namespace of a lock in that of its success.
const SUFFIX: &str = "!last-success";

/// The last success under a lock.
#[derive(Debug)]
pub(crate) struct Success<'a> {
    store: &'a Store,
    namespace: Namespace,
    name: LockName,
    info: HolderInfo,
    ttl: Ttl,
}

impl<'a> Success<'a> {
    /// The success of the first of the names. Nothing is asked yet.
    pub(crate) fn new(
        store: &'a Store,
        namespace: &Namespace,
        names: &[&LockName],
        info: HolderInfo,
        ttl: Ttl,
    ) -> Result<Self, Failure> {
        let namespace = Namespace::new(format!("{}{SUFFIX}", namespace.as_str()))
            .map_err(|error| Failure::new(Exit::Usage, format!("--at-most-once-per: {error}")))?;
        Ok(Self { store, namespace, name: names[0].clone(), info, ttl })
    }

    /// How long ago the command has succeeded, in words; `None`: not lately.
    pub(crate) async fn lately(&self) -> Result<Option<String>, Failure> {
        let Some(state) = self.record()?.inspect().await? else { return Ok(None) };
        // One that was recorded for longer is there still when it is too old for this run.
        let is_late = |ago| ago < self.ttl.get();
        let Some(last) = state.holders.first().filter(|last| is_late(last.held_for)) else {
            return Ok(None);
        };
        let ago = duration::format(last.held_for);
        Ok(Some(format!("\"{}\" has succeeded {ago} ago, by {}", self.name, last.info)))
    }

    /// Records a success as of now, in the place of an older one. One that was recorded just now by
    /// another run is as good.
    pub(crate) async fn note(&self) -> leasehold::Result<()> {
        let older = self.record()?;
        if older.inspect().await?.is_some() {
            older.destroy().await?;
        }
        // A handle of a destroyed lock stays one.
        let record = self.record()?;
        let request = record.lock().timeout(std::time::Duration::ZERO).ttl(self.ttl.get());
        match request.detached().await {
            Err(error) if !error.is_timeout() => Err(error),
            _ => Ok(()),
        }
    }

    fn record(&self) -> leasehold::Result<NamedMutex> {
        self.store.manager(self.namespace.clone(), self.info.clone()).mutex(self.name.clone())
    }
}
