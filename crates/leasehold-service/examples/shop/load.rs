//! The load generator: asks all services at once for the job until it was done so many times.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
};

use crate::Outcome;

/// Requests that are on their way at once.
const CLIENTS: usize = 8;
/// After so many failures in a row of one client there is nobody left to ask.
const FAILURES_MAX: usize = 100;

#[derive(Default)]
struct Counts {
    done: AtomicUsize,
    busy: AtomicUsize,
    failed: AtomicUsize,
}

pub(crate) async fn load(count: usize, addresses: Vec<&str>) -> Outcome {
    let addresses: Arc<[String]> = addresses.into_iter().map(str::to_owned).collect();
    let counts = Arc::new(Counts::default());
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS {
        clients.spawn(ask(client, count, Arc::clone(&addresses), Arc::clone(&counts)));
    }
    let all_served = clients.join_all().await.into_iter().all(|served| served);
    let number = |count: &AtomicUsize| count.load(Ordering::Relaxed);
    let (done, busy, failed) = (number(&counts.done), number(&counts.busy), number(&counts.failed));
    println!("done {done} busy {busy} failed {failed}");
    if all_served { Ok(()) } else { Err("nobody answers any more".into()) }
}

/// Asks one service after the other; `false`: none of them answers.
async fn ask(client: usize, count: usize, addresses: Arc<[String]>, counts: Arc<Counts>) -> bool {
    let mut failures = 0;
    for turn in client.. {
        if counts.done.load(Ordering::Relaxed) >= count {
            break;
        }
        let tally = match post(&addresses[turn % addresses.len()]).await {
            Ok(200) => &counts.done,
            Ok(409) => &counts.busy,
            _ => &counts.failed,
        };
        tally.fetch_add(1, Ordering::Relaxed);
        failures = if std::ptr::eq(tally, &counts.failed) { failures + 1 } else { 0 };
        if failures == FAILURES_MAX {
            return false;
        }
    }
    true
}

/// The status of one request.
async fn post(address: &str) -> std::io::Result<u16> {
    let mut stream = TcpStream::connect(address).await?;
    let request = "POST /jobs/sync HTTP/1.1\r\nhost: shop\r\ncontent-length: 0\r\n\
                   connection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
    status.ok_or_else(|| std::io::Error::other("no answer"))
}
