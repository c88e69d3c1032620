//! What every step does to a lock before and after its own change: drop what is overdue, grant to
//! the head by the queue's rules, complete watchers, tell who is to time the next expiry.

use leasehold_core::defaults;
use leasehold_queue::rules::grant_from_head;
use rusqlite::params;

use crate::{
    error::Stop,
    rows::{HeadRow, LockRow},
    tx::{Mode, Tx, client, id, sql, us},
    waits::WaitKey,
};

/// How many waiters are read at a time; a longer run of grants reads on (rule Q6).
const WINDOW: i64 = 32;
const LIVENESS_LIMIT_US: i64 = us(defaults::LIVENESS_LIMIT);
const HEARTBEAT_US: i64 = us(defaults::SQLITE_HEARTBEAT);
/// How many watching clients are told of an early expiry; the others see it at their heartbeat.
const TOLD_MAX: i64 = 64;

/// What a notice says.
pub(crate) mod notice {
    pub(crate) const LOOK: i64 = 0;
    pub(crate) const CANCELLED: i64 = 1;
    pub(crate) const DESTROYED: i64 = 2;
}

/// What watchers wait for; each implies the ones before it, once the head has been granted.
pub(crate) mod watch {
    pub(crate) const ANY_PERMIT: i64 = 0;
    pub(crate) const READABLE: i64 = 1;
    pub(crate) const UNLOCKED: i64 = 2;
    pub(crate) const DESTROYED: i64 = 3;
}

