//! What ends many waits or grants at once (rules W5, N5).

use leasehold_core::{Destroyed, Fault, Generation};
use redis::Value;

use super::{
    answer::{Answer, unexpected},
    keys::LockKeys,
    request::Request,
    source,
    wire::Packed,
};

/// Rejects every waiter that is queued now, in queue order, and says how many.
#[must_use]
pub fn cancel_all(keys: &LockKeys, reason: &str) -> Request<u64> {
    fn read(answer: Value) -> Result<u64, Fault> {
        let (code, mut answer) = Answer::open(answer)?;
        match code {
            0 => answer.count(),
            _ => Err(unexpected()),
        }
    }
    Request::new(&source::CANCEL, keys, read).arg(reason)
}

/// Ends a generation, the current one when none is named.
#[must_use]
pub fn destroy(
    keys: &LockKeys,
    generation: Option<Generation>,
    reason: &str,
) -> Request<Destroyed> {
    fn read(answer: Value) -> Result<Destroyed, Fault> {
        let (code, mut answer) = Answer::open(answer)?;
        match code {
            0 => Ok(Destroyed::Now { next: answer.generation()? }),
            1 => Ok(Destroyed::Before),
            _ => Err(unexpected()),
        }
    }
    let packed = Packed::default().large_or_none(generation.map(|generation| generation.0));
    Request::new(&source::DESTROY, keys, read).arg(packed.done()).arg(reason)
}
