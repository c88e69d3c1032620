//! The rows of the store as values.

use std::sync::Arc;

use leasehold_core::{Capacity, Fault, FaultKind, Generation, LockId};
use leasehold_queue::Permits;
use rusqlite::Row;

use crate::error::Stop;

/// A lock: read, stepped and written back in one transaction.
#[derive(Debug)]
pub(crate) struct LockRow {
    /// 0: not in the store yet.
    pub(crate) id: i64,
    pub(crate) key: Box<str>,
    /// 0: none registered.
    pub(crate) capacity: u32,
    pub(crate) used: u32,
    pub(crate) queued: u64,
    pub(crate) watchers: u64,
    pub(crate) seq: i64,
    pub(crate) fence: u64,
    pub(crate) generation: u64,
    /// No grant expires earlier; it may be earlier than the earliest.
    pub(crate) next_expiry: Option<i64>,
    /// `next_expiry` as it was read.
    pub(crate) read_expiry: Option<i64>,
    /// The waiter at the head is another one than when the row was read.
    pub(crate) head_changed: bool,
    pub(crate) dirty: bool,
    /// What it is called, while it is not in the store yet.
    pub(crate) name: Option<Arc<LockId>>,
}

impl LockRow {
    /// A lock that was never used, or was forgotten.
    pub(crate) fn new(name: &Arc<LockId>, fence: u64, generation: Option<Generation>) -> Self {
        Self {
            id: 0,
            key: name.key().into(),
            capacity: 0,
            used: 0,
            queued: 0,
            watchers: 0,
            seq: 0,
            fence,
            // A handle of a later generation shows that the lock was destroyed and forgotten.
            generation: generation.map_or(0, |generation| generation.0),
            next_expiry: None,
            read_expiry: None,
            head_changed: false,
            dirty: false,
            name: Some(Arc::clone(name)),
        }
    }

    pub(crate) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let next_expiry = row.get(9)?;
        Ok(Self {
            id: row.get(0)?,
            key: row.get::<_, String>(1)?.into_boxed_str(),
            capacity: row.get(2)?,
            used: row.get(3)?,
            queued: count(row, 4)?,
            watchers: count(row, 5)?,
            seq: row.get(6)?,
            fence: count(row, 7)?,
            generation: count(row, 8)?,
            next_expiry,
            read_expiry: next_expiry,
            head_changed: false,
            dirty: false,
            name: None,
        })
    }

    /// Whether anybody holds, waits for or watches it (rule N2).
    pub(crate) const fn is_in_use(&self) -> bool {
        self.used > 0 || self.queued > 0 || self.watchers > 0
    }

    /// Whether it may have several holders.
    pub(crate) const fn is_shared(&self) -> bool {
        self.capacity > 1
    }

    /// The capacity in effect while the lock is in use.
    pub(crate) fn registered(&self) -> Option<Capacity> {
        if self.is_in_use() { Capacity::new(self.capacity).ok() } else { None }
    }

    /// What the queue's rules work on.
    pub(crate) fn permits(&self) -> Result<Permits, Stop> {
        Permits::from_parts(self.capacity, self.used).map_err(|error| damaged(&error))
    }

    /// Takes an ended grant's weight out.
    pub(crate) fn give_back(&mut self, weight: u32) -> Result<(), Stop> {
        let mut permits = self.permits()?;
        permits.release(weight).map_err(|error| damaged(&error))?;
        self.used = permits.used();
        if self.used == 0 {
            self.next_expiry = None;
        }
        self.dirty = true;
        Ok(())
    }

    /// Takes a waiter that left out of the count.
    pub(crate) fn leave_queue(&mut self) -> Result<(), Stop> {
        self.queued = self.queued.checked_sub(1).ok_or_else(|| damaged(&"a queue below zero"))?;
        self.dirty = true;
        Ok(())
    }

    /// Takes a watcher that left, or is done, out of the count.
    pub(crate) fn leave_watchers(&mut self, how_many: u64) -> Result<(), Stop> {
        self.watchers =
            self.watchers.checked_sub(how_many).ok_or_else(|| damaged(&"watchers below zero"))?;
        self.dirty = true;
        Ok(())
    }

    /// Notes when a grant of this weight expires now.
    pub(crate) fn note_expiry(&mut self, weight: u32, expires: Option<i64>) {
        if weight == self.used {
            // The only grant: exact.
            self.next_expiry = expires;
        } else if let Some(expires) = expires {
            self.next_expiry = Some(self.next_expiry.map_or(expires, |next| next.min(expires)));
        }
        self.dirty = true;
    }
}

