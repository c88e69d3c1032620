//! A history as a test and as a program.
#![allow(clippy::print_stdout, reason = "a history says its seed and its figures")]

use std::{
    collections::BTreeMap,
    env, fmt,
    hash::{BuildHasher as _, RandomState},
    process::ExitCode,
};

use libtest_mimic::{Arguments, Completion, Trial};

use super::{
    check::ViolationKind,
    child::ASSIGNMENT_VARIABLE,
    drive::{Outcome, drive},
    plan::{Assignment, Size},
    stage::Stage,
    worker,
};

/// Sets the seed of a history that runs as a test.
const SEED_VARIABLE: &str = "LEASEHOLD_HISTORY_SEED";
/// More violations than this say nothing new.
const SHOWN_MAX: usize = 20;

/// A history that runs as a test.
#[derive(Clone, Copy)]
pub struct History {
    /// The kind of store, for the list of trials; may be empty.
    pub kind: &'static str,
    /// The store.
    pub stage: &'static (dyn Stage + 'static),
    /// How much has to happen.
    pub size: Size,
    /// Why it cannot run here. It is then listed as ignored, with this reason.
    pub missing: Option<&'static str>,
}

impl fmt::Debug for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("History");
        shown.field("stage", &self.stage.name()).field("size", &self.size).finish_non_exhaustive()
    }
}

/// Runs a history of CI's size as one trial, with the harness's arguments and summary line, and ends
/// the process; or runs as a process of a history.
///
/// # Panics
/// When the seed in the environment is no number.
pub fn main(stage: &'static (dyn Stage + 'static)) -> ! {
    main_of(&[History { kind: "", stage, size: Size::CI, missing: None }])
}

/// The same for several histories, all at the same time. Their processes find their store by the
/// first one's [`connect`](Stage::connect).
///
/// # Panics
/// When the seed in the environment is no number, or without a history.
pub fn main_of(histories: &[History]) -> ! {
    take_part(histories.first().expect("there is a history").stage);
    let trial = |history: &History| {
        let History { kind, stage, size, missing } = *history;
        let run = move || {
            if let Some(missing) = missing {
                return Ok(Completion::ignored_with(format!("not run here: {missing}")));
            }
            let seed = env::var(SEED_VARIABLE).ok().map(|text| text.parse().expect("a number"));
            if run(stage, size, seed) { Ok(Completion::Completed) } else { Err("see above".into()) }
        };
        Trial::ignorable_test("processes_that_are_killed_and_stopped_take_turns", run)
            .with_kind(kind)
    };
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(histories.len());
    libtest_mimic::run(&arguments, histories.iter().map(trial).collect()).exit()
}

/// Runs a history of the soak's size and prints its summary; a failure is anything that must not
/// be. Without a seed one is drawn and printed. Or runs as a process of a history.
pub fn soak(stage: &dyn Stage, seed: Option<u64>) -> ExitCode {
    take_part(stage);
    if run(stage, Size::SOAK, seed) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs as a process of a history and ends with it, when [`drive()`](super::drive()) has started
/// this program as one; else does nothing. A program that calls that calls this first.
///
/// # Panics
/// When the store cannot be opened.
pub fn take_part(stage: &dyn Stage) {
    if let Ok(text) = env::var(ASSIGNMENT_VARIABLE) {
        let assignment: Assignment = serde_json::from_str(&text).expect("an assignment");
        let backend = stage.connect(&assignment.address).expect("the store opens");
        worker::live(&assignment, backend);
    }
}

fn run(stage: &dyn Stage, size: Size, seed: Option<u64>) -> bool {
    let seed = seed.unwrap_or_else(|| RandomState::new().hash_one(()));
    println!("{}: history with seed {seed}", stage.name());
    let mut directory = tempfile::tempdir().expect("a directory for the history");
    let outcome = drive(stage, directory.path(), size, seed);
    println!("{}:", stage.name());
    show(&outcome);
    if !outcome.is_good() {
        directory.disable_cleanup(true);
        println!("the logs stay in {}", directory.path().display());
    }
    outcome.is_good()
}

fn show(outcome: &Outcome) {
    let Outcome { seed, report, findings, disturbed, took } = outcome;
    println!("{}", report.summary);
    let disturbed: Vec<String> =
        disturbed.iter().map(|(what, count)| format!("{count} × {what}")).collect();
    println!("the store: {}", disturbed.join(", "));
    if report.summary.failovers > 0 {
        let mut explained = BTreeMap::<ViolationKind, usize>::new();
        for violation in &report.explained {
            *explained.entry(violation.kind).or_default() += 1;
        }
        println!("lost by failovers, as asynchronous replication allows: {explained:?}");
    }
    for violation in report.violations.iter().take(SHOWN_MAX) {
        println!("VIOLATION {violation}");
    }
    for finding in findings {
        println!("FINDING {finding}");
    }
    println!(
        "{} violations, {} findings in {:.1} s (seed {seed})",
        report.violations.len(),
        findings.len(),
        took.as_secs_f64()
    );
}
