//! `cargo xtask soak`: what takes too long for CI.

use std::time::Instant;

use clap::{Args, ValueEnum};

use crate::Result;
use crate::asan;
use crate::loom;
use crate::repo;
use crate::servers;
use crate::steps::{Steps, cargo};

#[derive(Args)]
pub(crate) struct Options {
    /// Only this part; may be repeated.
    #[arg(long, value_enum, value_name = "PART")]
    only: Vec<Part>,
    /// Repeats the choices of an earlier history, which printed its seed.
    #[arg(long)]
    seed: Option<u64>,
    #[command(flatten)]
    servers: servers::Install,
}

/// A part of the soak, in the order in which they run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// The interleavings of the plain locks' atomic steps, with more preemptions than in CI.
    Loom,
    /// The tests of the queue and of the plain locks under AddressSanitizer, on a nightly toolchain.
    Asan,
    /// A history of processes that are killed and stopped, on a SQLite store.
    Sqlite,
    /// Histories on Redis and Valkey servers that are disturbed meanwhile; and all that goes wrong
    /// with servers once more, with crowds of full size and a million names.
    Redis,
}

pub(crate) fn run(options: &Options) -> Result<bool> {
    let mut steps = Steps::default();
    for part in options.parts() {
        match part {
            Part::Loom => loom::step(&mut steps, loom::PREEMPTIONS_SOAK)?,
            Part::Asan => asan::step(&mut steps)?,
            Part::Sqlite => history(&mut steps, "leasehold-historian", options.seed)?,
            Part::Redis => redis(&mut steps, options)?,
        };
    }
    Ok(steps.summary())
}

impl Options {
    fn parts(&self) -> Vec<Part> {
        let is_wanted = |part: &Part| self.only.is_empty() || self.only.contains(part);
        Part::value_variants().iter().copied().filter(is_wanted).collect()
    }
}

/// A program that makes a history, prints its own summary and fails on any violation.
fn history(steps: &mut Steps, program: &str, seed: Option<u64>) -> Result<bool> {
    println!("\n--- {program}");
    let start = Instant::now();
    let ended = cargo()
        .args(["run", "--release", "--locked", "--package", "leasehold-conformance"])
        .args(["--features", "sqlite", "--bin", program, "--"])
        .args(seed.map(|seed| seed.to_string()))
        .current_dir(repo::root())
        .status()?;
    Ok(steps.record(program.to_owned(), start.elapsed(), ended.success()))
}

/// What CI runs, at the size of a soak. A missing server fails.
fn redis(steps: &mut Steps, options: &Options) -> Result<bool> {
    if !servers::step(steps, options.servers) {
        return Ok(false);
    }
    let seed = options.seed.map(|seed| seed.to_string());
    let mut env = vec![("LEASEHOLD_SOAK", "1"), ("LEASEHOLD_REQUIRE_SERVERS", "1")];
    env.extend(seed.as_deref().map(|seed| ("LEASEHOLD_HISTORY_SEED", seed)));
    let mut passed = true;
    for test in ["histories", "faults", "fleet", "fleet_conformance", "fleet_histories"] {
        let args = ["test", "--release", "--locked", "-p", "leasehold-redis", "--test", test];
        passed &= steps.cargo(&args, &env)?;
    }
    Ok(passed)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    #[test]
    fn runs_every_part_once_or_those_that_are_asked_for() {
        let all = Line::parse_from(["soak"]).options.parts();
        assert_eq!(all, Part::value_variants());
        let two = Line::parse_from(["soak", "--only", "sqlite", "--only", "loom"]).options.parts();
        assert_eq!(two, [Part::Loom, Part::Sqlite]);
    }
}
