//! Two tasks take two locks in opposite orders. Instead of hanging, one of them is told, and the
//! error knows who waits for what, with the place in the source where each lock was taken and where
//! it is waited for. It lets go, and the other goes on.
//!
//! `cargo run -p leasehold --example deadlock`

#![allow(clippy::print_stdout, reason = "an example prints")]

use std::sync::Arc;

use leasehold::{DeadlockStep, Error, ErrorKind, Mutex};
use tokio::sync::Barrier;

/// What two tasks share.
struct Shop {
    stock: Mutex<u32>,
    till: Mutex<i64>,
    /// Where each has its first lock and not yet its second.
    both: Barrier,
}

impl Shop {
    /// The stock, and then the till.
    async fn sell(&self) -> Result<(), Error> {
        let sell = async |stock: &mut u32| {
            self.both.wait().await;
            self.till.run_exclusive(async |till| *till += 5).await?;
            *stock -= 1;
            Ok(())
        };
        self.stock.run_exclusive(sell).await?
    }

    /// The till, and then the stock.
    async fn buy(&self) -> Result<(), Error> {
        let buy = async |till: &mut i64| {
            self.both.wait().await;
            self.stock.run_exclusive(async |stock| *stock += 1).await?;
            *till -= 3;
            Ok(())
        };
        self.till.run_exclusive(buy).await?
    }
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let (stock, till) = (Mutex::new(2), Mutex::new(20));
    let shop = Arc::new(Shop { stock, till, both: Barrier::new(2) });
    let (seller, buyer) = (Arc::clone(&shop), Arc::clone(&shop));
    let sells = tokio::spawn(async move { seller.sell().await });
    let buys = tokio::spawn(async move { buyer.buy().await });
    for (what, task) in [("sold", sells), ("bought", buys)] {
        match task.await.expect("neither task panics") {
            Ok(()) => println!("{what}"),
            Err(error) => match error.kind() {
                ErrorKind::Deadlock { cycle } => show(cycle),
                _ => return Err(error),
            },
        }
    }
    println!("{} in the till, {} in stock", *shop.till.lock().await, *shop.stock.lock().await);
    Ok(())
}

fn show(cycle: &[DeadlockStep]) {
    println!("deadlock:");
    for (at, step) in cycle.iter().enumerate() {
        let next = (at + 1) % cycle.len() + 1;
        println!("  task {} (its outermost frame: {})", at + 1, step.task);
        println!("    waits at      {}", step.waits);
        println!("    for the       {} of {}", step.lock, step.of);
        println!("    taken at      {} by task {next}", step.taken);
    }
}
