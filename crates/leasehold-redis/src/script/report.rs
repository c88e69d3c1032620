//! A lock as others may see it (rules N4, E2).

use std::time::Duration;

use leasehold_core::{
    Binding, Fault, FencingToken, HolderInfo, HolderState, LockCounts, LockId, LockState, Share,
    Token, WaiterState, Weight,
};
use redis::Value;

use super::{
    answer::{Answer, unexpected},
    keys::LockKeys,
    request::Request,
    source,
    wire::{decode_info, flag},
};

/// The counts of a lock; `None`: nobody uses it.
#[must_use]
pub fn counts(keys: &LockKeys) -> Request<Option<LockCounts>> {
    fn read(answer: Value) -> Result<Option<LockCounts>, Fault> {
        let (code, mut answer) = Answer::open(answer)?;
        match code {
            0 => Ok(Some(LockCounts {
                capacity: answer.capacity()?,
                used: answer.number()?,
                queued: answer.count()?,
                whole: answer.truth()?,
                generation: answer.generation()?,
            })),
            1 => Ok(None),
            _ => Err(unexpected()),
        }
    }
    Request::new(&source::COUNTS, keys, read)
}

/// The whole state of a lock; `None`: nobody uses it. Which lock it is, the caller knows.
#[must_use]
pub fn inspect(keys: &LockKeys) -> Request<Option<Inspected>> {
    Request::new(&source::INSPECT, keys, read_state)
}

/// A lock as the server has it, still without its name.
#[derive(Clone, Debug)]
pub struct Inspected {
    counts: LockCounts,
    holders: Vec<HolderState>,
    waiters: Vec<WaiterState>,
}

impl Inspected {
    /// The same with its name.
    #[must_use]
    pub fn of(self, lock: LockId) -> LockState {
        LockState {
            lock,
            capacity: self.counts.capacity,
            used: self.counts.used,
            generation: self.counts.generation,
            holders: self.holders,
            waiters: self.waiters,
        }
    }
}

fn read_state(answer: Value) -> Result<Option<Inspected>, Fault> {
    let (code, mut answer) = Answer::open(answer)?;
    match code {
        0 => {}
        1 => return Ok(None),
        _ => return Err(unexpected()),
    }
    let capacity = answer.capacity()?;
    let used = answer.number()?;
    let generation = answer.generation()?;
    let mut list = answer.list()?;
    let mut holders = Vec::new();
    while list.len() > 0 {
        let party = list.party()?;
        holders.push(HolderState {
            short_id: party.short_id,
            info: party.info,
            share: party.share,
            held_for: party.since,
            binding: party.binding,
            fencing: FencingToken(list.count()?),
            ttl_left: list.duration()?,
            claimed: list.truth()?,
        });
    }
    let mut list = answer.list()?;
    let mut waiters = Vec::new();
    while list.len() > 0 {
        let party = list.party()?;
        waiters.push(WaiterState {
            short_id: party.short_id,
            info: party.info,
            share: party.share,
            waited_for: party.since,
        });
    }
    holders.sort_by_key(|holder| holder.fencing);
    let whole = holders.iter().any(|holder| holder.share == Share::Whole);
    let queued = waiters.len() as u64;
    let counts = LockCounts { capacity, used, queued, whole, generation };
    Ok(Some(Inspected { counts, holders, waiters }))
}

/// What a holder and a waiter have in common.
struct Party {
    short_id: String,
    info: HolderInfo,
    share: Share,
    binding: Binding,
    since: Duration,
}

impl Answer {
    /// Token, who, flags, weight, since when.
    fn party(&mut self) -> Result<Party, Fault> {
        let token = Token::new(self.text()?).map_err(|_| unexpected())?;
        let info = decode_info(&self.bytes()?)?;
        let flags = u8::try_from(self.int()?).map_err(|_| unexpected())?;
        let weight = Weight::new(self.number()?).map_err(|_| unexpected())?;
        let whole = flags & flag::WHOLE != 0;
        Ok(Party {
            short_id: token.short_id(),
            info,
            share: if whole { Share::Whole } else { Share::Permits(weight) },
            binding: if flags & flag::BY_TOKEN == 0 { Binding::Client } else { Binding::Token },
            since: self.duration()?.unwrap_or_default(),
        })
    }
}