/// Who asks for how much: what a waiter and a grant have in common.
#[derive(Debug)]
pub(crate) struct Party<'a> {
    pub(crate) token: &'a str,
    pub(crate) attempt: i64,
    pub(crate) client: i64,
    pub(crate) by_token: bool,
    pub(crate) weight: u32,
    pub(crate) whole: bool,
    pub(crate) ttl_ms: Option<u32>,
    pub(crate) host: &'a str,
    pub(crate) pid: u32,
    pub(crate) label: Option<&'a str>,
}

/// A waiter near the head of the queue.
#[derive(Debug)]
pub(crate) struct HeadRow {
    pub(crate) seq: i64,
    pub(crate) token: String,
    pub(crate) attempt: i64,
    pub(crate) client: i64,
    pub(crate) by_token: bool,
    pub(crate) weight: u32,
    pub(crate) whole: bool,
    pub(crate) ttl_ms: Option<u32>,
    pub(crate) host: String,
    pub(crate) pid: u32,
    pub(crate) label: Option<String>,
    /// `None`: the client is not registered.
    pub(crate) beat: Option<i64>,
}

impl HeadRow {
    pub(crate) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            seq: row.get(0)?,
            token: row.get(1)?,
            attempt: row.get(2)?,
            client: row.get(3)?,
            by_token: row.get(4)?,
            weight: row.get(5)?,
            whole: row.get(6)?,
            ttl_ms: row.get(7)?,
            host: row.get(8)?,
            pid: row.get(9)?,
            label: row.get(10)?,
            beat: row.get(11)?,
        })
    }

    /// Whether its client has not been heard of since that time, or is not registered.
    pub(crate) fn is_silent_since(&self, time: i64) -> bool {
        self.beat.is_none_or(|beat| beat < time)
    }

    pub(crate) fn party(&self) -> Party<'_> {
        Party {
            token: &self.token,
            attempt: self.attempt,
            client: self.client,
            by_token: self.by_token,
            weight: self.weight,
            whole: self.whole,
            ttl_ms: self.ttl_ms,
            host: &self.host,
            pid: self.pid,
            label: self.label.as_deref(),
        }
    }
}

/// A grant.
#[derive(Debug)]
pub(crate) struct GrantRow {
    pub(crate) attempt: i64,
    pub(crate) client: Option<i64>,
    pub(crate) by_token: bool,
    pub(crate) claimed: bool,
    pub(crate) weight: u32,
    pub(crate) fence: u64,
    pub(crate) ttl_ms: Option<u32>,
    pub(crate) expires: Option<i64>,
}

impl GrantRow {
    pub(crate) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            attempt: row.get(0)?,
            client: row.get(1)?,
            by_token: row.get(2)?,
            claimed: row.get(3)?,
            weight: row.get(4)?,
            fence: count(row, 5)?,
            ttl_ms: row.get(6)?,
            expires: row.get(7)?,
        })
    }

    /// When the full TTL that starts at `now` ends.
    pub(crate) fn full_ttl(&self, now: i64) -> Option<i64> {
        self.ttl_ms.map(|ms| now + ttl_us(ms))
    }
}

/// A TTL in microseconds.
pub(crate) const fn ttl_us(ms: u32) -> i64 {
    ms as i64 * 1000
}

/// A column that never holds a negative number.
pub(crate) fn count(row: &Row<'_>, index: usize) -> rusqlite::Result<u64> {
    row.get::<_, i64>(index).map(i64::cast_unsigned)
}

/// The rows contradict themselves.
pub(crate) fn damaged(what: &dyn std::fmt::Display) -> Stop {
    Stop::Fault(Fault::new(FaultKind::Corrupt, format!("the store contradicts itself: {what}")))
}
