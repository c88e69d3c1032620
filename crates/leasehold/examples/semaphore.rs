//! Five exports, three units of capacity, one of them heavy. `cargo run --example semaphore`
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::{error::Error, time::Duration};

use leasehold::LockManager;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let locks = LockManager::in_memory();
    let exports = locks.semaphore("exports", 3)?;
    let mut jobs = Vec::new();
    for (job, weight) in [(1, 1), (2, 2), (3, 3), (4, 1), (5, 1)] {
        let exports = exports.clone();
        jobs.push(tokio::spawn(async move {
            let slots = exports.acquire_many(weight).await?;
            println!("job {job} has {weight} of {}", exports.capacity());
            tokio::time::sleep(Duration::from_millis(100)).await;
            slots.release().await
        }));
    }
    for job in jobs {
        job.await??;
    }
    match exports.try_acquire().await? {
        Some(_slot) => println!("all done: {} permits free", exports.free_permits().await? + 1),
        None => unreachable!("every job has released"),
    }
    Ok(())
}
