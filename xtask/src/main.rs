//! The commands that people and CI share: `cargo xtask verify`, `test`, `loom`, `soak` and `bench`.
//!
//! One file per command; `checks/` holds what `verify` reads from the sources itself, one check per
//! file, each a function from a snapshot of the tree ([`repo`]) to a list of findings.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "talking on the terminal is what this program is for")]

mod asan;
mod bench;
mod checks;
mod loom;
mod public_api;
mod repo;
mod servers;
mod soak;
mod steps;
mod test;
mod verify;

use std::error::Error;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", about = "What people and CI run")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Check format, lints, docs, links, sizes, dependencies and house rules; writes nothing.
    Verify,
    /// Build the programs, then run every test and doc-test.
    Test(test::Options),
    /// Say whether docs/public-api is the public API, or write it.
    PublicApi(public_api::Options),
    /// Run every interleaving of the plain locks' atomic steps.
    Loom(loom::Options),
    /// Run what takes too long for CI: loom, AddressSanitizer, histories of killed processes.
    Soak(soak::Options),
    /// Measure one suite side by side with its peers.
    Bench(bench::Options),
}

fn main() -> ExitCode {
    let done = match Args::parse().command {
        Command::Verify => verify::run(),
        Command::Test(options) => test::run(&options),
        Command::PublicApi(options) => public_api::run(&options),
        Command::Loom(options) => loom::run(&options),
        Command::Soak(options) => soak::run(&options),
        Command::Bench(options) => bench::run(&options),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}
