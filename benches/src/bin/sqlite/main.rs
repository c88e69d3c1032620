//! `cargo xtask bench sqlite`: named locks on the SQLite store, through the public API.
//!
//! One process with one and with many tasks, and several processes: this program runs itself again.
//! Stores are fresh directories beside the program, in the target directory. For the arguments see
//! [`Report`].

#![forbid(unsafe_code)]

mod growth;
mod idle;
mod locker;
mod one_process;
mod processes;
mod turns;

use std::time::Duration;

use leasehold_benches::{Budget, Report, Result, child_arguments, runtime};
use tempfile::TempDir;

const FULL: Budget = Budget { rounds: 5, run: Duration::from_secs(1) };
const QUICK: Budget = Budget { rounds: 1, run: Duration::from_millis(200) };

fn main() -> Result<()> {
    if let Some(arguments) = child_arguments() {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        return child(&arguments);
    }
    let mut report = Report::from_arguments(FULL, QUICK)?;
    one_process::measure(&mut report);
    processes::measure(&mut report)?;
    turns::measure(&mut report)?;
    growth::measure(&mut report);
    idle::measure(&mut report)?;
    report.finish()
}

/// What a further process of this suite does.
fn child(arguments: &[&str]) -> Result<()> {
    match arguments {
        ["wait", kind, folder] => processes::waiting_child(kind, folder),
        ["hold", kind, folder] => processes::holding_child(kind, folder),
        ["turns", kind, folder] => turns::child(kind, folder),
        ["idle", then, folder] => runtime(2).block_on(idle::child(then, folder)),
        _ => Err(format!("a child does not know {arguments:?}").into()),
    }
}

/// A fresh folder for one store, in the target directory.
fn folder() -> Result<TempDir> {
    let program = std::env::current_exe()?;
    let beside = program.parent().ok_or("the program is nowhere")?;
    Ok(tempfile::Builder::new().prefix("bench-store-").tempdir_in(beside)?)
}

/// The URL of the store in a folder.
fn url(folder: &std::path::Path) -> String {
    format!("sqlite:{}", folder.join("locks.db").display())
}
