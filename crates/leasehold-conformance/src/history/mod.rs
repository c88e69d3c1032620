//! Histories: real processes on a real store take turns at random locks while they are killed and
//! stopped and the store is disturbed; every critical section is logged, and the logs are checked
//! afterwards.
//!
//! A store's author gives a [`Stage`] and a test target without Rust's own harness:
//!
//! ```no_run
//! use std::{path::Path, sync::Arc};
//!
//! use leasehold_conformance::history;
//! use leasehold_core::{Backend, Fault, MemoryBackend};
//!
//! // Yours opens the store at this place, which all processes of the history share.
//! fn connect(_place: &Path) -> Result<Arc<dyn Backend>, Fault> {
//!     Ok(Arc::new(MemoryBackend::new()))
//! }
//!
//! fn main() {
//!     history::main(&history::Embedded { connect });
//! }
//! ```
//!
//! The program starts itself as each process of the history ([`main()`] sees to it), so nothing has
//! to be built or found first. What is recorded is what goes through the [`Backend`] trait
//! ([`Recorder`]), so the logs show the locks of the crate `leasehold` at work, renewal included.
//! Times are those of the boot-time clock, which all processes share. What must hold is told in
//! [`ViolationKind`]; [`check()`] also takes events from elsewhere.
//!
//! A seed repeats the choices, not the moments: `LEASEHOLD_HISTORY_SEED` sets it for [`main()`].
//!
//! [`Backend`]: leasehold_core::Backend

mod check;
mod child;
mod drive;
mod embedded;
mod event;
mod log;
mod plan;
mod program;
mod recorder;
mod rogue;
mod stage;
mod storage;
mod story;
mod summary;
mod worker;

#[cfg(test)]
mod planted;

pub use check::{Limits, Report, Violation, ViolationKind, check};
pub use drive::{Outcome, drive};
pub use embedded::Embedded;
pub use event::{Doing, Event, Found, GaveUp, Id, What};
pub use log::{Log, read};
pub use plan::Size;
pub use program::{History, main, main_of, soak, take_part};
pub use recorder::Recorder;
pub use stage::{Disturbance, Forgets, Stage};
pub use summary::Summary;
