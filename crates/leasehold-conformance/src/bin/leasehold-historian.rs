//! A long history on a new SQLite store: `leasehold-historian [SEED]`.
#![forbid(unsafe_code)]

use std::{env, path::Path, process::ExitCode, sync::Arc};

use leasehold_conformance::history;
use leasehold_core::{Backend, Fault};
use leasehold_sqlite::SqliteBackend;

fn main() -> ExitCode {
    let seeds: Option<Vec<u64>> = env::args().skip(1).map(|seed| seed.parse().ok()).collect();
    match seeds.as_deref() {
        Some(seed @ ([] | [_])) => history::soak(&STAGE, seed.first().copied()),
        _ => {
            eprintln!("usage: leasehold-historian [SEED]");
            ExitCode::from(64)
        }
    }
}

static STAGE: history::Embedded = history::Embedded { connect };

fn connect(address: &Path) -> Result<Arc<dyn Backend>, Fault> {
    Ok(Arc::new(SqliteBackend::open(address)?))
}
