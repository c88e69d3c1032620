//! Acquiring, and asking what became of a waiter (rules Q2, L7, L10).

use std::time::Duration;

use leasehold_core::{
    Acquire, CapacityClaim, ClientId, Confirmed, Fault, Generation, Grant, Obstacle, Refusal,
    Rejection, Share, StoreTime, Token, Ttl,
};
use redis::Value;

use super::{
    answer::{Answer, unexpected},
    keys::LockKeys,
    push::WakeId,
    request::Request,
    source,
    wire::{Packed, binding_flag, encode_info, flag},
};

/// How much longer than what counts the state is kept (`head.lua`).
const RETAIN_MS: u64 = 2000;
/// The state of a record that is a grant (`many.lua`).
const GRANTED: u8 = 1;

/// What the client adds to an acquisition.
#[derive(Clone, Copy, Debug)]
pub struct Sender {
    /// Who sends: the channel that pushes go to.
    pub client: ClientId,
    /// What the client knows the waiter by, and pushes name it by.
    pub wake: WakeId,
    /// From when on this very copy of the request has no effect: no later than the request's own
    /// `not_after`, and soon enough that its tombstone need not be kept for long (rule L7).
    pub not_after: Option<StoreTime>,
    /// When it was sent, as far as the client knows the server's time; the same request may be sent
    /// anew with a later one. What is sent before another acquisition of the same lock that is over by
    /// now may be a copy of one that is over, too (rule L7).
    pub stamp: Option<StoreTime>,
    /// How long a grant after a wait lasts unless it is confirmed: at most max(2 s, 4 round trips);
    /// the script takes the TTL when that is shorter (rule L10).
    pub claim: Duration,
}

/// The answer to [`acquire`].
#[derive(Clone, Debug, PartialEq)]
pub enum AcquireReply {
    /// Held from now on, or confirmed by this replay.
    Granted(Grant),
    /// Queued, or still queued; the client keeps the wake.
    Queued {
        /// What stood in the way.
        obstacle: Obstacle,
        /// The lock's generation.
        generation: Generation,
        /// The lock's capacity.
        capacity: leasehold_core::Capacity,
        /// When to look, pushes aside.
        waiting: Waiting,
    },
    /// Not free, and the request did not want to wait.
    Busy(Obstacle),
    /// Refused.
    Refused(Refusal),
    /// This attempt was over before this copy of it came: released, told, expired (rule L7). It is
    /// `Stale` to a caller, and final: unlike `Refused(Stale)`, a later `not_after` does not help.
    Ended,
    /// Another acquisition was sent at this time, and is over. This one was not sent later, so it may be
    /// a copy of one that is over: it has no effect. Sent anew with a later stamp, it is answered.
    Overtaken(StoreTime),
}

/// What a waiter or watcher that has to wait on is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// How long until the next grant of this lock runs out by itself; `None`: none will.
    pub next_expiry: Option<Duration>,
    /// Whether this client is the one to look then: the head of the queue, or a watcher.
    pub times: bool,
    /// False: the server refused to publish for this lock (ACL), so nobody is pushed and everybody
    /// has to look at the next expiry and at each beat.
    pub pushed: bool,
}

/// The answer to [`confirm`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfirmReply {
    /// What the contract says; never `Waiting`.
    Told(Confirmed),
    /// Still queued.
    Waiting(Waiting),
}

/// Grants, queues or refuses. See [`Backend::acquire`](leasehold_core::Backend::acquire) for the
/// order of the checks; that a grant bound to its token needs a TTL is the caller's to check.
#[must_use]
pub fn acquire(keys: &LockKeys, request: &Acquire, sender: Sender) -> Request<AcquireReply> {
    let (weight, whole) = match request.share {
        Share::Permits(weight) => (weight.get(), 0),
        Share::Whole => (0, flag::WHOLE),
    };
    let registered = match request.capacity {
        CapacityClaim::Exactly(_) => 0,
        CapacityClaim::Registered { .. } => flag::REGISTERED,
    };
    let wait = if request.wait { flag::WAIT } else { 0 };
    let not_after = match (sender.not_after, request.not_after) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
    // As the record lies that is made of it (`acquire.lua`).
    let packed = Packed::default()
        .byte(GRANTED)
        .byte(binding_flag(request.binding) | whole | registered | wait)
        .bytes(&request.attempt.0.to_be_bytes())
        .bytes(&sender.client.0.to_be_bytes())
        .large(sender.wake.0)
        .number(weight)
        .number(request.ttl.map_or(0, Ttl::as_millis))
        .number(request.capacity.initial().get())
        .number(u32::try_from(sender.claim.as_millis()).unwrap_or(u32::MAX))
        .large_or_none(request.generation.map(|generation| generation.0))
        .large(request.queue_limit)
        .large_or_none(not_after.map(|not_after| not_after.0))
        .large(sender.stamp.map_or(0, |stamp| stamp.0))
        .bytes(&encode_info(&request.info));
    Request::new(&source::ACQUIRE, keys, read_acquired)
        .arg(request.token.to_string())
        .arg(packed.done())
        .arg(request.ttl.map_or(0, |ttl| u64::from(ttl.as_millis()) + RETAIN_MS))
}

fn read_acquired(answer: Value) -> Result<AcquireReply, Fault> {
    let (code, mut answer) = Answer::open(answer)?;
    Ok(match code {
        0 => AcquireReply::Granted(answer.grant()?),
        1 => AcquireReply::Queued {
            obstacle: answer.obstacle()?,
            generation: answer.generation()?,
            capacity: answer.capacity()?,
            waiting: answer.waiting()?,
        },
        2 => AcquireReply::Busy(answer.obstacle()?),
        3 => AcquireReply::Refused(match answer.int()? {
            1 => Refusal::TokenInUse,
            2 => Refusal::ConfigMismatch { registered: answer.capacity()? },
            3 => Refusal::TooHeavy { capacity: answer.capacity()? },
            4 => Refusal::Destroyed,
            5 => Refusal::Stale,
            6 => Refusal::QueueFull { limit: answer.count()? },
            _ => return Err(unexpected()),
        }),
        4 => AcquireReply::Ended,
        5 => AcquireReply::Overtaken(StoreTime(answer.count()?)),
        _ => return Err(unexpected()),
    })
}

/// Tells a waiter what became of it, and turns its claim into a grant. It counts as a beat.
#[must_use]
pub fn confirm(keys: &LockKeys, token: &Token) -> Request<ConfirmReply> {
    Request::new(&source::CONFIRM, keys, read_confirmed).arg(token.to_string())
}

fn read_confirmed(answer: Value) -> Result<ConfirmReply, Fault> {
    let (code, mut answer) = Answer::open(answer)?;
    let told = match code {
        0 => Confirmed::Granted(answer.grant()?),
        1 => return Ok(ConfirmReply::Waiting(answer.waiting()?)),
        2 => Confirmed::Rejected(match answer.int()? {
            1 => Rejection::Cancelled { reason: answer.text()? },
            2 => Rejection::Destroyed { reason: answer.text()? },
            _ => return Err(unexpected()),
        }),
        3 => Confirmed::Unknown,
        _ => return Err(unexpected()),
    };
    Ok(ConfirmReply::Told(told))
}

impl Answer {
    pub(super) fn waiting(&mut self) -> Result<Waiting, Fault> {
        Ok(Waiting { next_expiry: self.duration()?, times: self.truth()?, pushed: self.truth()? })
    }
}
