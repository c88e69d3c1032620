//! Tokens (bearer secrets), attempt ids, client ids and fencing tokens.

use std::{
    fmt,
    hash::{DefaultHasher, Hash, Hasher},
    str::FromStr,
    sync::Arc,
};

use rand::RngExt;

use crate::{defaults::TOKEN_BYTES_MAX, error::InvalidArgument};

/// Names one grant; who has it can extend, restore or release the grant (rule T5).
///
/// A token is a secret: `Display` prints it, `Debug` prints a short id that does not give it away.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Token(Repr);

/// A drawn token stays a number, so that making, cloning and comparing one allocates nothing. Text
/// that spells a number the same way *is* that number: one text, one representation.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Repr {
    Drawn(u128),
    Given(Arc<str>),
}

impl Token {
    /// Draws a new token: 128 random bits, printed as 32 hexadecimal digits.
    #[must_use]
    pub fn random() -> Self {
        Self(Repr::Drawn(rand::random()))
    }

    /// Draws a new token and a new attempt in one go.
    #[must_use]
    pub fn and_attempt() -> (Self, AttemptId) {
        let mut generator = rand::rng();
        (Self(Repr::Drawn(generator.random())), AttemptId(generator.random()))
    }

    /// Takes a caller's token.
    ///
    /// # Errors
    /// [`InvalidArgument`] unless it is 1 to 128 printable ASCII characters without spaces. The
    /// message does not repeat the text.
    pub fn new(text: impl AsRef<str>) -> Result<Self, InvalidArgument> {
        let text = text.as_ref();
        if text.is_empty() || text.len() > TOKEN_BYTES_MAX {
            return Err(InvalidArgument::new(format!(
                "a token of {} bytes is not in 1 ..= {TOKEN_BYTES_MAX}",
                text.len()
            )));
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(InvalidArgument::new(
                "a token must be printable ASCII characters without spaces",
            ));
        }
        Ok(Self(match drawn(text) {
            Some(number) => Repr::Drawn(number),
            None => Repr::Given(text.into()),
        }))
    }

    /// What stands for the token in logs, lists and metrics: eight hexadecimal digits that cannot
    /// be turned back.
    #[must_use]
    pub fn short_id(&self) -> String {
        let mut hasher = DefaultHasher::new();
        self.0.hash(&mut hasher);
        format!("{:08x}", hasher.finish() >> 32)
    }
}

/// The number that `text` spells in the one way `Display` spells it.
fn drawn(text: &str) -> Option<u128> {
    let canonical = text.len() == 32
        && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    canonical.then(|| u128::from_str_radix(text, 16).ok()).flatten()
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Drawn(number) => write!(f, "{number:032x}"),
            Repr::Given(text) => f.write_str(text),
        }
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token(#{})", self.short_id())
    }
}

impl FromStr for Token {
    type Err = InvalidArgument;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::new(text)
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for Token {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for Token {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::new(text).map_err(serde::de::Error::custom)
    }
}

/// Tells a retry of one request from a second use of its token (rule L7): 64 random bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AttemptId(pub u64);

impl AttemptId {
    /// Draws a new one.
    #[must_use]
    pub fn random() -> Self {
        Self(rand::random())
    }
}

/// Names one connection of a manager to a store: it lives or is proven dead.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u64);

impl ClientId {
    /// Draws a new one.
    #[must_use]
    pub fn random() -> Self {
        Self(rand::random())
    }
}

impl fmt::Display for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClientId({self})")
    }
}

/// A number that grows with every grant of one lock name, for storage to reject stale writers
/// (rule L8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(transparent))]
pub struct FencingToken(pub u64);

impl FencingToken {
    /// The number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_never_shows_the_secret() {
        let token = Token::new("hunter2").unwrap();
        assert!(!format!("{token:?}").contains("hunter2"));
        let drawn = Token::random();
        assert!(!format!("{drawn:?}").contains(&drawn.to_string()[..8]));
    }

    #[test]
    fn text_and_number_are_one_token() {
        let drawn = Token::random();
        assert_eq!(drawn, drawn.to_string().parse().unwrap());
        let upper = "0123456789ABCDEF0123456789ABCDEF";
        assert_ne!(Token::new(upper).unwrap(), Token::new(upper.to_lowercase()).unwrap());
        assert_eq!(Token::new(upper).unwrap().to_string(), upper);
    }

    #[test]
    fn bad_tokens_are_refused_without_repeating_them() {
        for bad in ["", "with space", "tab\t", "é", &"x".repeat(129)] {
            let message = Token::new(bad).unwrap_err().to_string();
            assert!(bad.is_empty() || !message.contains(bad));
        }
    }
}
