//! `cargo xtask bench redis`: named locks on one Redis server, through the public API.
//!
//! The server is Redis 7.0 with its defaults and without persistence, on the loopback interface of
//! the same machine: it takes its share of the same cores, for every contender alike. For the
//! arguments see [`Report`].

#![forbid(unsafe_code)]

mod locker;
mod pairs;
mod queued;
mod turns;
mod waiters;

use std::time::Duration;

use leasehold_benches::{Budget, Report, Result, child_arguments};
use test_servers::{Flavor, Server};
use tokio::runtime::{Builder, Runtime};

const FULL: Budget = Budget { rounds: 5, run: Duration::from_secs(1) };
const QUICK: Budget = Budget { rounds: 1, run: Duration::from_millis(200) };

fn main() -> Result<()> {
    if let Some(arguments) = child_arguments() {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        return match arguments[..] {
            ["wait", url, names] => waiters::child(url, names.parse()?),
            _ => Err(format!("a child does not know {arguments:?}").into()),
        };
    }
    let mut report = Report::from_arguments(FULL, QUICK)?;
    let server = Server::start(Flavor::Redis70)?;
    pairs::measure(&mut report, &server);
    turns::measure(&mut report, &server)?;
    queued::measure(&mut report, &server)?;
    waiters::measure(&mut report, &server)?;
    report.finish()
}

/// A runtime of this many workers, as an application with connections has it.
fn runtime(workers: usize) -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(workers)
        .enable_all()
        .build()
        .expect("threads for a runtime")
}
