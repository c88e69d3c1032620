//! Ends a generation of a lock (rule N5).

use std::sync::Arc;

use leasehold_core::{Destroyed, Generation, LockId};

use super::Step;
use crate::{
    error::Stop,
    settle::{notice, watch},
    tx::{Mode, Tx, sql},
};

/// How many grants are ended in a caller's thread.
const INLINE_MAX: u32 = 64;

/// One destroy.
#[derive(Debug)]
pub(crate) struct DestroyStep {
    pub(crate) lock: Arc<LockId>,
    pub(crate) generation: Option<Generation>,
    pub(crate) reason: String,
}

impl Step for DestroyStep {
    type Answer = Destroyed;

    fn run(&self, tx: &mut Tx<'_>) -> Result<Destroyed, Stop> {
        let mut lock = match tx.lock(&self.lock)? {
            Some(lock) => lock,
            // Never used, or forgotten: its end is remembered for the handles there may be.
            None => tx.new_lock(&self.lock, self.generation)?,
        };
        if self.generation.is_some_and(|generation| generation.0 < lock.generation) {
            tx.finish(&mut lock)?;
            return Ok(Destroyed::Before);
        }
        if tx.mode == Mode::Inline && lock.used > INLINE_MAX && lock.capacity > 1 {
            return Err(Stop::Heavy);
        }
        tx.reject_all(&mut lock, notice::DESTROYED, &self.reason)?;
        if lock.used > 0 {
            let ended = tx.all(sql!("grants_delete"), [lock.id], |row| {
                Ok((row.get::<_, String>(0)?, row.get::<_, Option<i64>>(1)?, row.get(2)?))
            })?;
            for (token, owner, claimed) in ended {
                if let (Some(owner), true) = (owner, claimed) {
                    // It waits for its confirmation still, so it is told as a waiter.
                    let reason = &self.reason;
                    tx.leave_notice(owner, &lock.key, &token, notice::DESTROYED, reason)?;
                }
            }
        }
        lock.used = 0;
        lock.capacity = 0;
        lock.next_expiry = None;
        lock.generation = self.generation.map_or(lock.generation, |ended| ended.0) + 1;
        lock.dirty = true;
        if lock.watchers > 0 {
            tx.finish_watchers(&mut lock, watch::DESTROYED)?;
        }
        tx.finish(&mut lock)?;
        Ok(Destroyed::Now { next: Generation(lock.generation) })
    }
}
