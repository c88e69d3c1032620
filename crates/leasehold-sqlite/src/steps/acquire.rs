//! Grants, queues or refuses (rules Q2, L7, N2).

use leasehold_core::{
    Acquire, Acquired, Binding, Capacity, Generation, Grant, Place, Refusal, Share, StoreTime, Ttl,
};
use rusqlite::params;

use super::{Step, lifetime::needs_ttl};
use crate::{
    error::Stop,
    rows::{LockRow, Party},
    tx::{Mode, Tx, id, sql},
    waits::WaitKey,
};

/// How often the dead in the way are buried for one acquisition, and in a caller's thread.
const BURIALS_MAX: u32 = 1000;
const BURIALS_INLINE_MAX: u32 = 2;

/// One acquisition.
#[derive(Debug)]
pub(crate) struct AcquireStep {
    request: Acquire,
    token: String,
}

impl AcquireStep {
    pub(crate) fn new(request: &Acquire) -> Self {
        Self { token: request.token.to_string(), request: request.clone() }
    }
}

impl Step for AcquireStep {
    type Answer = Acquired;

    fn run(&self, tx: &mut Tx<'_>) -> Result<Acquired, Stop> {
        let request = &self.request;
        if request.binding == Binding::Token && request.ttl.is_none() {
            return Err(Stop::Fault(needs_ttl()));
        }
        let now = StoreTime(u64::try_from(tx.now).unwrap_or(0));
        if request.not_after.is_some_and(|limit| limit <= now) {
            return Ok(Acquired::Refused(Refusal::Stale));
        }
        let mut lock = match tx.lock(&request.lock)? {
            Some(lock) => lock,
            None => tx.new_lock(&request.lock, request.generation)?,
        };
        if let Some(answer) = self.find_replay(tx, &mut lock)? {
            tx.finish(&mut lock)?;
            return Ok(answer);
        }
        let mut burials = 0;
        let weight = loop {
            let weight = match self.admit(&mut lock) {
                Ok(weight) => weight,
                Err(refusal) => {
                    tx.finish(&mut lock)?;
                    return Ok(Acquired::Refused(refusal));
                }
            };
            if lock.permits()?.admits_on_arrival(lock.queued > 0, weight) {
                let grant = self.grant(tx, &mut lock, weight)?;
                return Ok(Acquired::Granted(grant));
            }
            // N7, T8: whoever is in the way may have died, and then is not in the way.
            // And so may those who come after them.
            if burials == BURIALS_MAX || !tx.bury_dead_in_the_way(&mut lock)? {
                break weight;
            }
            burials += 1;
            if burials > BURIALS_INLINE_MAX && tx.mode == Mode::Inline {
                return Err(Stop::Heavy);
            }
        };
        self.wait_or_leave(tx, &mut lock, weight)
    }
}

