//! `run --at-most-once-per`: when the command has succeeded last, recorded in the store.
//!
//! A success is a grant that nobody gives back: of the mutex of the same name in a companion
//! namespace, bound to its token (rule T8), with the duration as its TTL. So the store's own clock
//! decides how long it counts (rule L1), wherever the next `run` is, and nothing needs to be cleaned
//! up. It is noted and looked at while the lock itself is held, so no two runs can both find none,
//! unless several may hold the lock at a time.

use leasehold::{HolderInfo, LockManager, LockName, NamedMutex, Namespace, Ttl};

use crate::{
    duration,
    exit::{Exit, Failure},
    store::Store,
};

/// What follows the namespace of a lock in that of its success.
const SUFFIX: &str = "!last-success";

/// The last success under a lock.
#[derive(Debug)]
pub(crate) struct Success {
    record: NamedMutex,
    ttl: Ttl,
}

impl Success {
    /// The success of the first of the names. Nothing is asked yet.
    pub(crate) fn new(
        store: &Store,
        namespace: &Namespace,
        names: &[&LockName],
        info: HolderInfo,
        ttl: Ttl,
    ) -> Result<Self, Failure> {
        let apart = Namespace::new(format!("{}{SUFFIX}", namespace.as_str()))
            .map_err(|error| Failure::new(Exit::Usage, format!("--at-most-once-per: {error}")))?;
        let records: LockManager = store.manager(apart, info);
        Ok(Self { record: records.mutex(names[0].clone())?, ttl })
    }

    /// How long ago the command has succeeded, in words; `None`: not lately.
    pub(crate) async fn lately(&self) -> Result<Option<String>, Failure> {
        let Some(state) = self.record.inspect().await? else { return Ok(None) };
        let Some(last) = state.holders.first() else { return Ok(None) };
        let name = self.record.name();
        let ago = duration::format(last.held_for);
        Ok(Some(format!("\"{name}\" has succeeded {ago} ago, by {}", last.info)))
    }

    /// Records a success as of now. One that is there already is as good.
    pub(crate) async fn note(&self) -> leasehold::Result<()> {
        let request = self.record.lock().timeout(std::time::Duration::ZERO).ttl(self.ttl.get());
        match request.detached().await {
            Err(error) if !error.is_timeout() => Err(error),
            _ => Ok(()),
        }
    }
}
