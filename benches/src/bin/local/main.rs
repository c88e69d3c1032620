//! `cargo xtask bench local`: the plain locks side by side with their peers.

mod contended;
mod uncontended;

use std::time::Duration;

use leasehold_benches::{Budget, Report, Result};

fn main() -> Result<()> {
    let full = Budget { rounds: 15, run: Duration::from_millis(120) };
    let quick = Budget { rounds: 3, run: Duration::from_millis(20) };
    let mut report = Report::from_arguments(full, quick)?;
    // Instructions would be a steadier figure than time, but reading their counter takes unsafe
    // code, and virtual machines often have none.
    println!(
        "instruction counts: not run here (`perf stat -e instructions:u` where there is a counter)"
    );
    uncontended::measure(&mut report);
    contended::measure(&mut report);
    report.finish()
}