impl Tx<'_> {
    /// Drops the grants that are overdue by the store's clock and passes their permits on (rules
    /// T3, L1).
    pub(crate) fn tick(&mut self, lock: &mut LockRow) -> Result<(), Stop> {
        if lock.next_expiry.is_none_or(|next| next > self.now) || self.mode == Mode::Glance {
            return Ok(());
        }
        if self.mode == Mode::Read {
            return Err(Stop::NeedsWrite);
        }
        let (overdue, next_expiry) = if lock.is_shared() {
            (sql!("grants_overdue"), sql!("grants_next_expiry"))
        } else {
            (sql!("grant_overdue"), sql!("grant_next_expiry"))
        };
        let over = self.all(overdue, [lock.id, self.now], |row| {
            Ok((row.get::<_, String>(0)?, row.get(1)?, row.get::<_, Option<i64>>(2)?, row.get(3)?))
        })?;
        for (token, weight, owner, claimed) in over {
            lock.give_back(weight)?;
            if claimed && let Some(owner) = owner {
                // L10: the claim has lapsed, and with it the waiter.
                self.leave_notice(owner, &lock.key, &token, notice::LOOK, "")?;
            }
        }
        lock.next_expiry = if lock.used == 0 {
            None
        } else {
            self.one(next_expiry, [lock.id], |row| row.get(0))?.flatten()
        };
        lock.dirty = true;
        self.grant_on(lock)?;
        // Before anything else happens in this step: an expiry may be what they wait for.
        self.complete_watchers(lock)
    }

    /// Grants from the head until the first waiter that does not fit (rules Q2, Q3). Waiters whose
    /// client is silent are dropped as they reach the head (rule L4).
    pub(crate) fn grant_on(&mut self, lock: &mut LockRow) -> Result<(), Stop> {
        if lock.queued == 0 || lock.used >= lock.capacity {
            return Ok(());
        }
        let mut silent_before = self.monotonic - LIVENESS_LIMIT_US;
        let mut after = i64::MIN;
        loop {
            let window = self.all(sql!("waiters_head"), [lock.id, after, WINDOW], HeadRow::read)?;
            let Some(last) = window.last() else { return Ok(()) };
            after = last.seq;
            if window.iter().any(|head| head.is_silent_since(silent_before)) {
                // Where nobody could beat, nobody is silent.
                silent_before = silent_before.min(self.newest_beat()? - LIVENESS_LIMIT_US);
            }
            let (mut silent, mut granted) = (Vec::new(), Vec::new());
            let mut permits = lock.permits()?;
            let heads = window.iter().filter_map(|head| {
                let speaks = !head.is_silent_since(silent_before);
                if !speaks {
                    silent.push(head);
                }
                speaks.then_some((head, head.weight))
            });
            let run = grant_from_head(&mut permits, heads, |head, _| granted.push(head));
            for head in silent {
                self.drop_waiter(lock, head)?;
            }
            for head in granted {
                self.claim(lock, head)?;
            }
            debug_assert_eq!(permits.used(), lock.used, "each grant took its weight");
            if run.blocked.is_some() || (window.len() as i64) < WINDOW {
                return Ok(());
            }
        }
    }

    /// Moves the head among the holders, for the time of a claim (rule L10), and wakes its client
    /// alone (rule L5).
    fn claim(&mut self, lock: &mut LockRow, head: &HeadRow) -> Result<(), Stop> {
        self.execute(sql!("waiter_delete_at"), [lock.id, head.seq])?;
        lock.leave_queue()?;
        lock.head_changed = true;
        lock.used += head.weight;
        self.insert_grant(lock, &head.party(), true)?;
        self.wake(client(head.client), WaitKey::waiter(&lock.key, &head.token));
        Ok(())
    }

    fn drop_waiter(&mut self, lock: &mut LockRow, head: &HeadRow) -> Result<(), Stop> {
        self.execute(sql!("waiter_delete_at"), [lock.id, head.seq])?;
        lock.leave_queue()?;
        lock.head_changed = true;
        self.leave_notice(head.client, &lock.key, &head.token, notice::LOOK, "")
    }

    /// Leaves word for a waiter that was put out of the queue, and wakes it.
    pub(crate) fn leave_notice(
        &mut self,
        owner: i64,
        lock: &str,
        token: &str,
        kind: i64,
        reason: &str,
    ) -> Result<(), Stop> {
        self.execute(sql!("notice_insert"), params![owner, lock, token, kind, reason])?;
        self.wake(client(owner), WaitKey::waiter(lock, token));
        Ok(())
    }

    /// Ends a step on a lock: what was freed is granted on, watchers are told, the row is written.
    pub(crate) fn finish(&mut self, lock: &mut LockRow) -> Result<(), Stop> {
        self.grant_on(lock)?;
        self.complete_watchers(lock)?;
        self.tell_who_times(lock)?;
        if lock.dirty {
            self.store(lock)?;
        }
        Ok(())
    }

    fn complete_watchers(&mut self, lock: &mut LockRow) -> Result<(), Stop> {
        match true_now(lock) {
            Some(what) if lock.watchers > 0 => self.finish_watchers(lock, what),
            _ => Ok(()),
        }
    }

    /// Completes the watchers of `what` and of all that it implies (rule U1).
    pub(crate) fn finish_watchers(&mut self, lock: &mut LockRow, what: i64) -> Result<(), Stop> {
        let done = self.all(sql!("watchers_finish"), params![lock.key, what], |row| {
            Ok((row.get::<_, String>(0)?, row.get(1)?))
        })?;
        lock.leave_watchers(done.len() as u64)?;
        for (token, owner) in done {
            self.wake(client(owner), WaitKey::watcher(&lock.key, &token));
        }
        Ok(())
    }

    /// Every client with waiters looks at its heartbeat; a grant that ends earlier, or a new head,
    /// is told to the client of the head, which times the expiry.
    fn tell_who_times(&mut self, lock: &LockRow) -> Result<(), Stop> {
        let Some(next) = lock.next_expiry else { return Ok(()) };
        let is_news = lock.head_changed || lock.read_expiry.is_none_or(|read| next < read);
        if !is_news || next > self.now + HEARTBEAT_US || (lock.queued == 0 && lock.watchers == 0) {
            return Ok(());
        }
        if lock.queued > 0 {
            let head = self.one(sql!("lock_glance"), [lock.id], |row| row.get(1))?.flatten();
            self.tell_to_look(head);
        }
        if lock.watchers > 0 {
            let clients =
                self.all(sql!("watchers_pending"), params![lock.key, TOLD_MAX], |row| row.get(0))?;
            for watching in clients {
                self.tell_to_look(Some(watching));
            }
        }
        Ok(())
    }

    fn tell_to_look(&mut self, other: Option<i64>) {
        if let Some(other) = other {
            // This client's own thread reads the same pipe.
            self.effects.poke(client(other));
        }
    }

    /// Whether a client is this one.
    pub(crate) fn is_me(&self, other: i64) -> bool {
        other == id(self.me)
    }
}

/// The most that is true of a lock, for watchers.
pub(crate) const fn true_now(lock: &LockRow) -> Option<i64> {
    if lock.used == 0 {
        Some(watch::UNLOCKED)
    } else if lock.used >= lock.capacity {
        None
    } else if lock.queued == 0 {
        Some(watch::READABLE)
    } else {
        Some(watch::ANY_PERMIT)
    }
}
