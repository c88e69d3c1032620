//! What the server says, read in order and checked.

use std::time::Duration;

use leasehold_core::{Capacity, Fault, FaultKind, FencingToken, Generation, Grant, Obstacle, Ttl};
use redis::{RedisError, Value};

use super::wire::decode_info;

/// The layout that these scripts write and read (rule L9). The scripts have the same number.
pub(super) const LAYOUT: i64 = 2;

/// The values of one answer after its code: of a list, of a code alone, or of a grant, whose code is 0.
pub(super) struct Answer {
    values: std::vec::IntoIter<Value>,
}

/// What a script answers instead of anything else.
const OTHER_LAYOUT: i64 = -1;
const DAMAGED: i64 = -2;

impl Answer {
    /// Opens an answer and takes its code.
    pub(super) fn open(answer: Value) -> Result<(i64, Self), Fault> {
        let mut this = match answer {
            Value::Array(values) => Self { values: values.into_iter() },
            Value::Int(code) => return Ok((code, Self { values: Vec::new().into_iter() })),
            grant @ Value::BulkString(_) => {
                return Ok((0, Self { values: vec![grant].into_iter() }));
            }
            Value::ServerError(error) => return Err(fault_of(error.into())),
            _ => return Err(unexpected()),
        };
        match this.int()? {
            OTHER_LAYOUT => Err(Fault::new(
                FaultKind::Layout,
                format!(
                    "the lock was written in layout {}, this program writes layout {LAYOUT}",
                    this.int()?
                ),
            )),
            DAMAGED => Err(Fault::new(
                FaultKind::Corrupt,
                "what lies under the key of the lock is no lock",
            )),
            code => Ok((code, this)),
        }
    }

    pub(super) fn int(&mut self) -> Result<i64, Fault> {
        match self.values.next() {
            Some(Value::Int(int)) => Ok(int),
            _ => Err(unexpected()),
        }
    }

    pub(super) fn count(&mut self) -> Result<u64, Fault> {
        u64::try_from(self.int()?).map_err(|_| unexpected())
    }

    pub(super) fn number(&mut self) -> Result<u32, Fault> {
        u32::try_from(self.int()?).map_err(|_| unexpected())
    }

    pub(super) fn truth(&mut self) -> Result<bool, Fault> {
        Ok(self.int()? != 0)
    }

    /// Microseconds; a negative number is none.
    pub(super) fn duration(&mut self) -> Result<Option<Duration>, Fault> {
        Ok(u64::try_from(self.int()?).ok().map(Duration::from_micros))
    }

    pub(super) fn bytes(&mut self) -> Result<Vec<u8>, Fault> {
        match self.values.next() {
            Some(Value::BulkString(bytes)) => Ok(bytes),
            _ => Err(unexpected()),
        }
    }

    pub(super) fn text(&mut self) -> Result<String, Fault> {
        String::from_utf8(self.bytes()?).map_err(|_| unexpected())
    }

    /// An array within the answer.
    pub(super) fn list(&mut self) -> Result<Self, Fault> {
        match self.values.next() {
            Some(Value::Array(values)) => Ok(Self { values: values.into_iter() }),
            _ => Err(unexpected()),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    pub(super) fn capacity(&mut self) -> Result<Capacity, Fault> {
        Capacity::new(self.number()?).map_err(|_| unexpected())
    }

    pub(super) fn generation(&mut self) -> Result<Generation, Fault> {
        Ok(Generation(self.count()?))
    }

    /// What the scripts pack as `GRANT`.
    pub(super) fn grant(&mut self) -> Result<Grant, Fault> {
        let bytes = self.bytes()?;
        let mut rest = bytes.as_slice();
        let fencing = FencingToken(unsigned(double(&mut rest)?)?);
        let remaining = unsigned(double(&mut rest)?).ok().map(Duration::from_micros);
        let generation = Generation(unsigned(double(&mut rest)?)?);
        let ttl = match u32::from_be_bytes(take(&mut rest)?) {
            0 => None,
            ms => Some(Ttl::new(Duration::from_millis(ms.into())).map_err(|_| unexpected())?),
        };
        let capacity =
            Capacity::new(u32::from_be_bytes(take(&mut rest)?)).map_err(|_| unexpected())?;
        Ok(Grant { fencing, remaining, ttl, at: None, generation, capacity })
    }

    pub(super) fn obstacle(&mut self) -> Result<Obstacle, Fault> {
        let ahead = Some(self.count()?);
        let held_for = self.duration()?;
        let info = self.bytes()?;
        let holder = match held_for {
            Some(held_for) => Some((decode_info(&info)?, held_for)),
            None => None,
        };
        Ok(Obstacle { holder, ahead })
    }
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N], Fault> {
    let (first, rest) = bytes.split_first_chunk().ok_or_else(unexpected)?;
    *bytes = rest;
    Ok(*first)
}

fn double(bytes: &mut &[u8]) -> Result<f64, Fault> {
    Ok(f64::from_be_bytes(take(bytes)?))
}

/// A count or a time; what is below zero is none.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is checked")]
fn unsigned(number: f64) -> Result<u64, Fault> {
    // Exact up to there, and nothing counts further.
    if (0.0..9_007_199_254_740_992.0).contains(&number) {
        Ok(number as u64)
    } else {
        Err(unexpected())
    }
}

#[cold]
pub(super) fn unexpected() -> Fault {
    Fault::new(FaultKind::Corrupt, "the server's answer is not one that the scripts give")
}

/// What an error of the server, or of the way to it, means to a caller. Errors that only ask for
/// another try (NOSCRIPT, MOVED, LOADING and the like) are `Unavailable` here; whoever sends knows
/// them before.
#[must_use]
pub fn fault_of(error: RedisError) -> Fault {
    let code = error.code().unwrap_or_default().to_owned();
    let text = error.to_string();
    // Errors of a command inside of a script come with the command's own code in 7.0, and as text
    // within another error before.
    let says = |word: &str| {
        code == word || ["-", " "].iter().any(|before| text.contains(&format!("{before}{word} ")))
    };
    let (kind, message) = if says("OOM") {
        (FaultKind::Full, "the server has no memory left")
    } else if ["NOPERM", "NOAUTH", "WRONGPASS", "DENIED"].into_iter().any(says) {
        (FaultKind::Denied, "the server denies it")
    } else if says("WRONGTYPE") {
        (FaultKind::Corrupt, "a key of the lock is in use for something else")
    } else if error.is_io_error() || error.is_timeout() || error.is_connection_dropped() {
        (FaultKind::Unavailable, "the server cannot be reached")
    } else {
        (FaultKind::Unavailable, "the server cannot do it now")
    };
    Fault::new(kind, message).with_source(error)
}
