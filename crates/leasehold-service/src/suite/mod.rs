//! What every adapter must hold to, as cases (feature `suite`): for authors of adapters.
//!
//! ```no_run
//! use leasehold_service::{EntryConfig, suite::{self, Subject}};
//!
//! struct Mine;
//!
//! impl Subject for Mine {
//!     fn entry(&self, store: &str) -> EntryConfig {
//!         EntryConfig::new("mine").connection("path", format!("/tmp/mine/{store}"))
//!     }
//! }
//!
//! suite::run_every(&Mine, |case| {
//!     tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(case);
//! });
//! ```

mod bench;
mod ending;
mod leaving;
mod runs;
mod turns;

use std::{
    sync::mpsc::{RecvTimeoutError, channel},
    thread,
    time::Duration,
};

pub use bench::{Bench, Subject};

use crate::adapter::{BoxFuture, Reach};

/// One statement about every adapter.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The acceptance line and the statement.
    pub name: &'static str,
    /// The adapters it is about; `None`: all.
    pub reach: Option<Reach>,
    /// Proves it, or panics.
    pub run: fn(Bench) -> BoxFuture<'static, ()>,
}

/// All cases.
pub fn cases() -> impl Iterator<Item = Case> {
    [turns::CASES, runs::CASES, leaving::CASES, ending::CASES].into_iter().flatten().copied()
}

/// No case takes longer on a machine that works.
const LIMIT: Duration = Duration::from_secs(120);

/// Runs every case, each on a thread of its own by `block_on` and on a fresh store.
///
/// # Panics
/// With the names of the cases that failed.
pub fn run_every(subject: &'static dyn Subject, block_on: BlockOn) {
    let about = cases().filter(|case| case.reach.is_none_or(|reach| reach == subject.reach()));
    let outcomes: Vec<_> = about.map(|case| run(subject, case, block_on)).collect();
    assert!(!outcomes.is_empty(), "no case was run");
    let failed: Vec<_> = outcomes.iter().filter_map(|outcome| outcome.as_ref().err()).collect();
    assert!(failed.is_empty(), "{} cases, these failed: {failed:#?}", outcomes.len());
}

/// Runs a case's future to its end.
pub type BlockOn = fn(BoxFuture<'static, ()>);

/// Runs one case.
///
/// # Errors
/// The name of a case that failed, or that did not end within two minutes; what failed was printed
/// by its panic.
///
/// # Panics
/// When there is no thread to be had.
pub fn run(subject: &'static dyn Subject, case: Case, block_on: BlockOn) -> Result<(), String> {
    let (done, outcome) = channel();
    let bench = Bench::new(subject, case.name);
    let worker = thread::Builder::new().name(case.name.into()).spawn(move || {
        block_on((case.run)(bench));
        // Nobody waits for a case that has taken too long.
        let _ = done.send(());
    });
    worker.expect("a thread for the case");
    outcome.recv_timeout(LIMIT).map_err(|error| match error {
        RecvTimeoutError::Disconnected => case.name.to_owned(),
        RecvTimeoutError::Timeout => format!("{} did not end within {LIMIT:?}", case.name),
    })
}

macro_rules! case {
    ($name:ident) => {
        crate::suite::case!($name, None)
    };
    ($name:ident, $reach:expr) => {
        crate::suite::Case {
            name: stringify!($name),
            reach: $reach,
            run: |bench| Box::pin($name(bench)),
        }
    };
}

use case;
