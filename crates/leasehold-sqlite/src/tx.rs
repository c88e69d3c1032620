//! One transaction: the database, the time, and what is to be done once it is committed.

use std::{sync::Arc, time::Duration};

use leasehold_core::{Capacity, ClientId, FencingToken, Generation, Grant, LocalTime, LockId, Ttl};
use rusqlite::{Connection, OptionalExtension, Params, Row, params};

use crate::{
    effects::Effects,
    error::Stop,
    fence::Fence,
    members::Members,
    rows::{GrantRow, LockRow, Party, count, damaged, ttl_us},
    waits::{WaitKey, Waits},
};

/// The text of a statement in `src/sql`.
macro_rules! sql {
    ($name:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/sql/", $name, ".sql"))
    };
}
pub(crate) use sql;

/// Who runs a step, and what it may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Reads a snapshot, without the guard.
    Read,
    /// Reads a snapshot, and what is to be cleaned up is passed over: for a report that cannot have
    /// the guard.
    Glance,
    /// Writes under the guard, in a caller's thread: microseconds only.
    Inline,
    /// Writes under the guard, in the client's thread.
    Thread,
}

impl Mode {
    /// Whether it must change nothing.
    pub(crate) const fn only_reads(self) -> bool {
        matches!(self, Self::Read | Self::Glance)
    }
}

/// What a step works with.
#[derive(Debug)]
pub(crate) struct Tx<'a> {
    pub(crate) conn: &'a Connection,
    pub(crate) fence: &'a mut Fence,
    pub(crate) members: &'a Members,
    pub(crate) waits: &'a Waits,
    pub(crate) me: ClientId,
    pub(crate) mode: Mode,
    /// The store's time: microseconds of the boot-time clock (rule L1).
    pub(crate) now: i64,
    /// The monotonic clock, for beats.
    pub(crate) monotonic: i64,
    /// When this client's beat was last written.
    pub(crate) last_beat: i64,
    /// How many locks have become idle through this client, for the sweep.
    pub(crate) sweeps: &'a mut u32,
    pub(crate) effects: Effects,
}

