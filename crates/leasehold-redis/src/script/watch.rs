//! Watching without acquiring (rules U).

use leasehold_core::{Fault, Generation, Token, WatchFor};
use redis::Value;

use super::{
    acquire::{Sender, Waiting},
    answer::{Answer, unexpected},
    keys::LockKeys,
    request::Request,
    source,
    wire::Packed,
};

/// The answer to [`watch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchReply {
    /// What it waits for is, or has become, true; the watcher is forgotten.
    Done,
    /// Not yet.
    Waiting(Waiting),
    /// The handle is of a generation that was destroyed.
    Destroyed,
}

/// Registers a watcher, or asks what became of it. It counts as a beat. Of the sender, the client
/// and the wake count.
#[must_use]
pub fn watch(
    keys: &LockKeys,
    generation: Option<Generation>,
    id: &Token,
    what: WatchFor,
    sender: Sender,
) -> Request<WatchReply> {
    fn read(answer: Value) -> Result<WatchReply, Fault> {
        let (code, mut answer) = Answer::open(answer)?;
        match code {
            0 => Ok(WatchReply::Done),
            1 => Ok(WatchReply::Waiting(answer.waiting()?)),
            2 => Ok(WatchReply::Destroyed),
            _ => Err(unexpected()),
        }
    }
    let code = match what {
        WatchFor::Unlocked => 1,
        WatchFor::AnyPermit => 2,
        WatchFor::Readable => 3,
        WatchFor::Destroyed => 4,
    };
    let packed = Packed::default()
        .byte(code)
        .bytes(&sender.client.0.to_be_bytes())
        .large(sender.wake.0)
        .large_or_none(generation.map(|generation| generation.0));
    Request::new(&source::WATCH, keys, read).arg(id.to_string()).arg(packed.done())
}

/// Forgets a watcher.
#[must_use]
pub fn unwatch(keys: &LockKeys, id: &Token) -> Request<()> {
    fn read(answer: Value) -> Result<(), Fault> {
        match Answer::open(answer)?.0 {
            0 => Ok(()),
            _ => Err(unexpected()),
        }
    }
    Request::new(&source::UNWATCH, keys, read).arg(id.to_string())
}
