//! Gives a grant back or takes a waiter out, and says which (rules Q4, T6).

use std::sync::Arc;

use leasehold_core::{LockId, Released, Token};
use rusqlite::params;

use super::{Step, Sweep};
use crate::{
    error::Stop,
    rows::LockRow,
    settle::notice,
    tx::{Tx, id, sql},
    waits::WaitKey,
};

/// One release, also of a drop.
#[derive(Clone, Debug)]
pub(crate) struct ReleaseStep {
    lock: Arc<LockId>,
    token: Token,
}

impl ReleaseStep {
    pub(crate) fn new(lock: &Arc<LockId>, token: &Token) -> Self {
        Self { lock: Arc::clone(lock), token: token.clone() }
    }
}

impl Step for ReleaseStep {
    type Answer = Released;
    const MUST: bool = true;

    fn run(&self, tx: &mut Tx<'_>) -> Result<Released, Stop> {
        let token = self.token.to_string();
        let Some(mut lock) = tx.lock(&self.lock)? else {
            tx.forget_waiter(self.lock.key(), &token)?;
            return Ok(Released::Unknown);
        };
        let released = if end_grant(tx, &mut lock, &token)? {
            Released::Holder
        } else if let Some(seq) = leave_queue(tx, &mut lock, &token)? {
            let ahead = tx.ahead_of(&lock, seq)?;
            Released::Waiter(Some(tx.obstacle(&lock, ahead)?))
        } else {
            tx.forget_waiter(self.lock.key(), &token)?;
            Released::Unknown
        };
        tx.finish(&mut lock)?;
        if !lock.is_in_use() {
            Sweep::now_and_then(tx)?;
        }
        Ok(released)
    }
}

/// Ends the grant with this token, if there is one.
fn end_grant(tx: &mut Tx<'_>, lock: &mut LockRow, token: &str) -> Result<bool, Stop> {
    if lock.used == 0 {
        return Ok(false);
    }
    let ended = tx.change(sql!("grant_delete"), params![lock.id, token], |row| {
        Ok((row.get(0)?, row.get::<_, Option<i64>>(1)?, row.get(2)?))
    })?;
    let Some((weight, owner, claimed)) = ended else { return Ok(false) };
    lock.give_back(weight)?;
    if let (Some(owner), true) = (owner, claimed) {
        tell_waiter(tx, lock, token, owner)?;
    }
    Ok(true)
}

/// Takes the waiter with this token out of the queue, if there is one.
fn leave_queue(tx: &mut Tx<'_>, lock: &mut LockRow, token: &str) -> Result<Option<i64>, Stop> {
    if lock.queued == 0 {
        return Ok(None);
    }
    let left = tx.change(sql!("waiter_delete"), params![lock.id, token], |row| {
        Ok((row.get::<_, i64>(0)?, row.get(1)?))
    })?;
    let Some((seq, owner)) = left else { return Ok(None) };
    lock.leave_queue()?;
    lock.head_changed = true;
    tell_waiter(tx, lock, token, owner)?;
    Ok(Some(seq))
}

/// Somebody may still wait on what was released: here, or in another process.
fn tell_waiter(tx: &mut Tx<'_>, lock: &LockRow, token: &str, owner: i64) -> Result<(), Stop> {
    if owner == id(tx.me) {
        tx.effects.over(WaitKey::waiter(&lock.key, token));
        Ok(())
    } else {
        tx.leave_notice(owner, &lock.key, token, notice::LOOK, "")
    }
}

impl Tx<'_> {
    /// Nothing of the token is left; a rejection that nobody asks for any more goes too.
    fn forget_waiter(&mut self, lock: &str, token: &str) -> Result<(), Stop> {
        self.effects.over(WaitKey::waiter(lock, token));
        self.all(sql!("notice_take"), params![id(self.me), lock, token], |_| Ok(()))?;
        Ok(())
    }
}
