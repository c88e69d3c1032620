//! `cargo xtask soak`: a long history of processes that are killed and stopped, and its check.

use clap::Args;

use crate::Result;
use crate::repo;
use crate::steps::cargo;

#[derive(Args)]
pub(crate) struct Options {
    /// Repeats the choices of an earlier history, which printed its seed.
    #[arg(long)]
    seed: Option<u64>,
}

pub(crate) fn run(options: &Options) -> Result<bool> {
    // It prints its own summary and fails on any violation.
    Ok(cargo()
        .args(["run", "--release", "--locked", "--package", "leasehold-conformance"])
        .args(["--features", "sqlite", "--bin", "leasehold-historian", "--"])
        .args(options.seed.map(|seed| seed.to_string()))
        .current_dir(repo::root())
        .status()?
        .success())
}