impl AcquireStep {
    /// The answer to a request that is known (rule L7): its grant or place, or `TokenInUse`.
    fn find_replay(&self, tx: &mut Tx<'_>, lock: &mut LockRow) -> Result<Option<Acquired>, Stop> {
        let attempt = self.request.attempt.0.cast_signed();
        let in_use = Ok(Some(Acquired::Refused(Refusal::TokenInUse)));
        if let Some(grant) = tx.grant_of(lock, &self.token)? {
            if grant.attempt != attempt {
                return in_use;
            }
            let expires = if grant.claimed {
                // The grant was never told; the answer to the replay confirms it.
                tx.confirm_grant(lock, &self.token, &grant)?
            } else {
                grant.expires
            };
            return tx
                .as_grant(lock, grant.fence, expires, grant.ttl_ms)
                .map(|grant| Some(Acquired::Granted(grant)));
        }
        let known = if lock.queued == 0 {
            None
        } else {
            tx.one(sql!("waiter_by_token"), params![lock.id, self.token], |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))
            })?
        };
        match known {
            None => self.find_rejected(tx, lock),
            Some((_, other)) if other != attempt => in_use,
            Some((seq, _)) => {
                tx.execute(sql!("waiter_adopt"), params![lock.id, seq, id(tx.me)])?;
                let ahead = tx.ahead_of(lock, seq)?;
                self.place(tx, lock, ahead).map(Some)
            }
        }
    }

    /// The answer to a replay by a waiter that was rejected and not told yet: it will ask.
    fn find_rejected(&self, tx: &mut Tx<'_>, lock: &LockRow) -> Result<Option<Acquired>, Stop> {
        let key = WaitKey::waiter(&lock.key, &self.token);
        let Some(attempt) = tx.waits.attempt(&key) else { return Ok(None) };
        let known =
            tx.one(sql!("notice_find"), params![id(tx.me), lock.key, self.token], |_| Ok(()))?;
        match known {
            None => Ok(None),
            Some(()) if attempt != self.request.attempt.0 => {
                Ok(Some(Acquired::Refused(Refusal::TokenInUse)))
            }
            Some(()) => {
                let place = self.place(tx, lock, Some(0))?;
                if let Acquired::Queued(place) = &place {
                    place.wake.notify();
                }
                Ok(Some(place))
            }
        }
    }

    /// Checks the request against the lock as it is, and says what it weighs (rules N2, N5, Q5).
    fn admit(&self, lock: &mut LockRow) -> Result<u32, Refusal> {
        let request = &self.request;
        if request.generation.is_some_and(|generation| generation.0 < lock.generation) {
            return Err(Refusal::Destroyed);
        }
        if let Some(registered) = lock.registered()
            && !request.capacity.accepts(registered)
        {
            return Err(Refusal::ConfigMismatch { registered });
        }
        let capacity = lock.registered().unwrap_or_else(|| request.capacity.initial());
        let weight = request.share.weight(capacity);
        if weight > capacity.get() {
            return Err(Refusal::TooHeavy { capacity });
        }
        lock.capacity = capacity.get();
        Ok(weight)
    }

    fn grant(&self, tx: &mut Tx<'_>, lock: &mut LockRow, weight: u32) -> Result<Grant, Stop> {
        let mut permits = lock.permits()?;
        assert!(permits.grant(weight), "what is admitted fits");
        lock.used = permits.used();
        lock.dirty = true;
        let grant = tx.insert_grant(lock, &self.party(tx, weight), false)?;
        tx.finish(lock)?;
        Ok(grant)
    }

    fn wait_or_leave(
        &self,
        tx: &mut Tx<'_>,
        lock: &mut LockRow,
        weight: u32,
    ) -> Result<Acquired, Stop> {
        let request = &self.request;
        let ahead = Some(lock.queued);
        if !request.wait {
            let obstacle = tx.obstacle(lock, ahead)?;
            tx.finish(lock)?;
            return Ok(Acquired::Busy(obstacle));
        }
        if lock.queued >= request.queue_limit {
            tx.finish(lock)?;
            return Ok(Acquired::Refused(Refusal::QueueFull { limit: request.queue_limit }));
        }
        lock.seq += 1;
        lock.queued += 1;
        lock.head_changed |= lock.queued == 1;
        lock.dirty = true;
        if lock.id == 0 {
            tx.store(lock)?;
        }
        let party = self.party(tx, weight);
        tx.execute(
            sql!("waiter_insert"),
            params![
                lock.id,
                lock.seq,
                party.token,
                party.attempt,
                party.client,
                party.by_token,
                party.weight,
                party.whole,
                party.ttl_ms,
                tx.now,
                party.host,
                party.pid,
                party.label
            ],
        )?;
        tx.beat()?;
        let place = self.place(tx, lock, ahead)?;
        tx.finish(lock)?;
        Ok(place)
    }

    /// The answer to a waiter, which is known to this client's thread from here on.
    fn place(&self, tx: &mut Tx<'_>, lock: &LockRow, ahead: Option<u64>) -> Result<Acquired, Stop> {
        let key = WaitKey::waiter(&lock.key, &self.token);
        let attempt = self.request.attempt.0;
        let (wake, is_new) = tx.waits.enter(&key, Some(lock.id), attempt, lock.next_expiry);
        if is_new {
            tx.effects.entered(key, lock.next_expiry);
        }
        // A rejected waiter's lock may have no capacity any more; it learns of that when it asks.
        let capacity = Capacity::new(lock.capacity).unwrap_or(self.request.capacity.initial());
        Ok(Acquired::Queued(Place {
            wake,
            obstacle: tx.obstacle(lock, ahead)?,
            generation: Generation(lock.generation),
            capacity,
        }))
    }

    fn party(&self, tx: &Tx<'_>, weight: u32) -> Party<'_> {
        let request = &self.request;
        Party {
            token: &self.token,
            attempt: request.attempt.0.cast_signed(),
            client: id(tx.me),
            by_token: request.binding == Binding::Token,
            weight,
            whole: request.share == Share::Whole,
            ttl_ms: request.ttl.map(Ttl::as_millis),
            host: request.info.host(),
            pid: request.info.pid(),
            label: request.info.label(),
        }
    }
}
