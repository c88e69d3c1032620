//! What the queue refuses. A refused call changes nothing.

use std::{error::Error, fmt};

use crate::rules::CAPACITY_MAX;

/// A capacity that no lock can have (rule Q5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CapacityError {
    /// The capacity is 0: nobody could ever get in.
    Zero,
    /// The capacity is above [`CAPACITY_MAX`].
    AboveMax {
        /// The capacity asked for.
        capacity: u32,
    },
}

/// A weight that the lock can never grant (rule Q5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WeightError {
    /// The weight is 0: there would be nothing to hold.
    Zero,
    /// The weight is above the capacity, so it would block the queue for ever.
    AboveCapacity {
        /// The weight asked for.
        weight: u32,
        /// The capacity of the lock.
        capacity: u32,
    },
}

/// A request that neither got in nor joined the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EnqueueError {
    /// The weight can never be granted.
    Weight(WeightError),
    /// There is nothing to upgrade, or not in that direction.
    Hold(HoldError),
    /// All 2^32 − 1 places of the queue are taken.
    Full,
}

/// A change of what is held that does not match what is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HoldError {
    /// A hold of weight 0 does not exist, so it can be neither released nor kept.
    Zero,
    /// More permits were named than are held.
    NotHeld {
        /// The weight named by the caller.
        weight: u32,
        /// The permits that are held.
        held: u32,
    },
    /// A downgrade to a larger weight, or an upgrade to a smaller one.
    WrongWay {
        /// The weight held.
        from: u32,
        /// The weight asked for.
        to: u32,
    },
    /// There is no upgradable holder.
    NoUpgradable,
    /// The upgradable holder waits for its upgrade: cancel that first.
    UpgradePending,
    /// The count cannot be replaced while somebody is queued.
    WaitersQueued,
}

impl fmt::Display for CapacityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zero => f.write_str("a capacity of 0 lets nobody in"),
            Self::AboveMax { capacity } => {
                write!(f, "capacity {capacity} is above the maximum of {CAPACITY_MAX}")
            }
        }
    }
}

impl fmt::Display for WeightError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zero => f.write_str("a weight of 0 asks for nothing"),
            Self::AboveCapacity { weight, capacity } => {
                write!(f, "weight {weight} is above the capacity of {capacity}")
            }
        }
    }
}

impl fmt::Display for EnqueueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Weight(error) => error.fmt(f),
            Self::Hold(error) => error.fmt(f),
            Self::Full => f.write_str("every place in the queue is taken"),
        }
    }
}

impl fmt::Display for HoldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zero => f.write_str("a weight of 0 holds nothing"),
            Self::NotHeld { weight, held } => {
                write!(f, "{weight} permits were named, but {held} are held")
            }
            Self::WrongWay { from, to } => {
                write!(f, "a hold of {from} permits cannot be changed to {to} this way")
            }
            Self::NoUpgradable => f.write_str("there is no upgradable holder"),
            Self::UpgradePending => f.write_str("the upgradable holder waits for its upgrade"),
            Self::WaitersQueued => f.write_str("somebody is queued"),
        }
    }
}

impl Error for CapacityError {}

impl Error for WeightError {}

impl Error for EnqueueError {}

impl Error for HoldError {}

impl From<WeightError> for EnqueueError {
    fn from(error: WeightError) -> Self {
        Self::Weight(error)
    }
}

impl From<HoldError> for EnqueueError {
    fn from(error: HoldError) -> Self {
        Self::Hold(error)
    }
}