impl Tx<'_> {
    /// Runs a statement that answers nothing.
    pub(crate) fn execute(&self, sql: &str, params: impl Params) -> Result<usize, Stop> {
        Ok(self.conn.prepare_cached(sql)?.execute(params)?)
    }

    /// The first row of an answer.
    pub(crate) fn one<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, Stop> {
        Ok(self.conn.prepare_cached(sql)?.query_row(params, read).optional()?)
    }

    /// All rows of an answer.
    pub(crate) fn all<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, Stop> {
        let mut statement = self.conn.prepare_cached(sql)?;
        let rows = statement.query_map(params, read)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// A statement must not run twice for one answer when it changes something, so `one` is not
    /// for those: SQLite makes all changes before the first row, but ends only with the last.
    pub(crate) fn change<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, Stop> {
        Ok(self.all(sql, params, read)?.pop())
    }

    /// A lock, after what is overdue has been dropped and passed on (rule L1). `None`: the store
    /// has nothing of it.
    pub(crate) fn lock(&mut self, lock: &LockId) -> Result<Option<LockRow>, Stop> {
        let row = self.one(sql!("lock_by_key"), [lock.key()], LockRow::read)?;
        self.ticked(row)
    }

    /// The same by its row.
    pub(crate) fn lock_by_id(&mut self, id: i64) -> Result<Option<LockRow>, Stop> {
        let row = self.one(sql!("lock_by_id"), [id], LockRow::read)?;
        self.ticked(row)
    }

    fn ticked(&mut self, row: Option<LockRow>) -> Result<Option<LockRow>, Stop> {
        match row {
            Some(mut lock) => {
                self.tick(&mut lock)?;
                Ok(Some(lock))
            }
            None => Ok(None),
        }
    }

    /// A lock that the store has nothing of: it goes on above every fencing token of a forgotten
    /// one (rule L8).
    pub(crate) fn new_lock(
        &self,
        name: &Arc<LockId>,
        generation: Option<Generation>,
    ) -> Result<LockRow, Stop> {
        let floor = self.one(sql!("floor_read"), [], |row| count(row, 0))?.unwrap_or(0);
        Ok(LockRow::new(name, floor, generation))
    }

    /// Writes a lock back.
    pub(crate) fn store(&self, lock: &mut LockRow) -> Result<(), Stop> {
        debug_assert!(!self.mode.only_reads(), "a read must not write");
        let (queued, watchers) = (lock.queued.cast_signed(), lock.watchers.cast_signed());
        let (fence, generation) = (lock.fence.cast_signed(), lock.generation.cast_signed());
        if let Some(name) = lock.name.take() {
            self.execute(
                sql!("lock_insert"),
                params![
                    lock.key,
                    name.namespace().as_str(),
                    name.kind().as_str(),
                    name.name().as_str(),
                    lock.capacity,
                    lock.used,
                    queued,
                    watchers,
                    lock.seq,
                    fence,
                    generation,
                    lock.next_expiry,
                    self.now
                ],
            )?;
            lock.id = self.conn.last_insert_rowid();
        } else {
            self.execute(
                sql!("lock_update"),
                params![
                    lock.id,
                    lock.capacity,
                    lock.used,
                    queued,
                    watchers,
                    lock.seq,
                    fence,
                    generation,
                    lock.next_expiry,
                    self.now
                ],
            )?;
        }
        lock.dirty = false;
        Ok(())
    }

    /// The grant with this token. What is overdue was dropped when the lock was read.
    pub(crate) fn grant_of(&self, lock: &LockRow, token: &str) -> Result<Option<GrantRow>, Stop> {
        if lock.used == 0 {
            return Ok(None);
        }
        self.one(sql!("grant_by_token"), params![lock.id, token], GrantRow::read)
    }

    /// Makes a grant; its weight is in `used` already. A claim lives shortly (rule L10).
    pub(crate) fn insert_grant(
        &mut self,
        lock: &mut LockRow,
        party: &Party<'_>,
        claimed: bool,
    ) -> Result<Grant, Stop> {
        debug_assert!(party.weight <= lock.used, "the weight is taken first");
        let ceiling = self.fence.ceiling();
        lock.fence = self.fence.next(lock.fence, self.mode == Mode::Thread)?;
        if self.fence.ceiling() != ceiling {
            // Once per block: a good time for what is to be done now and then.
            self.members.keep_fresh();
        }
        let ttl = party.ttl_ms.map(ttl_us);
        let lifetime = if claimed { Some(ttl.unwrap_or(CLAIM_US).min(CLAIM_US)) } else { ttl };
        let expires = lifetime.map(|lifetime| self.now + lifetime);
        lock.note_expiry(party.weight, expires);
        if lock.id == 0 {
            self.store(lock)?;
        }
        // A grant that is bound to its token is nobody's, once it is confirmed.
        let client = (claimed || !party.by_token).then_some(party.client);
        self.execute(
            sql!("grant_insert"),
            params![
                lock.id,
                party.token,
                party.attempt,
                client,
                party.by_token,
                claimed,
                party.weight,
                party.whole,
                lock.is_shared(),
                lock.fence.cast_signed(),
                party.ttl_ms,
                self.now,
                expires,
                party.host,
                party.pid,
                party.label
            ],
        )?;
        self.as_grant(lock, lock.fence, expires, party.ttl_ms)
    }

    /// A grant as the contract shows it.
    pub(crate) fn as_grant(
        &self,
        lock: &LockRow,
        fence: u64,
        expires: Option<i64>,
        ttl_ms: Option<u32>,
    ) -> Result<Grant, Stop> {
        let capacity = Capacity::new(lock.capacity).map_err(|error| damaged(&error))?;
        Ok(Grant {
            fencing: FencingToken(fence),
            remaining: expires.map(|at| self.until(at)),
            ttl: ttl_ms.and_then(|ms| Ttl::new(Duration::from_millis(ms.into())).ok()),
            // The store's clock is the machine's.
            at: u64::try_from(self.now).ok().map(LocalTime),
            generation: Generation(lock.generation),
            capacity,
        })
    }

    /// How long until a time of the store.
    pub(crate) fn until(&self, at: i64) -> Duration {
        Duration::from_micros(u64::try_from(at - self.now).unwrap_or(0))
    }

    /// How long since a time of the store.
    pub(crate) fn since(&self, at: i64) -> Duration {
        Duration::from_micros(u64::try_from(self.now - at).unwrap_or(0))
    }

    /// Wakes a waiter: at once when it is this client's, else by telling its client to look.
    pub(crate) fn wake(&mut self, client: ClientId, key: WaitKey) {
        if client == self.me {
            self.effects.wake_own(key);
        } else {
            self.effects.poke(client);
        }
    }

    /// Shows that this client's waiters are alive (rule L4); a second is often enough.
    pub(crate) fn beat(&mut self) -> Result<(), Stop> {
        if self.monotonic - self.last_beat >= BEAT_US {
            self.make_up_for_a_standstill()?;
            self.execute(sql!("client_beat"), [id(self.me), self.monotonic])?;
            self.effects.beat = Some(self.monotonic);
        }
        Ok(())
    }

    /// A process that was stopped inside the guard has kept everybody from beating. Whoever beats
    /// first makes up for it, so that no waiter loses its place for that (rules Q2, L4).
    pub(crate) fn make_up_for_a_standstill(&self) -> Result<(), Stop> {
        if self.monotonic - self.last_beat < STANDSTILL_US {
            return Ok(());
        }
        let silence = self.monotonic - self.newest_beat()?;
        if silence >= STANDSTILL_US {
            self.execute(sql!("beats_shift"), [silence])?;
        }
        Ok(())
    }

    /// When anybody was heard of last. It looks at every client: for when something is amiss.
    pub(crate) fn newest_beat(&self) -> Result<i64, Stop> {
        let newest = self.one(sql!("beat_newest"), [], |row| row.get::<_, Option<i64>>(0))?;
        Ok(newest.flatten().unwrap_or(self.monotonic))
    }
}

/// A client's id as the store has it.
pub(crate) const fn id(client: ClientId) -> i64 {
    client.0.cast_signed()
}

/// A client's id from the store.
pub(crate) const fn client(id: i64) -> ClientId {
    ClientId(id.cast_unsigned())
}

/// A duration of the defaults table in microseconds.
#[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "minutes at most")]
pub(crate) const fn us(duration: Duration) -> i64 {
    duration.as_micros() as i64
}

const CLAIM_US: i64 = us(leasehold_core::defaults::CLAIM);
const BEAT_US: i64 = us(leasehold_core::defaults::SQLITE_HEARTBEAT);
/// How long nobody has beaten when that is no coincidence.
const STANDSTILL_US: i64 = us(leasehold_core::defaults::LIVENESS_LIMIT) / 2;
