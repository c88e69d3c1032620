//! A shop with locks from configuration: an HTTP service, and a load generator that drives it.
//!
//! ```sh
//! export SHOP_JOBS_URL=sqlite:$HOME/shop-locks.db SHOP_JOURNAL=$HOME/shop-journal
//! cargo run --example shop -- serve crates/leasehold-service/examples/shop/locks.toml
//! cargo run --example shop -- load 100 127.0.0.1:PORT [ADDRESS …]
//! ```
//!
//! Start `serve` twice on one store: a job runs once at a time, whichever process was asked.

#![allow(clippy::print_stdout, reason = "a program that talks to people")]

mod load;
mod serve;

use std::{env, process::ExitCode};

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments[..] {
        ["serve", config] => serve::serve(config).await,
        ["load", count, first, ref more @ ..] => match count.parse() {
            Ok(count) => load::load(count, [&[first], more].concat()).await,
            Err(_) => Err("COUNT is a number".into()),
        },
        _ => Err("usage: shop serve CONFIG | shop load COUNT ADDRESS…".into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // A configuration tells all its mistakes, one a line.
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

type Outcome = Result<(), Box<dyn std::error::Error + Send + Sync>>;
