//! What may be done to one grant (rules T4, T8, L2).

use leasehold_core::{Binding, ClientId, Extended, Fault, Grant, Remaining, Renewed, Token, Ttl};
use redis::Value;

use super::{
    answer::{Answer, unexpected},
    keys::LockKeys,
    request::Request,
    source,
    wire::{Packed, binding_flag},
};

/// What [`rebind`] changes.
#[derive(Clone, Copy, Debug)]
pub struct Extension {
    /// What the grant is bound to from now on.
    pub binding: Binding,
    /// The client that asks, and has the grant from now on.
    pub client: ClientId,
    /// The TTL that begins now; `None`: it stays as it is.
    pub ttl: Option<Ttl>,
}

/// The answer to [`rebind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RebindReply {
    /// The grant as it is now.
    Bound(Grant),
    /// The grant is gone.
    Gone,
    /// To be bound to its token a grant needs a TTL (rule T8); nothing changed.
    NeedsTtl,
}

/// Renews one grant: expiry = max(expiry, now + its TTL).
#[must_use]
pub fn renew(keys: &LockKeys, token: &Token) -> Request<Renewed> {
    fn read(answer: Value) -> Result<Renewed, Fault> {
        let (code, mut answer) = Answer::open(answer)?;
        match code {
            0 => Ok(Renewed::Held { remaining: answer.duration()? }),
            1 => Ok(Renewed::Unknown),
            _ => Err(unexpected()),
        }
    }
    Request::new(&source::RENEW, keys, read).arg(token.to_string())
}

/// Sets a grant's expiry to now + `ttl`, or takes it away, and makes it the TTL of renewals.
#[must_use]
pub fn extend(keys: &LockKeys, token: &Token, ttl: Option<Ttl>) -> Request<Extended> {
    fn read(answer: Value) -> Result<Extended, Fault> {
        let (code, _) = Answer::open(answer)?;
        match code {
            0 => Ok(Extended::Held),
            1 => Ok(Extended::Gone),
            2 => Ok(Extended::NeedsTtl),
            _ => Err(unexpected()),
        }
    }
    Request::new(&source::EXTEND, keys, read)
        .arg(token.to_string())
        .arg(ttl.map_or(0, Ttl::as_millis))
}

/// Binds a grant to a client or to its token.
#[must_use]
pub fn rebind(keys: &LockKeys, token: &Token, to: Extension) -> Request<RebindReply> {
    fn read(answer: Value) -> Result<RebindReply, Fault> {
        let (code, mut answer) = Answer::open(answer)?;
        match code {
            0 => Ok(RebindReply::Bound(answer.grant()?)),
            1 => Ok(RebindReply::Gone),
            2 => Ok(RebindReply::NeedsTtl),
            _ => Err(unexpected()),
        }
    }
    let packed = Packed::default()
        .byte(binding_flag(to.binding))
        .bytes(&to.client.0.to_be_bytes())
        .number(to.ttl.map_or(0, Ttl::as_millis));
    Request::new(&source::REBIND, keys, read).arg(token.to_string()).arg(packed.done())
}

/// What is left of a grant.
#[must_use]
pub fn remaining(keys: &LockKeys, token: &Token) -> Request<Remaining> {
    fn read(answer: Value) -> Result<Remaining, Fault> {
        let (code, mut answer) = Answer::open(answer)?;
        match code {
            0 => Ok(answer.duration()?.map_or(Remaining::Never, Remaining::Left)),
            1 => Ok(Remaining::Gone),
            _ => Err(unexpected()),
        }
    }
    Request::new(&source::REMAINING, keys, read).arg(token.to_string())
}
