//! Waiting for a condition without acquiring (rules U).

use std::sync::Arc;

use leasehold_core::{Generation, LockId, Token, WatchFor, Watched};
use rusqlite::params;

use super::Step;
use crate::{
    error::Stop,
    rows::LockRow,
    settle::{true_now, watch},
    tx::{Tx, id, sql},
    waits::WaitKey,
};

/// Registers a watcher, or asks what became of it.
#[derive(Debug)]
pub(crate) struct WatchStep {
    pub(crate) lock: Arc<LockId>,
    pub(crate) generation: Option<Generation>,
    pub(crate) id: Token,
    pub(crate) what: WatchFor,
}

impl Step for WatchStep {
    type Answer = Watched;

    fn run(&self, tx: &mut Tx<'_>) -> Result<Watched, Stop> {
        let token = self.id.to_string();
        let key = WaitKey::watcher(self.lock.key(), &token);
        let mut lock = match tx.lock(&self.lock)? {
            Some(lock) => lock,
            None => tx.new_lock(&self.lock, self.generation)?,
        };
        // What the tick freed may have completed this very watcher.
        tx.finish(&mut lock)?;
        let known = tx.one(sql!("watcher_by_id"), params![lock.key, token], |row| row.get(0))?;
        if known == Some(true) {
            tx.change(sql!("watcher_delete"), params![lock.key, token], |_| Ok(()))?;
            tx.effects.over(key);
            return Ok(Watched::Done);
        }
        if known.is_none() {
            if self.generation.is_some_and(|generation| generation.0 < lock.generation) {
                return Ok(Watched::Destroyed);
            }
            if self.is_true(tx, &mut lock)? {
                return Ok(Watched::Done);
            }
            if !lock.is_in_use() {
                // The capacity of a use that is over shall not come back with a watcher.
                lock.capacity = 0;
            }
            lock.watchers += 1;
            lock.dirty = true;
            tx.store(&mut lock)?;
            let what = self.code();
            tx.execute(sql!("watcher_insert"), params![lock.key, token, id(tx.me), what])?;
        }
        // A destroy is told; nothing has to be timed or probed for it.
        let lives_to_see = (self.code() < watch::DESTROYED).then_some(lock.id);
        let due = lock.next_expiry.filter(|_| lives_to_see.is_some());
        let (wake, is_new) = tx.waits.enter(&key, lives_to_see, 0, due);
        if is_new {
            tx.effects.entered(key, due);
        }
        Ok(Watched::Waiting(wake))
    }
}

impl WatchStep {
    fn is_true(&self, tx: &mut Tx<'_>, lock: &mut LockRow) -> Result<bool, Stop> {
        let code = self.code();
        if true_now(lock).is_some_and(|now| code <= now) {
            return Ok(true);
        }
        // The dead hold nothing (rule N7).
        let changed = code < watch::DESTROYED && tx.bury_dead_in_the_way(lock)?;
        Ok(changed && true_now(lock).is_some_and(|now| code <= now))
    }

    const fn code(&self) -> i64 {
        match self.what {
            WatchFor::AnyPermit => watch::ANY_PERMIT,
            WatchFor::Readable => watch::READABLE,
            WatchFor::Unlocked => watch::UNLOCKED,
            WatchFor::Destroyed => watch::DESTROYED,
        }
    }
}

/// Forgets a watcher.
#[derive(Debug)]
pub(crate) struct UnwatchStep {
    pub(crate) lock: Arc<LockId>,
    pub(crate) id: Token,
}

impl Step for UnwatchStep {
    type Answer = ();
    const MUST: bool = true;

    fn run(&self, tx: &mut Tx<'_>) -> Result<(), Stop> {
        let token = self.id.to_string();
        tx.effects.over(WaitKey::watcher(self.lock.key(), &token));
        let done =
            tx.change(sql!("watcher_delete"), params![self.lock.key(), token], |row| row.get(0))?;
        if done == Some(false)
            && let Some(mut lock) = tx.lock(&self.lock)?
        {
            lock.leave_watchers(1)?;
            tx.finish(&mut lock)?;
        }
        Ok(())
    }
}
