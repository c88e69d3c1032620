//! The steps of a random program.

use proptest::prelude::*;

#[derive(Clone, Debug)]
pub(crate) enum Step {
    Enqueue {
        weight: u32,
        upgradable: bool,
    },
    Try {
        weight: u32,
        upgradable: bool,
    },
    /// Release of any holder, by any of the ways there are.
    Release {
        holder: usize,
    },
    ReleaseTooMuch {
        extra: u32,
    },
    Downgrade {
        holder: usize,
        to: u32,
    },
    Upgrade {
        to: u32,
    },
    /// Cancel of any waiter there ever was, so mostly of one that has left.
    CancelAnyKey {
        key: usize,
    },
    Cancel {
        waiter: usize,
    },
    Resize {
        capacity: u32,
    },
    Drain,
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    // Weights and capacities reach into what is refused: 0 and above the capacity.
    let weight = || prop_oneof![3 => Just(1), 3 => 1..4_u32, 2 => 0..10_u32];
    let request = || (weight(), prop::bool::weighted(0.3));
    let any = || 0..1000_usize;
    let enqueue = |(weight, upgradable)| Step::Enqueue { weight, upgradable };
    let attempt = |(weight, upgradable)| Step::Try { weight, upgradable };
    prop_oneof![
        60 => request().prop_map(enqueue),
        15 => request().prop_map(attempt),
        35 => any().prop_map(|holder| Step::Release { holder }),
        5 => (0..9_u32).prop_map(|extra| Step::ReleaseTooMuch { extra }),
        10 => (any(), weight()).prop_map(|(holder, to)| Step::Downgrade { holder, to }),
        15 => weight().prop_map(|to| Step::Upgrade { to }),
        10 => any().prop_map(|key| Step::CancelAnyKey { key }),
        25 => any().prop_map(|waiter| Step::Cancel { waiter }),
        5 => (0..10_u32).prop_map(|capacity| Step::Resize { capacity }),
        1 => Just(Step::Drain),
    ]
}
