//! Giving back and leaving (rules Q4, T6, L7).

use leasehold_core::{AttemptId, ClientId, Fault, Released, StoreTime, Token};
use redis::Value;

use super::{
    answer::{Answer, unexpected},
    keys::LockKeys,
    request::Request,
    source,
    wire::Packed,
};

/// Copies of the token's acquisition that may still be on their way when it is released. Until the
/// last of them is stale, the release leaves a tombstone that makes them so at once (rule L7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copies {
    /// The attempt that they carry.
    pub attempt: AttemptId,
    /// The latest `not_after` of any of them.
    pub until: StoreTime,
}

/// Gives a grant back or takes a waiter out, whoever's it is, and says which. `client` is the one
/// that asks: the waiter that is taken out is woken when it is another's.
#[must_use]
pub fn release(
    keys: &LockKeys,
    token: &Token,
    client: ClientId,
    copies: Option<Copies>,
) -> Request<Released> {
    fn read(answer: Value) -> Result<Released, Fault> {
        let (code, mut answer) = Answer::open(answer)?;
        match code {
            0 => Ok(Released::Holder),
            1 => Ok(Released::Waiter(Some(answer.obstacle()?))),
            2 => Ok(Released::Unknown),
            _ => Err(unexpected()),
        }
    }
    let request = Request::new(&source::RELEASE, keys, read)
        .arg(token.to_string())
        .arg(&client.0.to_be_bytes());
    match copies {
        None => request,
        Some(Copies { attempt, until }) => {
            let packed = Packed::default().bytes(&attempt.0.to_be_bytes()).large(until.0);
            request.arg(packed.done())
        }
    }
}
