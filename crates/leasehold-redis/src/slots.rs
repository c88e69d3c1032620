//! Which slot of a cluster a key lies in, and who has the slots.

use std::sync::Arc;

use redis::Value;

use crate::topology::Endpoint;

/// How many slots there are.
pub(crate) const SLOTS: u16 = 16_384;

/// The slot of a key: of what stands between its first braces, if there is something.
pub(crate) fn slot_of(key: &[u8]) -> u16 {
    let tag = key.iter().position(|byte| *byte == b'{').and_then(|open| {
        let rest = &key[open + 1..];
        let close = rest.iter().position(|byte| *byte == b'}')?;
        (close > 0).then(|| &rest[..close])
    });
    crc16(tag.unwrap_or(key)) % SLOTS
}

/// CRC-16/XMODEM.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ u16::from(*byte) << 8, |crc, _| {
            if crc & 0x8000 == 0 { crc << 1 } else { crc << 1 ^ 0x1021 }
        })
    })
}

/// Some slots in a row and the servers that have them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) first: u16,
    pub(crate) last: u16,
    pub(crate) master: Endpoint,
    pub(crate) replicas: Vec<Endpoint>,
}

/// What a node answers to CLUSTER SLOTS. One that does not know its own name is called by the name
/// that it was asked under.
pub(crate) fn read_slots(answer: &Value, asked: &Endpoint) -> Option<Vec<Range>> {
    let Value::Array(ranges) = answer else { return None };
    ranges.iter().map(|range| read_range(range, asked)).collect()
}

fn read_range(range: &Value, asked: &Endpoint) -> Option<Range> {
    let Value::Array(parts) = range else { return None };
    let [Value::Int(first), Value::Int(last), servers @ ..] = &parts[..] else { return None };
    let slot = |number: &i64| u16::try_from(*number).ok().filter(|slot| *slot < SLOTS);
    let mut servers = servers.iter().filter_map(|server| read_server(server, asked));
    let (first, last) = (slot(first)?, slot(last)?);
    Some(Range { first, last, master: servers.next()?, replicas: servers.collect() })
}

fn read_server(server: &Value, asked: &Endpoint) -> Option<Endpoint> {
    let Value::Array(parts) = server else { return None };
    let [name, Value::Int(port), ..] = &parts[..] else { return None };
    let name = match name {
        Value::BulkString(name) => std::str::from_utf8(name).ok()?,
        Value::SimpleString(name) => name,
        Value::Nil => "",
        _ => return None,
    };
    beside(name, u16::try_from(*port).ok()?, asked)
}

/// The server that an answer names; without a name it is on the host that answered.
fn beside(name: &str, port: u16, asked: &Endpoint) -> Option<Endpoint> {
    let name = match (name, asked) {
        ("", Endpoint::Host { name, .. }) => name.clone(),
        ("?", _) | ("", Endpoint::Socket(_)) => return None,
        _ => name.to_owned(),
    };
    Some(Endpoint::Host { name, port })
}

/// Where a server sends an asker: the slot and the server that is said to have it.
pub(crate) fn redirection(error: &redis::RedisError, asked: &Endpoint) -> Option<(u16, Endpoint)> {
    let (server, slot) = error.redirect_node()?;
    let (name, port) = server.rsplit_once(':')?;
    let endpoint = beside(name, port.parse().ok()?, asked)?;
    (slot < SLOTS).then_some((slot, endpoint))
}

/// Who has which slot, as far as is known.
#[derive(Debug)]
pub(crate) struct SlotMap<T> {
    owners: Box<[Option<Arc<T>>]>,
}

impl<T> Default for SlotMap<T> {
    fn default() -> Self {
        Self { owners: (0..SLOTS).map(|_| None).collect() }
    }
}

impl<T> SlotMap<T> {
    pub(crate) fn owner(&self, slot: u16) -> Option<&Arc<T>> {
        self.owners[usize::from(slot)].as_ref()
    }

    pub(crate) fn set(&mut self, slots: std::ops::RangeInclusive<u16>, owner: &Arc<T>) {
        for slot in slots {
            self.owners[usize::from(slot)] = Some(Arc::clone(owner));
        }
    }

    /// Whether somebody has a slot.
    pub(crate) fn has(&self, owner: &Arc<T>) -> bool {
        self.owners.iter().flatten().any(|known| Arc::ptr_eq(known, owner))
    }
}

#[cfg(test)]
mod tests {
    use redis::parse_redis_value;

    use super::*;

    fn host(name: &str, port: u16) -> Endpoint {
        Endpoint::Host { name: name.into(), port }
    }

    #[test]
    fn the_slot_is_that_of_the_hash_tag() {
        // What a server answers to CLUSTER KEYSLOT.
        assert_eq!(slot_of(b"123456789"), 12739);
        assert_eq!(slot_of(b"foo"), 12182);
        assert_eq!(slot_of(b"leasehold:{foo}:t"), 12182);
        assert_eq!(slot_of(b"{}foo"), slot_of(b"{}foo"));
        assert_ne!(slot_of(b"{}foo"), slot_of(b"foo"));
        assert_eq!(slot_of(b"a{foo}b{bar}"), 12182);
        assert_eq!(slot_of(b"foo{"), slot_of(b"foo{"));
        assert_eq!(slot_of(b""), 0);
    }

    #[test]
    fn a_node_tells_who_has_the_slots() {
        let answer = parse_redis_value(
            b"*2\r\n*4\r\n:0\r\n:99\r\n*3\r\n$1\r\na\r\n:7\r\n$1\r\nx\r\n*3\r\n$1\r\nb\r\n:8\r\n$1\r\ny\r\n\
              *3\r\n:100\r\n:100\r\n*3\r\n$0\r\n\r\n:9\r\n$1\r\nz\r\n",
        );
        let ranges = read_slots(&answer.unwrap(), &host("me", 1)).unwrap();
        let range = |first, last, master, replicas| Range { first, last, master, replicas };
        assert_eq!(ranges[0], range(0, 99, host("a", 7), vec![host("b", 8)]));
        assert_eq!(ranges[1], range(100, 100, host("me", 9), vec![]));
        assert_eq!(read_slots(&Value::Nil, &host("me", 1)), None);
    }

    #[test]
    fn a_node_sends_to_another() {
        let said = |line: &str| match parse_redis_value(line.as_bytes()).unwrap() {
            Value::ServerError(error) => redis::RedisError::from(error),
            other => panic!("{other:?}"),
        };
        let asked = host("me", 1);
        let to = |line| redirection(&said(line), &asked);
        assert_eq!(to("-MOVED 7 a:6381\r\n"), Some((7, host("a", 6381))));
        assert_eq!(to("-ASK 7 :6381\r\n"), Some((7, host("me", 6381))));
        assert_eq!(to("-MOVED 7 ::1:6381\r\n"), Some((7, host("::1", 6381))));
        assert_eq!(to("-MOVED 20000 a:1\r\n"), None);
        assert_eq!(to("-ERR no\r\n"), None);
    }
}
