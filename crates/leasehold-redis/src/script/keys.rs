//! The keys of a lock and the channels of a client (rules N3, L9).

use std::fmt;

use leasehold_core::{ClientId, Fault, FaultKind, LockId, LockKind, LockName, Namespace};

/// Where in a server the locks lie: the prefix of all keys and channels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keyspace {
    prefix: String,
}

/// The keys of one lock, in one slot of a cluster: its state, its records,
/// what runs out, who waits.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct LockKeys {
    /// All of them end to end.
    text: Box<str>,
    state_len: usize,
}

const SUFFIXES: [&str; LockKeys::COUNT - 1] = [":t", ":h", ":q"];

impl Keyspace {
    /// A prefix of printable ASCII characters without braces or spaces, at most 64 of them; it may
    /// be empty. Braces would take the keys of a lock to different slots of a cluster.
    ///
    /// # Errors
    /// `Unsupported` when it is something else.
    pub fn new(prefix: &str) -> Result<Self, Fault> {
        let fits = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'{' | b'}');
        if prefix.len() > 64 || !prefix.bytes().all(fits) {
            return Err(Fault::new(
                FaultKind::Unsupported,
                "a key prefix has at most 64 printable ASCII characters, without spaces and braces",
            ));
        }
        Ok(Self { prefix: prefix.to_owned() })
    }

    /// The keys of a lock.
    #[must_use]
    pub fn lock(&self, id: &LockId) -> LockKeys {
        let state = format!("{}{{{}}}", self.prefix, id.key());
        let state_len = state.len();
        let mut text = state.clone();
        for suffix in SUFFIXES {
            text.push_str(&state);
            text.push_str(suffix);
        }
        LockKeys { text: text.into_boxed_str(), state_len }
    }

    /// The one channel of a client, on which every [`Push`](super::Push) to it comes.
    #[must_use]
    pub fn channel(&self, client: ClientId) -> String {
        format!("{}client:{client}", self.prefix)
    }

    /// Every key of this prefix begins so; for ACL rules and messages.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The pattern of SCAN that finds the locks of one namespace, or of all. It finds other keys of
    /// a lock too; [`lock_of`](Self::lock_of) tells them apart.
    #[must_use]
    pub fn scan_pattern(&self, namespace: Option<&Namespace>) -> String {
        let mut pattern = String::new();
        for character in self.prefix.chars() {
            if matches!(character, '*' | '?' | '[' | ']' | '\\') {
                pattern.push('\\');
            }
            pattern.push(character);
        }
        pattern.push('{');
        if let Some(namespace) = namespace {
            // A key begins with its namespace, whose encoded form has no special characters.
            let name = LockName::new("x").expect("a valid name");
            let id = LockId::new(namespace.clone(), LockKind::Mutex, name);
            let encoded = id.key().split('/').next().unwrap_or_default();
            pattern.push_str(encoded);
            pattern.push('/');
        }
        pattern.push_str("*}");
        pattern
    }

    /// The lock that has this key as its state; `None`: the key is none of ours, or another key of
    /// a lock.
    #[must_use]
    pub fn lock_of(&self, key: &[u8]) -> Option<LockId> {
        let text = std::str::from_utf8(key).ok()?;
        let inner =
            text.strip_prefix(self.prefix.as_str())?.strip_prefix('{')?.strip_suffix('}')?;
        let mut parts = inner.split('/');
        let (namespace, kind, name) = (parts.next()?, parts.next()?, parts.next()?);
        if parts.next().is_some() {
            return None;
        }
        let id = LockId::new(
            Namespace::new(decode(namespace)?).ok()?,
            kind.parse().ok()?,
            LockName::new(decode(name)?).ok()?,
        );
        // Only the one spelling is ours.
        (id.key() == inner).then_some(id)
    }
}

impl LockKeys {
    pub(super) const COUNT: usize = 4;

    /// The key of the state, which is the hash slot's key too.
    #[must_use]
    pub fn state(&self) -> &str {
        &self.text[..self.state_len]
    }

    /// All keys, in the order in which the scripts take them.
    pub fn all(&self) -> impl Iterator<Item = &str> {
        let mut start = 0;
        (0..Self::COUNT).map(move |index| {
            let suffix = index.checked_sub(1).map_or(0, |at| SUFFIXES[at].len());
            let key = &self.text[start..start + self.state_len + suffix];
            start += key.len();
            key
        })
    }
}

impl fmt::Debug for LockKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LockKeys").field(&self.state()).finish()
    }
}

/// Takes `%XX` back.
fn decode(part: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
            let value = digit(rest.next())? * 16 + digit(rest.next())?;
            bytes.push(u8::try_from(value).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXTS: [&str; 9] = ["a", "a/b", "a%2Fb", "{a}", "a:b*?", "a b\n", "\0", "🔒", "[%]\\"];

    #[test]
    fn n3_a_key_says_which_lock_it_is() {
        let keyspace = Keyspace::new("app[1]:").unwrap();
        for namespace in TEXTS {
            for name in TEXTS {
                for kind in LockKind::ALL {
                    let id = LockId::new(
                        Namespace::new(namespace).unwrap(),
                        kind,
                        LockName::new(name).unwrap(),
                    );
                    let keys = keyspace.lock(&id);
                    assert_eq!(keyspace.lock_of(keys.state().as_bytes()), Some(id));
                    let all: Vec<_> = keys.all().collect();
                    assert_eq!(all[0], keys.state());
                    for other in &all[1..] {
                        assert!(other.starts_with(keys.state()));
                        assert_eq!(keyspace.lock_of(other.as_bytes()), None);
                    }
                    assert_eq!(keys.state().matches(['{', '}']).count(), 2, "one hash tag");
                }
            }
        }
    }

    #[test]
    fn n3_what_is_none_of_ours_is_no_lock() {
        let keyspace = Keyspace::new("app:").unwrap();
        for key in [
            "app:",
            "app:{}",
            "app:{a/mutex}",
            "app:{a/mutex/b/c}",
            "app:{a/thing/b}",
            "{a/mutex/b}",
            "app:{a/mutex/%}",
            "app:{a/mutex/%41}",
            "app:{a/mutex/}",
        ] {
            assert_eq!(keyspace.lock_of(key.as_bytes()), None, "{key}");
        }
        assert_eq!(keyspace.lock_of(b"app:{a/mutex/\xff}"), None);
    }

    #[test]
    fn a_prefix_with_braces_is_refused() {
        for bad in ["{a}", "a b", "é", &"x".repeat(65)] {
            assert!(Keyspace::new(bad).is_err());
        }
        assert!(Keyspace::new("").is_ok());
    }
}
