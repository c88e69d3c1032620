//! The end of a client, in good order or by death: what is bound to it ends in one transaction.

use std::collections::BTreeMap;

use leasehold_core::ClientId;
use rusqlite::params;

use super::Step;
use crate::{
    error::Stop,
    rows::LockRow,
    tx::{Mode, Tx, client, id, sql},
};

/// How many holders of a lock are looked at in one step. The next looks go on after them.
pub(crate) const HOLDERS_MAX: i64 = 64;
/// How many entries a dead client may have for a caller's thread to clean up after it.
const INLINE_MAX: usize = 64;

/// Ends a client: its waiters leave, its client-bound grants end, its rows go, heads are granted.
#[derive(Debug)]
pub(crate) struct Bury(pub(crate) ClientId);

/// What a lock loses with a client.
#[derive(Debug, Default)]
struct Loss {
    weights: Vec<u32>,
    waiters: u64,
    watchers: u64,
}

impl Step for Bury {
    /// Whether the client was registered.
    type Answer = bool;

    fn run(&self, tx: &mut Tx<'_>) -> Result<bool, Stop> {
        let dead = id(self.0);
        let registered = tx.one(sql!("client_exists"), [dead], |_| Ok(()))?.is_some();
        // Also of one that is not registered: what it left would stay for ever.
        let losses = take_losses(tx, dead)?;
        if !registered && losses.is_empty() {
            return Ok(false);
        }
        let entries = losses.values().map(|loss| loss.weights.len()).sum::<usize>() + losses.len();
        if tx.mode == Mode::Inline && entries > INLINE_MAX {
            return Err(Stop::Heavy);
        }
        tx.execute(sql!("notices_of_client_delete"), [dead])?;
        tx.execute(sql!("client_delete"), [dead])?;
        if self.0 != tx.me {
            tx.effects.buried(self.0);
        }
        for (lock, loss) in losses {
            let row = tx.one(sql!("lock_by_id"), [lock], LockRow::read)?;
            let Some(mut row) = row else { continue };
            for weight in loss.weights {
                row.give_back(weight)?;
            }
            for _ in 0..loss.waiters {
                row.leave_queue()?;
            }
            row.head_changed |= loss.waiters > 0;
            row.leave_watchers(loss.watchers)?;
            // Only now: the overdue are counted without what is gone already.
            tx.tick(&mut row)?;
            tx.finish(&mut row)?;
        }
        Ok(true)
    }
}

fn take_losses(tx: &Tx<'_>, dead: i64) -> Result<BTreeMap<i64, Loss>, Stop> {
    let mut losses = BTreeMap::<i64, Loss>::new();
    let grants = tx.all(sql!("grants_of_client_delete"), [dead], |row| {
        Ok((row.get::<_, i64>(0)?, row.get(1)?))
    })?;
    for (lock, weight) in grants {
        losses.entry(lock).or_default().weights.push(weight);
    }
    let waiters = tx.all(sql!("waiters_of_client_delete"), [dead], |row| row.get::<_, i64>(0))?;
    for lock in waiters {
        losses.entry(lock).or_default().waiters += 1;
    }
    let watchers = tx.all(sql!("watchers_of_client_delete"), [dead], |row| {
        Ok((row.get::<_, Option<i64>>(0)?, row.get::<_, bool>(1)?))
    })?;
    for (lock, done) in watchers {
        if let (Some(lock), false) = (lock, done) {
            losses.entry(lock).or_default().watchers += 1;
        }
    }
    Ok(losses)
}

impl Tx<'_> {
    /// Buries the dead among those who stand in the way at a lock, and reads the lock again.
    /// `false`: all of them live.
    pub(super) fn bury_dead_in_the_way(&mut self, lock: &mut LockRow) -> Result<bool, Stop> {
        if lock.id == 0 || self.mode == Mode::Glance {
            return Ok(false);
        }
        let dead = self.dead_in_the_way(lock.id)?;
        if dead.is_empty() {
            return Ok(false);
        }
        if self.mode == Mode::Read {
            return Err(Stop::NeedsWrite);
        }
        if lock.dirty {
            self.store(lock)?;
        }
        for client in dead {
            Bury(client).run(self)?;
        }
        if let Some(again) = self.lock_by_id(lock.id)? {
            *lock = again;
        }
        Ok(true)
    }

    /// The dead among the first holders and at the head of a lock.
    fn dead_in_the_way(&self, lock: i64) -> Result<Vec<ClientId>, Stop> {
        let mut others: Vec<i64> = self
            .all(sql!("grant_clients"), params![lock, "", HOLDERS_MAX], |row| {
                row.get::<_, Option<i64>>(1)
            })?
            .into_iter()
            .flatten()
            .collect();
        let head =
            self.one(sql!("lock_glance"), [lock], |row| row.get::<_, Option<i64>>(1))?.flatten();
        others.extend(head);
        others.sort_unstable();
        others.dedup();
        Ok(others
            .into_iter()
            .filter(|other| !self.is_me(*other))
            .map(client)
            .filter(|other| self.members.is_dead(*other))
            .collect())
    }
}
