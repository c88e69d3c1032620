//! Names of locks: checked when built, and their injective, printable form for stores (rule N3).

use std::{
    fmt,
    hash::{BuildHasher, Hash, Hasher, RandomState},
    str::FromStr,
    sync::{Arc, LazyLock},
};

use crate::{defaults::NAME_BYTES_MAX, error::InvalidArgument};

macro_rules! checked_name {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks `text`: 1 to 512 bytes of UTF-8, any characters.
            ///
            /// # Errors
            /// [`InvalidArgument`] when `text` is empty or too long.
            pub fn new(text: impl AsRef<str>) -> Result<Self, InvalidArgument> {
                let text = text.as_ref();
                if text.is_empty() {
                    return Err(InvalidArgument::new(concat!($what, " must not be empty")));
                }
                if text.len() > NAME_BYTES_MAX {
                    return Err(InvalidArgument::new(format!(
                        concat!($what, " of {} bytes is longer than {} bytes"),
                        text.len(),
                        NAME_BYTES_MAX
                    )));
                }
                Ok(Self(text.into()))
            }

            /// The name as it was given.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                // Control characters would break lines of logs and tables.
                write!(f, "{}", self.0.escape_debug())
            }
        }

        impl FromStr for $name {
            type Err = InvalidArgument;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::new(text)
            }
        }

        impl TryFrom<&str> for $name {
            type Error = InvalidArgument;

            fn try_from(text: &str) -> Result<Self, Self::Error> {
                Self::new(text)
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidArgument;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                Self::new(text)
            }
        }

        #[cfg(feature = "serde")]
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        #[cfg(feature = "serde")]
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                Self::new(text).map_err(serde::de::Error::custom)
            }
        }
    };
}

checked_name!(
    /// Keeps the locks of one application apart from those of another on the same store.
    Namespace,
    "a namespace"
);
checked_name!(
    /// The name of a lock within its namespace and kind.
    LockName,
    "a lock name"
);

impl Default for Namespace {
    /// The namespace `default`.
    fn default() -> Self {
        Self("default".into())
    }
}

/// The three kinds of lock. One name may be used by several kinds without interference (rule N1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum LockKind {
    /// One permit.
    Mutex,
    /// As many permits as the user gave it.
    Semaphore,
    /// As many permits as readers; a write takes them all.
    RwLock,
}

impl LockKind {
    /// All kinds, in the order in which reports list them.
    pub const ALL: [Self; 3] = [Self::Mutex, Self::Semaphore, Self::RwLock];

    /// The kind as stores spell it: `mutex`, `semaphore`, `rw-lock`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Mutex => "mutex",
            Self::Semaphore => "semaphore",
            Self::RwLock => "rw-lock",
        }
    }
}

impl fmt::Display for LockKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Messages say "read-write lock", as people do.
        f.write_str(match self {
            Self::Mutex => "mutex",
            Self::Semaphore => "semaphore",
            Self::RwLock => "read-write lock",
        })
    }
}

impl FromStr for LockKind {
    type Err = InvalidArgument;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or_else(|| {
            InvalidArgument::new(format!(
                "{text:?} is no kind of lock: mutex, semaphore or rw-lock"
            ))
        })
    }
}

/// What a store knows a lock by: namespace, kind and name, with the printable key and its hash made
/// once.
#[derive(Clone)]
pub struct LockId {
    namespace: Namespace,
    kind: LockKind,
    name: LockName,
    key: Box<str>,
    hash: u64,
}

impl LockId {
    /// Puts the three together.
    #[must_use]
    pub fn new(namespace: Namespace, kind: LockKind, name: LockName) -> Self {
        let mut key = String::with_capacity(namespace.0.len() + name.0.len() + 12);
        encode_into(&mut key, &namespace.0);
        key.push('/');
        key.push_str(kind.as_str());
        key.push('/');
        encode_into(&mut key, &name.0);
        let hash = hash_of(&key);
        Self { namespace, kind, name, key: key.into_boxed_str(), hash }
    }

    /// The namespace.
    #[must_use]
    pub const fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// The kind.
    #[must_use]
    pub const fn kind(&self) -> LockKind {
        self.kind
    }

    /// The name.
    #[must_use]
    pub const fn name(&self) -> &LockName {
        &self.name
    }

    /// The hash that was made with the id. It differs from process to process.
    pub(crate) const fn hash_value(&self) -> u64 {
        self.hash
    }

    /// The store key: printable ASCII, injective over namespace, kind and name. Letters, digits,
    /// `-`, `_` and `.` stand for themselves, every other byte is `%XX`, parts are joined by `/`.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }
}

/// The key is injective, so it alone tells two locks apart.
impl PartialEq for LockId {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other) || self.key == other.key
    }
}

impl Eq for LockId {}

/// One number that was made with the id: a map of locks need not hash the name at each request.
impl Hash for LockId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl fmt::Debug for LockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LockId({})", self.key)
    }
}

impl fmt::Display for LockId {
    /// As messages name a lock: `mutex "orders"`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} \"{}\"", self.kind, self.name)
    }
}

/// Seeded once per process: names may come from outside, and nobody there shall be able to pick
/// some that collide.
fn hash_of(key: &str) -> u64 {
    static SEED: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    SEED.hash_one(key)
}

/// One part of a store key by itself.
pub(crate) fn encode(part: &str) -> String {
    let mut key = String::with_capacity(part.len());
    encode_into(&mut key, part);
    key
}

fn encode_into(key: &mut String, part: &str) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for byte in part.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.') {
            key.push(char::from(byte));
        } else {
            key.push('%');
            key.push(char::from(HEX[usize::from(byte >> 4)]));
            key.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn keys_are_injective_and_printable() {
        let texts = [
            "a",
            "a/b",
            "a%2Fb",
            "{a}",
            "a:b",
            "a b",
            "a\nb",
            "\0",
            "🔒",
            "a%",
            "%",
            "mutex",
            "a/mutex/b",
            "é",
            "e\u{301}",
        ];
        let mut seen = HashSet::new();
        for namespace in texts {
            for name in texts {
                for kind in LockKind::ALL {
                    let id = LockId::new(
                        Namespace::new(namespace).unwrap(),
                        kind,
                        LockName::new(name).unwrap(),
                    );
                    assert!(id.key().bytes().all(|b| b.is_ascii_graphic()), "{}", id.key());
                    assert!(seen.insert(id.key().to_owned()), "{} twice", id.key());
                }
            }
        }
    }

    #[test]
    fn length_is_counted_in_bytes() {
        assert!(LockName::new("").is_err());
        assert!(LockName::new("x".repeat(512)).is_ok());
        assert!(LockName::new("x".repeat(513)).is_err());
        assert!(LockName::new("é".repeat(257)).is_err());
    }
}
