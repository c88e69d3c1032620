//! How long a grant lives, and with whom: renew, extend, remaining, rebind (rules L2, T4, T8).

use std::sync::Arc;

use leasehold_core::{
    Binding, Extended, Fault, FaultKind, Grant, LockId, Remaining, Renewal, Renewed, Token, Ttl,
};
use rusqlite::params;

use super::Step;
use crate::{
    error::Stop,
    settle::notice,
    tx::{Tx, id, sql},
};

/// Renewals in one transaction: expiry = max(expiry, now + TTL).
#[derive(Debug)]
pub(crate) struct RenewStep(pub(crate) Vec<Renewal>);

/// How many leases are renewed in a caller's thread.
const INLINE_MAX: usize = 16;

impl Step for RenewStep {
    type Answer = Vec<Renewed>;

    fn run(&self, tx: &mut Tx<'_>) -> Result<Vec<Renewed>, Stop> {
        if self.0.len() > INLINE_MAX && tx.mode == crate::tx::Mode::Inline {
            return Err(Stop::Heavy);
        }
        self.0.iter().map(|lease| renew(tx, lease)).collect()
    }
}

fn renew(tx: &mut Tx<'_>, lease: &Renewal) -> Result<Renewed, Stop> {
    let Some(mut lock) = tx.lock(&lease.lock)? else { return Ok(Renewed::Unknown) };
    let token = lease.token.to_string();
    let renewed = match tx.grant_of(&lock, &token)? {
        None => Renewed::Unknown,
        Some(grant) => {
            // L2: it never undoes an extension, which may have been longer, or without an end.
            let expires = match (grant.expires, grant.full_ttl(tx.now)) {
                (Some(expires), Some(full)) => Some(expires.max(full)),
                (expires, _) => expires,
            };
            if expires != grant.expires {
                tx.execute(
                    sql!("grant_update"),
                    params![
                        lock.id,
                        token,
                        grant.client,
                        grant.by_token,
                        grant.claimed,
                        grant.ttl_ms,
                        expires
                    ],
                )?;
                lock.note_expiry(grant.weight, expires);
            }
            Renewed::Held { remaining: expires.map(|at| tx.until(at)) }
        }
    };
    tx.finish(&mut lock)?;
    Ok(renewed)
}

/// An extension: expiry = now + TTL, or none.
#[derive(Debug)]
pub(crate) struct ExtendStep {
    pub(crate) lock: Arc<LockId>,
    pub(crate) token: Token,
    pub(crate) ttl: Option<Ttl>,
}

impl Step for ExtendStep {
    type Answer = Extended;

    fn run(&self, tx: &mut Tx<'_>) -> Result<Extended, Stop> {
        let Some(mut lock) = tx.lock(&self.lock)? else { return Ok(Extended::Gone) };
        let token = self.token.to_string();
        let extended = match tx.grant_of(&lock, &token)? {
            None => Extended::Gone,
            Some(grant) if grant.by_token && self.ttl.is_none() => Extended::NeedsTtl,
            Some(mut grant) => {
                grant.ttl_ms = self.ttl.map(Ttl::as_millis);
                let expires = grant.full_ttl(tx.now);
                // A claim stays one: its waiter still has to be found and told.
                tx.execute(
                    sql!("grant_update"),
                    params![
                        lock.id,
                        token,
                        grant.client,
                        grant.by_token,
                        grant.claimed,
                        grant.ttl_ms,
                        expires
                    ],
                )?;
                lock.note_expiry(grant.weight, expires);
                Extended::Held
            }
        };
        tx.finish(&mut lock)?;
        Ok(extended)
    }
}

/// What is left of a grant.
#[derive(Debug)]
pub(crate) struct RemainingStep {
    pub(crate) lock: Arc<LockId>,
    pub(crate) token: Token,
}

impl Step for RemainingStep {
    type Answer = Remaining;
    const READS: bool = true;

    fn run(&self, tx: &mut Tx<'_>) -> Result<Remaining, Stop> {
        let expires =
            tx.one(sql!("grant_left"), params![self.lock.key(), self.token.to_string()], |row| {
                row.get::<_, Option<i64>>(0)
            })?;
        Ok(match expires {
            None => Remaining::Gone,
            Some(None) => Remaining::Never,
            // T3: the clock decides, not whether anybody has cleaned up.
            Some(Some(at)) if at <= tx.now => Remaining::Gone,
            Some(Some(at)) => Remaining::Left(tx.until(at)),
        })
    }
}

/// A change of what a grant is bound to (rule T8).
#[derive(Debug)]
pub(crate) struct RebindStep {
    pub(crate) lock: Arc<LockId>,
    pub(crate) token: Token,
    pub(crate) binding: Binding,
    pub(crate) ttl: Option<Ttl>,
}

impl Step for RebindStep {
    type Answer = Option<Grant>;

    fn run(&self, tx: &mut Tx<'_>) -> Result<Option<Grant>, Stop> {
        let Some(mut lock) = tx.lock(&self.lock)? else { return Ok(None) };
        let token = self.token.to_string();
        let Some(mut grant) = tx.grant_of(&lock, &token)? else {
            tx.finish(&mut lock)?;
            return Ok(None);
        };
        if let Some(ttl) = self.ttl {
            grant.ttl_ms = Some(ttl.as_millis());
        }
        let by_token = self.binding == Binding::Token;
        if by_token && grant.ttl_ms.is_none() {
            return Err(Stop::Fault(needs_ttl()));
        }
        if let (true, Some(owner)) = (grant.claimed, grant.client)
            && owner != id(tx.me)
        {
            // Its waiter is no longer found by its client, so it is told here.
            tx.leave_notice(owner, &lock.key, &token, notice::LOOK, "")?;
        }
        let expires = if self.ttl.is_some() { grant.full_ttl(tx.now) } else { grant.expires };
        // A claim stays one, and somebody's, until it is confirmed.
        let owner = (!by_token || grant.claimed).then(|| id(tx.me));
        tx.execute(
            sql!("grant_update"),
            params![lock.id, token, owner, by_token, grant.claimed, grant.ttl_ms, expires],
        )?;
        lock.note_expiry(grant.weight, expires);
        tx.finish(&mut lock)?;
        Ok(Some(tx.as_grant(&lock, grant.fence, expires, grant.ttl_ms)?))
    }
}

/// A grant that only its token can end must end by itself (rule T8).
pub(super) fn needs_ttl() -> Fault {
    Fault::new(FaultKind::Unsupported, "a grant that is bound to its token needs a TTL")
}
