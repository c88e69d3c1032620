//! What is handed to another process: a token and where it belongs (rule T8).

use std::{fmt, str::FromStr};

use crate::{LockId, LockKind, LockName, Namespace, Token, error::InvalidArgument, name::encode};

/// The version of the text form.
const VERSION: &str = "lh1";

/// A grant to be handed over: its token, and the kind, namespace and name of its lock.
///
/// `Display` prints it for another process to parse: printable ASCII without spaces or quotes. It
/// contains the token, so it is a secret; `Debug` shows a short id instead.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Ticket {
    lock: LockId,
    token: Token,
}

impl Ticket {
    /// Puts the two together.
    #[must_use]
    pub const fn new(lock: LockId, token: Token) -> Self {
        Self { lock, token }
    }

    /// The lock.
    #[must_use]
    pub const fn lock(&self) -> &LockId {
        &self.lock
    }

    /// The token.
    #[must_use]
    pub const fn token(&self) -> &Token {
        &self.token
    }
}

impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{VERSION}/{}/{}", self.lock.key(), encode(&self.token.to_string()))
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ticket({}, #{})", self.lock, self.token.short_id())
    }
}

impl FromStr for Ticket {
    type Err = InvalidArgument;

    /// # Errors
    /// [`InvalidArgument`] unless `text` is a ticket of this version. The message does not repeat
    /// the text.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || InvalidArgument::new("this is no ticket of a lease");
        let parts: Vec<&str> = text.trim().split('/').collect();
        let [version, namespace, kind, name, token] = parts[..] else { return Err(invalid()) };
        if version != VERSION {
            return Err(InvalidArgument::new("the ticket is of another version"));
        }
        let part = |text| decode(text).ok_or_else(invalid);
        let lock = LockId::new(
            Namespace::new(part(namespace)?)?,
            kind.parse::<LockKind>().map_err(|_| invalid())?,
            LockName::new(part(name)?)?,
        );
        Ok(Self { lock, token: Token::new(part(token)?)? })
    }
}

impl TryFrom<&str> for Ticket {
    type Error = InvalidArgument;

    fn try_from(text: &str) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl TryFrom<&String> for Ticket {
    type Error = InvalidArgument;

    fn try_from(text: &String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl TryFrom<String> for Ticket {
    type Error = InvalidArgument;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<&Self> for Ticket {
    fn from(ticket: &Self) -> Self {
        ticket.clone()
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for Ticket {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for Ticket {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Turns `%XX` back; `None` for what `encode` never gives.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit =
            |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        bytes.push(digit(rest.next()?)? << 4 | digit(rest.next()?)?);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tickets_survive_the_way_through_text() {
        for name in ["orders", "a/b", "{x}:y z", "🔒\n\0", "%2F"] {
            for token in ["mine", "a/b%\"'$", "0123456789abcdef0123456789abcdef"] {
                let lock = LockId::new(
                    Namespace::new("a b").unwrap(),
                    LockKind::Semaphore,
                    LockName::new(name).unwrap(),
                );
                let ticket = Ticket::new(lock, Token::new(token).unwrap());
                let text = ticket.to_string();
                let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.%/".contains(&b);
                assert!(text.bytes().all(plain), "{text}");
                assert_eq!(text.parse::<Ticket>().unwrap(), ticket);
                assert!(!format!("{ticket:?}").contains(token));
            }
        }
    }

    #[test]
    fn what_is_no_ticket_is_refused_without_repeating_it() {
        for bad in [
            "",
            "hunter2",
            "lh1/a/mutex/b",
            "lh2/a/mutex/b/c",
            "lh1/a/lock/b/c",
            "lh1/a/mutex/%zz/c",
        ] {
            let error = bad.parse::<Ticket>().unwrap_err().to_string();
            assert!(bad.is_empty() || !error.contains(bad), "{error}");
        }
    }
}
