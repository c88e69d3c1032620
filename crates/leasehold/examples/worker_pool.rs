//! A dispatcher takes a permit for each job and hands it over with the job; the worker that gets
//! the job adopts the permit and gives it back when the work is done. So no more than two jobs are
//! queued or running at once, and a job that gets lost gives its permit back by its TTL.
//! `cargo run --example worker_pool`
//!
//! Dispatcher and workers are tasks here; with `LOCKS=sqlite:PATH` they may as well be processes:
//! all that passes between them is text.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::{env, error::Error, time::Duration};

use leasehold::LockManager;
use tokio::sync::mpsc;

struct Job {
    number: u32,
    /// The permit, as text: what a queue or a database would carry.
    ticket: String,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = env::var("LOCKS").unwrap_or_else(|_| "memory:".into());
    let locks = leasehold::connect(&url).await?;
    let (queue, mut jobs) = mpsc::channel::<Job>(16);

    let worker = tokio::spawn({
        let locks = locks.clone();
        async move {
            while let Some(job) = jobs.recv().await {
                match work(&locks, &job).await {
                    Ok(true) => println!("job {}: done", job.number),
                    Ok(false) => {
                        println!("job {}: its permit had expired in the queue", job.number)
                    }
                    Err(error) => println!("job {}: {error}", job.number),
                }
            }
        }
    });

    let exports = locks.semaphore("exports", 2)?;
    for number in 1..=5 {
        // Waits while two jobs are on their way. From here on nobody but the ticket has the permit.
        let permit = exports.acquire().ttl(Duration::from_secs(600)).detached().await?;
        let ticket = permit.into_ticket().to_string();
        queue.send(Job { number, ticket }).await?;
    }
    drop(queue);
    worker.await?;
    println!("{} of {} permits are free", exports.free_permits().await?, exports.capacity());
    locks.shutdown().await?;
    Ok(())
}

/// `false`: the permit is gone, and so is the right to do the job.
async fn work(locks: &LockManager, job: &Job) -> leasehold::Result<bool> {
    let Some(permit) = locks.restore(&job.ticket)?.adopt().renew().await? else {
        return Ok(false);
    };
    tokio::time::sleep(Duration::from_millis(50)).await;
    permit.release().await
}
