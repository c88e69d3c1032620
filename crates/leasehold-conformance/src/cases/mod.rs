//! What every store must do, by theme.

mod broken;
mod copies;
mod cross_process;
mod fencing;
mod generations;
mod leases;
mod liveness;
mod names;
mod orders;
mod queue;
mod shared;
mod tokens;
mod waiting;
mod watching;

use crate::Case;

/// All cases, in the order of the themes.
#[must_use]
pub fn cases() -> Vec<Case> {
    let themes = [
        queue::CASES,
        orders::CASES,
        waiting::CASES,
        leases::CASES,
        tokens::CASES,
        liveness::CASES,
        names::CASES,
        generations::CASES,
        watching::CASES,
        copies::CASES,
        fencing::CASES,
        broken::CASES,
        shared::CASES,
        cross_process::CASES,
    ];
    themes.concat()
}
