//! Two tasks take turns. `cargo run --example mutex`, or with a store that other processes share:
//! `LOCKS=sqlite:demo.db cargo run --example mutex` in two shells at once.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::{env, error::Error, time::Duration};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = env::var("LOCKS").unwrap_or_else(|_| "memory:".into());
    let locks = leasehold::connect(&url).await?;
    let demo = locks.mutex("demo")?;
    let (one, two) = tokio::join!(turn(&demo, "one"), turn(&demo, "two"));
    one?;
    two?;
    locks.shutdown().await?;
    Ok(())
}

async fn turn(demo: &leasehold::NamedMutex, who: &str) -> leasehold::Result<()> {
    for round in 1..=3 {
        let lease = demo.lock().label(who).await?;
        println!("{who}, round {round}: in, fenced by {}", lease.fencing_token());
        tokio::time::sleep(Duration::from_millis(100)).await;
        println!("{who}, round {round}: out");
        lease.release().await?;
    }
    Ok(())
}
