//! Rejects every waiter that is queued now (rule W5).

use std::sync::Arc;

use leasehold_core::LockId;
use rusqlite::params;

use super::Step;
use crate::{
    error::Stop,
    rows::LockRow,
    settle::notice,
    tx::{Mode, Tx, client, sql},
    waits::WaitKey,
};

/// How many waiters are rejected in a caller's thread.
const INLINE_MAX: u64 = 64;

/// One `cancel_all`.
#[derive(Debug)]
pub(crate) struct CancelStep {
    pub(crate) lock: Arc<LockId>,
    pub(crate) reason: String,
}

impl Step for CancelStep {
    type Answer = u64;

    fn run(&self, tx: &mut Tx<'_>) -> Result<u64, Stop> {
        let Some(mut lock) = tx.lock(&self.lock)? else { return Ok(0) };
        let rejected = tx.reject_all(&mut lock, notice::CANCELLED, &self.reason)?;
        tx.finish(&mut lock)?;
        Ok(rejected)
    }
}

impl Tx<'_> {
    /// Puts every waiter out of the queue, in queue order, with word of why.
    pub(super) fn reject_all(
        &mut self,
        lock: &mut LockRow,
        kind: i64,
        reason: &str,
    ) -> Result<u64, Stop> {
        if lock.queued == 0 {
            return Ok(0);
        }
        if self.mode == Mode::Inline && lock.queued > INLINE_MAX {
            return Err(Stop::Heavy);
        }
        self.execute(sql!("waiters_reject"), params![lock.id, lock.key, kind, reason])?;
        let gone = self.all(sql!("waiters_delete"), [lock.id], |row| {
            Ok((row.get::<_, String>(0)?, row.get(1)?))
        })?;
        for (token, owner) in &gone {
            self.wake(client(*owner), WaitKey::waiter(&lock.key, token));
        }
        lock.queued = 0;
        lock.dirty = true;
        Ok(gone.len() as u64)
    }
}
