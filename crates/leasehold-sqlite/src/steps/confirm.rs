//! Tells a waiter what became of it, and turns its claim into a grant (rule L10).

use std::sync::Arc;

use leasehold_core::{Confirmed, LockId, Rejection, Token};
use rusqlite::params;

use super::Step;
use crate::{
    error::Stop,
    rows::{GrantRow, LockRow},
    settle::notice,
    tx::{Tx, id, sql},
    waits::WaitKey,
};

/// One question of a waiter.
#[derive(Debug)]
pub(crate) struct ConfirmStep {
    lock: Arc<LockId>,
    token: String,
}

impl ConfirmStep {
    pub(crate) fn new(lock: &Arc<LockId>, token: &Token) -> Self {
        Self { lock: Arc::clone(lock), token: token.to_string() }
    }
}

impl Step for ConfirmStep {
    type Answer = Confirmed;

    fn run(&self, tx: &mut Tx<'_>) -> Result<Confirmed, Stop> {
        let key = WaitKey::waiter(self.lock.key(), &self.token);
        if let Some(mut lock) = tx.lock(&self.lock)? {
            if let Some(grant) = tx.grant_of(&lock, &self.token)? {
                let expires = tx.confirm_grant(&mut lock, &self.token, &grant)?;
                tx.finish(&mut lock)?;
                tx.effects.over(key);
                return Ok(Confirmed::Granted(tx.as_grant(
                    &lock,
                    grant.fence,
                    expires,
                    grant.ttl_ms,
                )?));
            }
            let waits = lock.queued > 0
                && tx
                    .one(sql!("waiter_by_token"), params![lock.id, self.token], |_| Ok(()))?
                    .is_some();
            tx.finish(&mut lock)?;
            if waits {
                tx.waits.asked(&key);
                return Ok(Confirmed::Waiting);
            }
        }
        tx.effects.over(key);
        // Told once: the notice goes with the answer. One of the two may say "look again" only.
        let told =
            tx.all(sql!("notice_take"), params![id(tx.me), self.lock.key(), self.token], |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
            })?;
        Ok(told
            .into_iter()
            .find_map(|(kind, reason)| match kind {
                notice::CANCELLED => Some(Confirmed::Rejected(Rejection::Cancelled { reason })),
                notice::DESTROYED => Some(Confirmed::Rejected(Rejection::Destroyed { reason })),
                _ => None,
            })
            .unwrap_or(Confirmed::Unknown))
    }
}

impl Tx<'_> {
    /// Turns a claim into a grant with its full TTL, or sets a holder's expiry to
    /// max(expiry, now + TTL). Says when it expires now.
    pub(super) fn confirm_grant(
        &mut self,
        lock: &mut LockRow,
        token: &str,
        grant: &GrantRow,
    ) -> Result<Option<i64>, Stop> {
        let full = grant.full_ttl(self.now);
        let expires = match (grant.claimed, grant.expires, full) {
            (true, _, full) => full,
            (false, Some(expires), Some(full)) => Some(expires.max(full)),
            (false, expires, _) => expires,
        };
        let owner = if grant.by_token { None } else { grant.client };
        self.execute(
            sql!("grant_update"),
            params![lock.id, token, owner, grant.by_token, false, grant.ttl_ms, expires],
        )?;
        lock.note_expiry(grant.weight, expires);
        Ok(expires)
    }
}
