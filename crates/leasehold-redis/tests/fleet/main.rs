//! Many servers that are one store, and what fails between them, at the level of `leasehold`'s
//! handles: a cluster of three masters with a replica of the first, and a service that sentinels
//! watch over. What was replicated goes on after a failover; what was not is told as lost, and
//! fencing tokens keep who lost it from writing.
//!
//! One kind of server for each test here, every kind with `LEASEHOLD_SOAK=1`. Where a server is
//! missing, its trials are listed as ignored; where servers are required (`CI=true` or
//! `LEASEHOLD_REQUIRE_SERVERS=1`) they fail.

#![forbid(unsafe_code)]

mod failovers;
mod partitions;
mod replicas;
mod restarts;
mod scene;
mod slots;

use std::{env, time::Duration};

use libtest_mimic::{Arguments, Completion, Trial};
use test_servers::Flavor;
use tokio::runtime::Runtime;

/// A name, and what is tested on one kind of server, with a fleet of its own.
type Test = (&'static str, fn(Flavor));

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);
/// Most trials wait for a time to pass, so many of them run at a time.
const AT_A_TIME: usize = 8;

fn main() {
    let tests =
        [failovers::TESTS, partitions::TESTS, slots::TESTS, replicas::TESTS, restarts::TESTS]
            .concat();
    let mut trials = Vec::new();
    for (number, (name, test)) in tests.into_iter().enumerate() {
        for (turn, flavor) in Flavor::ALL.into_iter().enumerate() {
            // The kinds take turns, so that each of them is met.
            if turn == number % Flavor::ALL.len() || is_set("LEASEHOLD_SOAK", "1") {
                trials.push(trial(name, test, flavor));
            }
        }
    }
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(AT_A_TIME);
    libtest_mimic::run(&arguments, trials).exit();
}

fn trial(name: &str, test: fn(Flavor), flavor: Flavor) -> Trial {
    let run = move || {
        if let Err(missing) = flavor.installed() {
            let is_required = is_set("CI", "true") || is_set("LEASEHOLD_REQUIRE_SERVERS", "1");
            assert!(!is_required, "{missing}");
            return Ok(Completion::ignored_with(format!("not run here: {missing}")));
        }
        test(flavor);
        Ok(Completion::Completed)
    };
    Trial::ignorable_test(name, run).with_kind(flavor.name())
}

fn is_set(variable: &str, value: &str) -> bool {
    env::var(variable).is_ok_and(|set| set == value)
}

/// Runs a test in a runtime as applications have it.
fn run(test: impl Future<Output = ()>) {
    let runtime = Runtime::new().expect("threads");
    runtime
        .block_on(async { tokio::time::timeout(PATIENCE, test).await })
        .expect("the test ends in time");
}
