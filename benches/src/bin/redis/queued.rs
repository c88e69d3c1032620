//! What a release costs the server while many wait for the lock, and while one does.

use std::time::Duration;

use leasehold::{Lease, LockManager, Obstacle};
use leasehold_benches::{Report, Result, Row, Unit, median};
use leasehold_redis::script::SOURCES;
use test_servers::{Reply, Server};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::runtime;

const OVER_ONE: &str = "release with 20,000 queued over one, server";
const MANY: &str = "release with 20,000 queued, server us";
const ONE: &str = "release with one queued, server us";

const QUEUED: usize = 20_000;
const RELEASES: usize = 200;
const TTL: Duration = Duration::from_secs(600);

pub(crate) fn measure(report: &mut Report, server: &Server) -> Result<()> {
    if !report.wants(&[OVER_ONE, MANY, ONE]) {
        return Ok(());
    }
    let (queued, releases) =
        if report.is_quick() { (QUEUED / 10, RELEASES / 4) } else { (QUEUED, RELEASES) };
    let runtime = runtime(2);
    let log = SlowLog::of(server)?;
    let [few, many] = runtime.block_on(async {
        let few = releases_of(server, &log, "few", 1, releases).await?;
        Ok::<_, Box<dyn std::error::Error>>([
            few,
            releases_of(server, &log, "many", queued, releases).await?,
        ])
    })?;
    let (few, many) = median(&few).zip(median(&many)).ok_or("no release in the log")?;
    let figures = [(ONE, Unit::MICROSECONDS, few, None), (MANY, Unit::MICROSECONDS, many, None)];
    for (work, unit, figure, goal) in
        figures.into_iter().chain([(OVER_ONE, Unit::RATIO, many / few, Some(2.0))])
    {
        let mut row = Row::new(work, unit);
        if let Some(goal) = goal {
            row = row.goal(goal);
        }
        row.add_ours(figure);
        report.add(&row);
    }
    Ok(())
}

/// What each of so many releases cost, with so many waiters queued all the time.
async fn releases_of(
    server: &Server,
    log: &SlowLog<'_>,
    name: &str,
    queued: usize,
    releases: usize,
) -> Result<Vec<f64>> {
    let locks = leasehold::connect(&server.url()).await?;
    let (tell, mut queue) = unbounded_channel();
    let (give, mut granted) = unbounded_channel();
    give.send(locks.mutex(name)?.lock().ttl(TTL).await?)?;
    for _ in 0..queued {
        wait(&locks, name, &tell, &give)?;
    }
    all_queued(&mut queue, queued).await?;
    let mut costs = Vec::new();
    for _ in 0..releases {
        let lease = granted.recv().await.ok_or("nobody was granted it")?;
        log.reset();
        lease.release().await?;
        costs.push(log.last_release().ok_or("a release that is not in the log")?);
        wait(&locks, name, &tell, &give)?;
        all_queued(&mut queue, 1).await?;
    }
    // Whoever still waits leaves with the manager.
    locks.shutdown().await?;
    Ok(costs)
}

/// Has a task wait for the lock; it says when it is queued and hands over its lease.
fn wait(
    locks: &LockManager,
    name: &str,
    tell: &UnboundedSender<()>,
    give: &UnboundedSender<Lease>,
) -> Result<()> {
    let (mutex, tell, give) = (locks.mutex(name)?, tell.clone(), give.clone());
    tokio::spawn(async move {
        let queued = move |_: &Obstacle| {
            let _ = tell.send(());
        };
        // An error: the manager has shut down.
        if let Ok(lease) = mutex.lock().ttl(TTL).on_queued(queued).await {
            let _ = give.send(lease);
        }
    });
    Ok(())
}

async fn all_queued(queue: &mut UnboundedReceiver<()>, count: usize) -> Result<()> {
    for _ in 0..count {
        queue.recv().await.ok_or("a waiter that does not queue")?;
    }
    Ok(())
}

/// The server's log of what each command took, which here has them all.
struct SlowLog<'a> {
    server: &'a Server,
    /// The digest of the script that releases.
    release: &'static str,
}

impl<'a> SlowLog<'a> {
    fn of(server: &'a Server) -> Result<Self> {
        server.command(&["CONFIG", "SET", "slowlog-log-slower-than", "0"]);
        let release = SOURCES.iter().find(|source| source.name() == "release");
        let release = release.ok_or("no script is called release")?.digest();
        Ok(Self { server, release })
    }

    fn reset(&self) {
        self.server.command(&["SLOWLOG", "RESET"]);
    }

    /// Microseconds of the release since the log was reset.
    fn last_release(&self) -> Option<f64> {
        let log = self.server.command(&["SLOWLOG", "GET", "128"]);
        let is_release = |entry: &&Reply| {
            let words = entry.items().get(3).map_or(&[][..], Reply::items);
            words.get(1).is_some_and(|digest| digest.text() == self.release)
        };
        let entry = log.items().iter().find(is_release)?;
        Some(entry.items().get(2)?.int() as f64)
    }
}

impl Drop for SlowLog<'_> {
    fn drop(&mut self) {
        self.server.command(&["CONFIG", "SET", "slowlog-log-slower-than", "10000"]);
    }
}
