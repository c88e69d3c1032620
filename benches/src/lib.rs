//! What the suites share: rows of contenders that are measured in turns, tasks
//! that compete, further processes, and counting wake-ups.
//!
//! Every contender of a row runs once per round, so that whatever the machine does meanwhile hits
//! all of them; a row shows medians over the rounds. Figures of one run can be compared, figures of
//! different runs cannot. Nothing here asserts a speed.

#![forbid(unsafe_code)]

mod child;
mod compete;
mod plot;
mod report;
mod row;
mod wake_ups;

pub use crate::{
    child::{Child, Orders, child_arguments, monotonic_ns, say},
    compete::{Contest, Turns, compete, runtime},
    report::{Budget, Contenders, Place, Report},
    row::{Better, Goal, Row, Unit, median, quantile},
    wake_ups::WakeUps,
};

/// What suites return.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;
