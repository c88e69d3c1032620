//! Values of options, checked while they are read.

use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use leasehold::{Capacity, LockKind, LockName, Ticket, Ttl, Weight};

use crate::duration;

pub(super) fn capacity(text: &str) -> Result<Capacity, String> {
    Capacity::new(number(text)?).map_err(|error| error.to_string())
}

pub(super) fn weight(text: &str) -> Result<Weight, String> {
    Weight::new(number(text)?).map_err(|error| error.to_string())
}

pub(super) fn ttl(text: &str) -> Result<Ttl, String> {
    // 2^31−1 ms are 24.86 days.
    Ttl::new(duration::parse(text)?).map_err(|_| "it must be from 1ms to 24.8 days".to_owned())
}

/// A name. A ticket is none, though it could be: names are public, and a ticket is a secret (T5).
pub(super) fn name(text: &str) -> Result<LockName, String> {
    if text.parse::<Ticket>().is_ok() {
        return Err("a ticket is given to renew, release and adopt; it is no name".to_owned());
    }
    LockName::new(text).map_err(|error| error.to_string())
}

/// A duration that is not zero.
pub(super) fn interval(text: &str) -> Result<Duration, String> {
    match duration::parse(text)? {
        Duration::ZERO => Err("it must be longer than 0".to_owned()),
        interval => Ok(interval),
    }
}

/// A kind of lock; a typo is told with the right word.
pub(super) fn kind() -> impl TypedValueParser<Value = LockKind> {
    PossibleValuesParser::new(LockKind::ALL.map(LockKind::as_str))
        .map(|text| text.parse().expect("it is one of the kinds"))
}

fn number(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("{text:?} is no number of permits"))
}
