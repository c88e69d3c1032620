//! What a client's thread sees when it looks at the store: who of its own was granted or rejected,
//! when the locks they wait for may expire, and who is in their way.

use leasehold_core::ClientId;
use rusqlite::params;

use super::{Step, bury::HOLDERS_MAX};
use crate::{
    error::Stop,
    tx::{Tx, client, id, sql},
    waits::WaitKey,
};

/// How many notices are read at once.
const NOTICES_MAX: i64 = 1024;

/// One look, without the guard: it reads a snapshot and changes nothing.
#[derive(Debug)]
pub(crate) struct Look {
    /// The last notice seen before.
    pub(crate) notice: i64,
    /// The locks to look at, and the holder after which to go on.
    pub(crate) locks: Vec<(i64, String)>,
    /// Look at the registered clients after this one, instead of at the holders of each lock.
    pub(crate) clients_after: Option<(i64, i64)>,
}

/// What was seen.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Waiters and watchers of this client to be woken.
    pub(crate) news: Vec<WaitKey>,
    /// The last notice seen.
    pub(crate) notice: i64,
    /// There are more notices than were read.
    pub(crate) more: bool,
    /// Each lock that is there.
    pub(crate) locks: Vec<SeenLock>,
    /// Other clients that may be in the way.
    pub(crate) others: Vec<ClientId>,
    /// The last of the registered clients that were read; `None`: all of them were.
    pub(crate) last_client: Option<i64>,
}

/// What was seen of one lock.
#[derive(Debug)]
pub(crate) struct SeenLock {
    pub(crate) id: i64,
    pub(crate) next_expiry: Option<i64>,
    /// The client of the head waiter is this one, or there is no waiter, only watchers.
    pub(crate) is_ours_to_time: bool,
    /// The holder after which the next look goes on.
    pub(crate) after: String,
}

impl Step for Look {
    type Answer = Seen;
    const READS: bool = true;

    fn run(&self, tx: &mut Tx<'_>) -> Result<Seen, Stop> {
        let me = id(tx.me);
        let mut seen = Seen { notice: self.notice, ..Seen::default() };
        let key = |row: &rusqlite::Row<'_>, at: usize| -> rusqlite::Result<(String, String)> {
            Ok((row.get(at)?, row.get(at + 1)?))
        };
        for (lock, token) in tx.all(sql!("claims_of_client"), [me], |row| key(row, 0))? {
            seen.news.push(WaitKey::waiter(&lock, &token));
        }
        let notices =
            tx.all(sql!("notices_after"), params![me, self.notice, NOTICES_MAX], |row| {
                Ok((row.get::<_, i64>(0)?, key(row, 1)?))
            })?;
        seen.more = notices.len() as i64 == NOTICES_MAX;
        for (notice, (lock, token)) in notices {
            seen.notice = notice;
            seen.news.push(WaitKey::waiter(&lock, &token));
        }
        for (lock, token) in tx.all(sql!("watchers_done"), [me], |row| key(row, 0))? {
            seen.news.push(WaitKey::watcher(&lock, &token));
        }
        for (lock, after) in &self.locks {
            self.look_at(tx, *lock, after, &mut seen)?;
        }
        if let Some((after, limit)) = self.clients_after {
            let clients = tx.all(sql!("clients_after"), [after, limit], |row| row.get(0))?;
            seen.last_client =
                if clients.len() as i64 == limit { clients.last().copied() } else { None };
            seen.others.extend(clients.into_iter().filter(|other| *other != me).map(client));
        }
        seen.others.sort_unstable();
        seen.others.dedup();
        Ok(seen)
    }
}

impl Look {
    fn look_at(&self, tx: &Tx<'_>, lock: i64, after: &str, seen: &mut Seen) -> Result<(), Stop> {
        let glance = tx.one(sql!("lock_glance"), [lock], |row| {
            Ok((row.get::<_, Option<i64>>(0)?, row.get::<_, Option<i64>>(1)?))
        })?;
        let Some((next_expiry, head)) = glance else { return Ok(()) };
        let mut next_after = String::new();
        if self.clients_after.is_none() {
            let holders =
                tx.all(sql!("grant_clients"), params![lock, after, HOLDERS_MAX], |row| {
                    Ok((row.get::<_, String>(0)?, row.get::<_, Option<i64>>(1)?))
                })?;
            let full = holders.len() as i64 == HOLDERS_MAX;
            for (token, holder) in holders {
                seen.others.extend(holder.filter(|holder| !tx.is_me(*holder)).map(client));
                if full {
                    next_after = token;
                }
            }
            seen.others.extend(head.filter(|head| !tx.is_me(*head)).map(client));
        }
        seen.locks.push(SeenLock {
            id: lock,
            next_expiry,
            is_ours_to_time: head.is_none_or(|head| tx.is_me(head)),
            after: next_after,
        });
        Ok(())
    }
}

/// Drops what is overdue at a lock and passes it on, for want of anybody else who does (rule T3).
#[derive(Debug)]
pub(crate) struct TickStep {
    /// The lock's row.
    pub(crate) lock: i64,
}

impl Step for TickStep {
    /// When it is to be ticked next.
    type Answer = Option<i64>;

    fn run(&self, tx: &mut Tx<'_>) -> Result<Option<i64>, Stop> {
        let Some(mut lock) = tx.lock_by_id(self.lock)? else { return Ok(None) };
        tx.finish(&mut lock)?;
        Ok(lock.next_expiry)
    }
}
