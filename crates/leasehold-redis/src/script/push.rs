//! What a client finds in its channel (rule L5). A push is a hint: it says whom to wake, and the
//! waiter asks.

use std::time::Duration;

/// What a client knows one of its waiters or watchers by: a number of its own choosing, below
/// 2^53, that it does not use again for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WakeId(pub u64);

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Push {
    /// These should ask now: granted, rejected, taken out or done.
    Look(Vec<WakeId>),
    /// These should look again after this long: a grant runs out then, and they are to see it.
    LookIn(Duration, Vec<WakeId>),
}

/// Reads a message: `w ID…`, or `t MICROSECONDS ID…`. `None`: it is none of ours.
#[must_use]
pub fn parse_push(message: &[u8]) -> Option<Push> {
    let mut words = std::str::from_utf8(message).ok()?.split(' ');
    let verb = words.next()?;
    let after = match verb {
        "w" => None,
        "t" => Some(Duration::from_micros(words.next()?.parse().ok()?)),
        _ => return None,
    };
    let wakes = words.map(|word| word.parse().map(WakeId)).collect::<Result<Vec<_>, _>>().ok()?;
    Some(match after {
        None => Push::Look(wakes),
        Some(after) => Push::LookIn(after, wakes),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l5_pushes_are_read_and_others_messages_are_not() {
        assert_eq!(parse_push(b"w 1 22"), Some(Push::Look(vec![WakeId(1), WakeId(22)])));
        let in_a_second = Push::LookIn(Duration::from_secs(1), vec![WakeId(7)]);
        assert_eq!(parse_push(b"t 1000000 7"), Some(in_a_second));
        for other in [&b""[..], b"w x", b"t", b"t x 7", b"hello", b"w -1", b"\xff"] {
            assert_eq!(parse_push(other), None);
        }
    }
}
