//! The beat of waiters and watchers of one client on one lock (rules L4, L5).

use std::time::Duration;

use leasehold_core::{Fault, Token};
use redis::Value;

use super::{
    acquire::Waiting,
    answer::{Answer, unexpected},
    keys::LockKeys,
    request::Request,
    source,
};

/// How a waiter or watcher stands at a beat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pulse {
    /// It waits on.
    Waits,
    /// It is granted, rejected, done or not known: it should ask (`confirm`, `watch`).
    Look,
}

/// The answer to [`beat`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BeatReply {
    /// When to look next; `times` is set when one of the waiters is the head or a watcher waits
    /// for permits.
    pub waiting: Waiting,
    /// One for each token, in order.
    pub pulses: Vec<Pulse>,
}

/// The most tokens that one beat takes.
pub const BEAT_TOKENS_MAX: usize = 500;

/// Shows that the client of these waiters and watchers of one lock lives, and asks how each stands.
///
/// # Panics
/// With no token, or with more than [`BEAT_TOKENS_MAX`].
#[must_use]
pub fn beat<'a>(
    keys: &LockKeys,
    waiters: impl IntoIterator<Item = &'a Token>,
    watchers: impl IntoIterator<Item = &'a Token>,
) -> Request<BeatReply> {
    let mut request = Request::new(&source::BEAT, keys, read_beat);
    let mut count = 0;
    // Of a waiter, the field of its beat (`beat.lua`).
    let fields = waiters.into_iter().map(|token| ('b', token));
    for (kind, token) in fields.chain(watchers.into_iter().map(|token| ('w', token))) {
        request = request.arg(format!("{kind}:{token}"));
        count += 1;
    }
    assert!((1..=BEAT_TOKENS_MAX).contains(&count), "a beat of {count} tokens");
    request
}

fn read_beat(answer: Value) -> Result<BeatReply, Fault> {
    if let Value::Int(number) = answer {
        return one_waits_on(number);
    }
    let (code, mut answer) = Answer::open(answer)?;
    if code != 0 {
        return Err(unexpected());
    }
    let waiting = answer.waiting()?;
    let mut pulses = Vec::with_capacity(answer.len());
    for _ in 0..answer.len() {
        pulses.push(if answer.truth()? { Pulse::Waits } else { Pulse::Look });
    }
    Ok(BeatReply { waiting, pulses })
}

/// The answer to a beat of one waiter that waits on.
fn one_waits_on(number: i64) -> Result<BeatReply, Fault> {
    let number = u64::try_from(number).map_err(|_| unexpected())?;
    let left = Duration::from_micros(number / 4);
    let waiting = Waiting {
        next_expiry: (!left.is_zero()).then_some(left),
        times: number & 2 != 0,
        pushed: number & 1 != 0,
    };
    Ok(BeatReply { waiting, pulses: vec![Pulse::Waits] })
}
