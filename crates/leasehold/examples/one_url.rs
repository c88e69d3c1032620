//! The same program on one machine and on many: only the URL differs.
//!
//! `cargo run --example one_url` (a store of this program alone), `… -- sqlite:./locks.db` (all
//! processes of this machine), `cargo run --features redis --example one_url --
//! redis://127.0.0.1/` (all that reach the server). Start it twice: the second waits for the first.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::time::Duration;

#[tokio::main]
async fn main() -> leasehold::Result<()> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "memory:".into());
    let locks = leasehold::connect(&url).await?;
    let report = locks.mutex("nightly-report")?;
    let fence = report
        .run_exclusive(async |lease| {
            // The work: pass the fencing token along with every write.
            tokio::time::sleep(Duration::from_millis(200)).await;
            lease.fencing_token().get()
        })
        .await?;
    println!("done, with the fencing token {fence}");
    locks.shutdown().await
}
