//! `cargo xtask loom`: every interleaving of the plain locks' atomic steps.
//!
//! A cfg of its own, since `--cfg loom` changes dependencies too, and a target folder of its own,
//! since another cfg builds everything anew. Fails if no test ran: a job that finds nothing to do
//! proves nothing.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use clap::Args;

use crate::Result;
use crate::repo;
use crate::steps::{Steps, cargo};

/// How often a thread may be interrupted in CI.
pub(crate) const PREEMPTIONS_CI: u8 = 2;

/// How often a thread may be interrupted in the soak.
pub(crate) const PREEMPTIONS_SOAK: u8 = 3;

#[derive(Args)]
pub(crate) struct Options {
    /// How often a thread may be interrupted: 2 in CI, 3 in the soak.
    #[arg(long, value_name = "N", default_value_t = PREEMPTIONS_CI)]
    preemptions: u8,
}

pub(crate) fn run(options: &Options) -> Result<bool> {
    let mut steps = Steps::default();
    step(&mut steps, options.preemptions)?;
    Ok(steps.summary())
}

/// As one step among others.
pub(crate) fn step(steps: &mut Steps, preemptions: u8) -> Result<bool> {
    let name = format!("loom tests of leasehold-sync, up to {preemptions} preemptions");
    println!("\n--- {name}");
    let start = Instant::now();
    let mut running = command(preemptions).stdout(Stdio::piped()).spawn()?;
    let passed = count_passed(&mut running)?;
    let succeeded = running.wait()?.success();
    if passed == 0 {
        println!("no loom test passed: the cfg or the test file is missing");
    }
    Ok(steps.record(name, start.elapsed(), succeeded && passed > 0))
}

fn command(preemptions: u8) -> Command {
    let mut command = cargo();
    command
        .args(["test", "--package", "leasehold-sync", "--test", "loom", "--test", "loom_keyed"])
        .arg("--locked")
        .args(["--target-dir", "target/loom"])
        .current_dir(repo::root())
        .env("RUSTFLAGS", "--cfg leasehold_loom")
        // Many times as fast; assertions and overflow checks stay on.
        .env("CARGO_PROFILE_TEST_OPT_LEVEL", "3")
        .env("LOOM_MAX_PREEMPTIONS", preemptions.to_string())
        .env_remove("CARGO_ENCODED_RUSTFLAGS");
    command
}

/// Prints what a run of tests says, and adds up how many of them passed.
pub(crate) fn count_passed(running: &mut Child) -> Result<u64> {
    let output = running.stdout.take().ok_or("the output of cargo was not piped")?;
    let mut passed = 0;
    for line in BufReader::new(output).lines() {
        let line = line?;
        println!("{line}");
        passed += passed_in(&line).unwrap_or(0);
    }
    Ok(passed)
}

/// The number of passed tests in a summary of libtest; `None` in any other line.
fn passed_in(line: &str) -> Option<u64> {
    let counts = line.strip_prefix("test result: ")?.split_once(". ")?.1;
    counts.split_once(" passed")?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_the_tests_that_libtest_says_passed() {
        let line = "test result: ok. 14 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out";
        assert_eq!(passed_in(line), Some(14));
        let line = "test result: FAILED. 0 passed; 3 failed; 0 ignored";
        assert_eq!(passed_in(line), Some(0));
        assert_eq!(passed_in("running 14 tests"), None);
        assert_eq!(passed_in("test cancel_against_grant ... ok"), None);
    }
}
