//! What goes wrong between handles and real servers, at the level of `leasehold`'s handles: nothing
//! is granted twice, nobody waits for ever, nothing stays behind, and who loses a lease learns it in
//! time. One trial per fault and kind of server; where a server is missing, its trials are listed as
//! ignored.

#![forbid(unsafe_code)]

mod actor;
mod clocks;
mod connections;
mod crowds;
mod encrypted;
mod full;
mod layout;
mod losses;
mod processes;
mod replies;
mod requests;
mod restarts;
mod rights;
mod runtimes;
mod witness;

use std::time::Duration;

use leasehold::{LockManager, NamedMutex};
use libtest_mimic::{Arguments, Completion, Trial};
use test_servers::Flavor;
use tokio::runtime::Runtime;

/// A name, and what is tested on each kind of server, each with a server of its own.
type Test = (&'static str, fn(Flavor));

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);
/// The same of a million names.
const PATIENCE_SOAK: Duration = Duration::from_secs(1_800);
/// Most trials wait for a time to pass, so many of them run at a time.
const AT_A_TIME: usize = 12;

fn main() {
    actor::take_part();
    let (mut long, mut others) = (Vec::new(), Vec::new());
    for flavor in Flavor::ALL {
        let everywhere = [
            connections::TESTS,
            crowds::TESTS,
            full::TESTS,
            layout::TESTS,
            losses::TESTS,
            processes::TESTS,
            replies::TESTS,
            requests::TESTS,
            restarts::TESTS,
            rights::TESTS,
            runtimes::TESTS,
        ];
        let mut tests = everywhere.concat();
        // Debian's build of 7.0 does not start with a clock that can be stepped, and only it has TLS.
        tests.extend(if flavor == Flavor::Redis70 { encrypted::TESTS } else { clocks::TESTS });
        others.extend(tests.into_iter().map(|test| trial(test, flavor, None)));
        let too_long = (!is_soak()).then_some("takes eleven minutes; `cargo xtask soak`");
        long.extend(crowds::LONG.iter().map(|test| trial(*test, flavor, too_long)));
    }
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(AT_A_TIME);
    // The longest begin first: all others are over before them.
    long.extend(others);
    libtest_mimic::run(&arguments, long).exit();
}

/// A test on a kind of server, or why it is not run here.
fn trial((name, test): Test, flavor: Flavor, unfit: Option<&str>) -> Trial {
    let missing = flavor.installed().err().map(|missing| missing.to_string());
    let reason = missing.or_else(|| unfit.map(str::to_owned));
    let run = move || {
        if let Some(reason) = reason {
            return Ok(Completion::ignored_with(format!("not run here: {reason}")));
        }
        test(flavor);
        Ok(Completion::Completed)
    };
    Trial::ignorable_test(name, run).with_kind(flavor.name())
}

/// Whether crowds are as large as `cargo xtask soak` wants them.
fn is_soak() -> bool {
    std::env::var("LEASEHOLD_SOAK").is_ok_and(|set| set == "1")
}

/// Runs a test in a runtime as applications have it.
fn run(test: impl Future<Output = ()>) {
    let runtime = Runtime::new().expect("threads");
    runtime
        .block_on(async { tokio::time::timeout(patience(), test).await })
        .expect("the test ends in time");
}

fn patience() -> Duration {
    if is_soak() { PATIENCE_SOAK } else { PATIENCE }
}

async fn connect(url: &str) -> LockManager {
    leasehold::connect(url).await.expect("connects")
}

/// A URL whose commands are given up soon, so that a test need not wait long for that.
fn impatient(url: &str) -> String {
    format!("{url}?command_timeout_ms=300&connect_timeout_ms=1000")
}

/// Whether somebody who was not there before gets the lock, within the time that a grant or a waiter
/// that nobody wants any more may take to go, and so that nothing stays.
async fn is_free_in_the_end(url: &str, name: &str) {
    let locks = connect(url).await;
    let mutex = locks.mutex(name).expect("a name");
    let lease =
        mutex.lock().timeout(Duration::from_secs(30)).await.expect("nothing is left in the way");
    assert!(lease.release().await.expect("answers"));
    assert_eq!(queued(&mutex).await, 0);
    locks.shutdown().await.expect("answers");
}

async fn queued(mutex: &NamedMutex) -> usize {
    mutex.inspect().await.expect("answers").map_or(0, |state| state.waiters.len())
}
