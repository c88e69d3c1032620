//! A history on a real store: processes that are killed and stopped, copied files, another boot.
//! `cargo xtask soak` runs a long one.
#![forbid(unsafe_code)]

use std::{path::Path, sync::Arc};

use leasehold_conformance::history;
use leasehold_core::{Backend, Fault};
use leasehold_sqlite::SqliteBackend;

fn main() {
    history::main(&history::Embedded { connect });
}

fn connect(address: &Path) -> Result<Arc<dyn Backend>, Fault> {
    Ok(Arc::new(SqliteBackend::open(address)?))
}
