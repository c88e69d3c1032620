//! What a lock, or every lock, looks like now (rule N4).

use std::sync::Arc;

use leasehold_core::{
    Binding, Capacity, FencingToken, Generation, HolderInfo, HolderState, LockCounts, LockId,
    LockKind, LockName, LockState, Namespace, Share, Token, WaiterState, Weight,
};
use rusqlite::Row;

use super::Step;
use crate::{
    error::Stop,
    rows::{count, damaged},
    tx::{Mode, Tx, client, sql},
};

/// The counts of a lock.
#[derive(Debug)]
pub(crate) struct CountsStep(pub(crate) Arc<LockId>);

impl Step for CountsStep {
    type Answer = Option<LockCounts>;
    const READS: bool = true;

    fn run(&self, tx: &mut Tx<'_>) -> Result<Option<LockCounts>, Stop> {
        let Some(mut lock) = tx.lock(&self.0)? else { return Ok(None) };
        if lock.used > 0 {
            tx.bury_dead_in_the_way(&mut lock)?;
        }
        let counts = match lock.registered() {
            None => None,
            Some(capacity) => {
                let any = tx.one(sql!("grant_any"), [lock.id], |row| row.get::<_, bool>(4))?;
                Some(LockCounts {
                    capacity,
                    used: lock.used,
                    queued: lock.queued,
                    // One that holds the whole lock holds it alone.
                    whole: any == Some(true),
                    generation: Generation(lock.generation),
                })
            }
        };
        if lock.dirty {
            tx.finish(&mut lock)?;
        }
        Ok(counts)
    }
}

/// The state of a lock.
#[derive(Debug)]
pub(crate) struct InspectStep(pub(crate) Arc<LockId>);

impl Step for InspectStep {
    type Answer = Option<LockState>;
    const READS: bool = true;
    const INLINE: bool = false;

    fn run(&self, tx: &mut Tx<'_>) -> Result<Option<LockState>, Stop> {
        let Some(mut lock) = tx.lock(&self.0)? else { return Ok(None) };
        if lock.used > 0 {
            tx.bury_dead_in_the_way(&mut lock)?;
        }
        if lock.dirty {
            tx.finish(&mut lock)?;
        }
        let Some(capacity) = lock.registered() else { return Ok(None) };
        tx.state(&Found {
            id: lock.id,
            lock: (*self.0).clone(),
            capacity,
            used: lock.used,
            generation: Generation(lock.generation),
        })
    }
}

/// Every lock in use.
#[derive(Debug)]
pub(crate) struct SurveyStep(pub(crate) Option<Namespace>);

impl Step for SurveyStep {
    type Answer = Vec<LockState>;
    const READS: bool = true;
    const INLINE: bool = false;

    fn run(&self, tx: &mut Tx<'_>) -> Result<Vec<LockState>, Stop> {
        let namespace = self.0.as_ref().map(Namespace::as_str);
        let mut states = Vec::new();
        for id in tx.all(sql!("locks_in_use"), [namespace], |row| row.get::<_, i64>(0))? {
            if let Some(mut lock) = tx.lock_by_id(id)? {
                if lock.used > 0 {
                    tx.bury_dead_in_the_way(&mut lock)?;
                }
                if lock.dirty {
                    tx.finish(&mut lock)?;
                }
            }
        }
        for found in tx.all(sql!("locks_in_use"), [namespace], |row| Ok(Found::read(row)))? {
            if let Some(found) = found? {
                states.extend(tx.state(&found)?);
            }
        }
        states.sort_by(|a, b| {
            let key = |state: &LockState| {
                let lock = &state.lock;
                (lock.namespace().clone(), lock.name().clone(), lock.kind())
            };
            key(a).cmp(&key(b))
        });
        Ok(states)
    }
}

/// A lock that is in use.
#[derive(Debug)]
struct Found {
    id: i64,
    lock: LockId,
    capacity: Capacity,
    used: u32,
    generation: Generation,
}

impl Found {
    /// `None`: only watched, and nobody has registered a capacity.
    fn read(row: &Row<'_>) -> Result<Option<Self>, Stop> {
        let text = |index| row.get::<_, String>(index).map_err(Stop::from);
        let lock = LockId::new(
            Namespace::new(text(1)?).map_err(|error| damaged(&error))?,
            text(2)?.parse::<LockKind>().map_err(|error| damaged(&error))?,
            LockName::new(text(3)?).map_err(|error| damaged(&error))?,
        );
        let Ok(capacity) = Capacity::new(row.get(4)?) else { return Ok(None) };
        let generation = Generation(count(row, 6)?);
        Ok(Some(Self { id: row.get(0)?, lock, capacity, used: row.get(5)?, generation }))
    }
}

impl Tx<'_> {
    /// `None`: a glance has found nobody who is still there.
    fn state(&self, found: &Found) -> Result<Option<LockState>, Stop> {
        let (mut holders, mut used) = (Vec::new(), found.used);
        let rows = self.all(sql!("grants_of_lock"), [found.id], |row| {
            let is_over = self.is_over(row.get(8)?, row.get(11)?);
            Ok((row.get::<_, u32>(5)?, is_over, self.holder(row)))
        })?;
        for (weight, is_over, holder) in rows {
            if is_over {
                used = used.saturating_sub(weight);
            } else {
                holders.push(holder?);
            }
        }
        let waiters = self.all(sql!("waiters_of_lock"), [found.id], |row| Ok(self.waiter(row)))?;
        if used < found.used && holders.is_empty() && waiters.is_empty() {
            return Ok(None);
        }
        Ok(Some(LockState {
            lock: found.lock.clone(),
            capacity: found.capacity,
            used,
            generation: found.generation,
            holders,
            waiters: waiters.into_iter().collect::<Result<_, _>>()?,
        }))
    }

    /// Whether a glance finds a grant that nobody could clean up: overdue, or of a dead client.
    fn is_over(&self, expires: Option<i64>, owner: Option<i64>) -> bool {
        self.mode == Mode::Glance
            && (expires.is_some_and(|at| at <= self.now)
                || owner.is_some_and(|owner| self.members.is_dead(client(owner))))
    }

    fn holder(&self, row: &Row<'_>) -> Result<HolderState, Stop> {
        let (short_id, info, share) = person(row)?;
        let expires: Option<i64> = row.get(8)?;
        Ok(HolderState {
            short_id,
            info,
            share,
            fencing: FencingToken(count(row, 6)?),
            held_for: self.since(row.get(7)?),
            ttl_left: expires.map(|at| self.until(at)),
            binding: if row.get(9)? { Binding::Token } else { Binding::Client },
            claimed: row.get(10)?,
        })
    }

    fn waiter(&self, row: &Row<'_>) -> Result<WaiterState, Stop> {
        let (short_id, info, share) = person(row)?;
        Ok(WaiterState { short_id, info, share, waited_for: self.since(row.get(6)?) })
    }
}

/// What holders and waiters show alike: columns 0 to 5.
fn person(row: &Row<'_>) -> Result<(String, HolderInfo, Share), Stop> {
    let token: String = row.get(0)?;
    let token = Token::new(token).map_err(|error| damaged(&error))?;
    let (host, label): (String, Option<String>) = (row.get(1)?, row.get(3)?);
    let info = HolderInfo::from_parts(&host, row.get(2)?, label.as_deref());
    let share = if row.get(4)? {
        Share::Whole
    } else {
        Share::Permits(Weight::new(row.get(5)?).map_err(|error| damaged(&error))?)
    };
    Ok((token.short_id(), info, share))
}
