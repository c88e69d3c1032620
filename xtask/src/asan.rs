//! AddressSanitizer over the tests of the two crates whose memory is their own affair: the queue,
//! and the plain locks with their unsafe code.
//!
//! Only a nightly toolchain has it. A target folder of its own, since everything is built anew.

use std::process::{Command, Stdio};
use std::time::Instant;

use crate::Result;
use crate::loom::count_passed;
use crate::repo;
use crate::steps::Steps;

/// What tests leak on purpose.
const LEAKS: &str = "xtask/src/asan_leaks.txt";
const TOOLCHAIN: &str = "nightly";

/// As one step among others. Fails where there is no nightly, and if no test ran.
pub(crate) fn step(steps: &mut Steps) -> Result<bool> {
    let name = "AddressSanitizer on leasehold-queue and leasehold-sync".to_owned();
    println!("\n--- {name}");
    let start = Instant::now();
    let Some(host) = host_of_nightly() else {
        println!("there is no nightly toolchain: rustup toolchain install nightly");
        return Ok(steps.record(name, start.elapsed(), false));
    };
    let mut running = command(&host).stdout(Stdio::piped()).spawn()?;
    let passed = count_passed(&mut running)?;
    let succeeded = running.wait()?.success();
    if passed == 0 {
        println!("no test passed under AddressSanitizer");
    }
    Ok(steps.record(name, start.elapsed(), succeeded && passed > 0))
}

fn command(host: &str) -> Command {
    let mut command = nightly("cargo");
    command
        // Without the doc-tests: rustdoc would need the same flags, and builds each anew.
        .args(["test", "--package", "leasehold-queue", "--package", "leasehold-sync"])
        .args(["--all-features", "--lib", "--tests", "--locked", "--no-fail-fast"])
        // A target is named so that build scripts and macros are built without the sanitizer.
        .args(["--target", host, "--target-dir", "target/asan"])
        .current_dir(repo::root())
        .env("RUSTFLAGS", "-Zsanitizer=address")
        .env("LSAN_OPTIONS", format!("suppressions={}", repo::root().join(LEAKS).display()))
        .env("ASAN_OPTIONS", "detect_leaks=1:detect_stack_use_after_return=1")
        .env_remove("CARGO_ENCODED_RUSTFLAGS");
    command
}

/// The host that the nightly toolchain builds for; `None` without one.
fn host_of_nightly() -> Option<String> {
    let said = nightly("rustc").arg("-vV").stderr(Stdio::null()).output().ok()?;
    let said = String::from_utf8(said.stdout).ok()?;
    said.lines().find_map(|line| line.strip_prefix("host: ")).map(str::to_owned)
}

fn nightly(program: &str) -> Command {
    let mut command = Command::new("rustup");
    // What cargo has set for this program belongs to another toolchain.
    command.args(["run", TOOLCHAIN, program]).env_remove("CARGO").env_remove("RUSTC");
    command
}
