//! A holder that was stopped for too long writes once too often, and the storage refuses it.
//! `cargo run --example fencing`
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::{error::Error, time::Duration};

use leasehold::{FencingToken, LockManager};

/// Storage that remembers the largest fencing token it has seen.
#[derive(Default)]
struct Storage {
    newest: Option<FencingToken>,
    value: &'static str,
}

impl Storage {
    fn write(&mut self, fence: FencingToken, value: &'static str) -> Result<(), String> {
        if self.newest.is_some_and(|newest| fence < newest) {
            return Err(format!("{value:?} comes from a holder of the past: {fence} is too small"));
        }
        (self.newest, self.value) = (Some(fence), value);
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let locks = LockManager::in_memory();
    let orders = locks.mutex("orders")?;
    let mut storage = Storage::default();

    let slow = orders.lock().ttl(Duration::from_millis(50)).await?;
    storage.write(slow.fencing_token(), "slow, in time")?;

    // The slow holder stops here for longer than its lease lives; the next one is let in.
    let next = orders.lock().await?;
    storage.write(next.fencing_token(), "next")?;

    let late = storage.write(slow.fencing_token(), "slow, too late");
    println!("{}", late.expect_err("the fence holds"));
    println!("the value is {:?}; the slow holder knows: {}", storage.value, slow.lost().await);
    next.release().await?;
    Ok(())
}
