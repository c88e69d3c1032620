//! Readers together, a writer alone, nobody overtakes. `cargo run --example read_write`
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::{error::Error, time::Duration};

use leasehold::LockManager;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let locks = LockManager::in_memory();
    let catalog = locks.rw_lock("catalog")?;
    let mut tasks = Vec::new();
    for (who, writes) in
        [("reader 1", false), ("reader 2", false), ("writer", true), ("reader 3", false)]
    {
        let catalog = catalog.clone();
        tasks.push(tokio::spawn(async move {
            let lease = if writes { catalog.write().await? } else { catalog.read().await? };
            println!("{who} is in");
            tokio::time::sleep(Duration::from_millis(100)).await;
            println!("{who} is out");
            lease.release().await
        }));
    }
    for task in tasks {
        task.await??;
    }
    Ok(())
}
