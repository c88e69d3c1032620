//! A leader that stops when it is not the leader any more. `cargo run --example lost_lease`
//!
//! The lease is renewed while the leader lives. Here somebody else destroys the lock, as an operator
//! would with a leader that hangs; an expired TTL is told in the same way.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::{error::Error, time::Duration};

use leasehold::{Lease, LockManager, RunError};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let locks = LockManager::in_memory();
    let leader = locks.mutex("leader")?;

    let operator = leader.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(100)).await;
        operator.destroy().await
    });

    match leader.run_exclusive(lead).await {
        Ok(rounds) => println!("led for {rounds} rounds, to the end"),
        Err(RunError::Lost { output: Some(rounds), error }) => {
            println!("led for {rounds} rounds, then: {error}");
        }
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

async fn lead(lease: &Lease) -> u32 {
    let mut rounds = 0;
    loop {
        tokio::select! {
            () = one_round(lease) => rounds += 1,
            why = lease.lost() => {
                println!("stopping: {why}");
                return rounds;
            }
        }
    }
}

/// Whatever it writes, it writes with the fencing token: between the loss and the look at it there
/// may be a moment.
async fn one_round(lease: &Lease) {
    let _fence = lease.fencing_token();
    tokio::time::sleep(Duration::from_millis(20)).await;
}
