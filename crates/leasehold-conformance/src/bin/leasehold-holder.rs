//! The holder program by hand: `leasehold-holder sqlite:PATH`, orders and events as lines of JSON.
#![forbid(unsafe_code)]

use std::{env, process::ExitCode, sync::Arc};

use leasehold_conformance::holder;
use leasehold_core::Backend;
use leasehold_sqlite::SqliteBackend;

fn main() -> ExitCode {
    let mut arguments = env::args().skip(1);
    let (Some(address), None) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: leasehold-holder sqlite:PATH");
        return ExitCode::from(64);
    };
    holder::main(&address, connect)
}

fn connect(address: &str) -> Arc<dyn Backend> {
    let path = address.strip_prefix("sqlite:").expect("an address is sqlite:PATH");
    let backend = SqliteBackend::open(path).expect("the store can be opened");
    Arc::new(backend)
}
