//! `leasehold bench`: a short contention test of a store.

use std::{
    cell::RefCell,
    rc::Rc,
    time::{Duration, Instant},
};

use leasehold::{HolderInfo, LockManager, Namespace};
use serde::Serialize;
use tokio::task::LocalSet;

use crate::{
    args::BenchArgs,
    exit::{Exit, Failure},
    report,
    settings::Settings,
    signals::Signals,
    store::{Place, Store},
    svg::Chart,
    talk,
};

/// The longest part: who wants more starts it again.
const TIME_MAX: Duration = Duration::from_secs(3600);

/// At most so many waits are kept for the quantiles.
const WAITS_MAX: usize = 1_000_000;

/// What was measured, as a document.
#[derive(Debug, Default, Serialize)]
struct Figures {
    store: String,
    clients: u32,
    /// Acquire and release by one client alone.
    alone_pairs_per_s: f64,
    /// By all clients, each on a lock of its own.
    apart_pairs_per_s: f64,
    /// By all clients on one lock.
    together_pairs_per_s: f64,
    /// From before a release to the next holder.
    gap_ms_median: f64,
    gap_ms_p99: f64,
    /// From a request to its grant.
    wait_ms_median: f64,
    wait_ms_p99: f64,
    wait_ms_max: f64,
    /// The most grants of one client against the fewest of another.
    grants_max_by_min: f64,
}

/// What the clients of one part have in common.
#[derive(Debug, Default)]
struct Shared {
    pairs: Vec<u64>,
    waits: Vec<Duration>,
    gaps: Vec<Duration>,
    released: Option<Instant>,
}

/// Runs the three parts.
pub(crate) async fn bench(args: BenchArgs, settings: &Settings) -> Result<Exit, Failure> {
    let mut signals = Signals::listen()
        .map_err(|error| Failure::new(Exit::Unavailable, format!("cannot start: {error}")))?;
    let place = Place::of(settings)?;
    place.say();
    let namespace =
        Namespace::new(format!("leasehold-bench-{}", std::process::id())).expect("a short name");
    let mut clients = Vec::new();
    for _ in 0..args.clients {
        let store = Store::open(&place).await?;
        clients.push(store.manager(namespace.clone(), HolderInfo::here()));
    }
    let measured = LocalSet::new();
    let outcome = tokio::select! {
        biased;
        signal = signals.next_ending() => Err(signal),
        figures = measured.run_until(measure(&clients, &args, &place)) => Ok(figures),
    };
    drop(measured);
    for locks in &clients {
        // The store frees what a client that failed to leave has held.
        let _ = locks.shutdown().await;
    }
    match outcome {
        Err(signal) => Ok(Exit::Signalled(signal)),
        Ok(figures) => tell(&figures?, &args),
    }
}

async fn measure(
    clients: &[LockManager],
    args: &BenchArgs,
    place: &Place,
) -> Result<(Figures, Vec<Duration>), Failure> {
    let time = args.time.min(TIME_MAX);
    let seconds = time.as_secs_f64();
    let count = args.clients;
    let rate = |shared: &Shared| as_f64(shared.pairs.iter().sum()) / seconds;
    let line = talk::Changing::default();
    progress(&line, "1 of 3: one client alone");
    let alone = part(&clients[..1], time, false).await?;
    progress(&line, &format!("2 of 3: {count} clients, each on a lock of its own"));
    let apart = part(clients, time, false).await?;
    progress(&line, &format!("3 of 3: {count} clients on one lock"));
    let mut together = part(clients, time, true).await?;
    together.waits.sort_unstable();
    together.gaps.sort_unstable();
    let (most, least) = (together.pairs.iter().max(), together.pairs.iter().min());
    let figures = Figures {
        store: place.as_str().to_owned(),
        clients: count,
        alone_pairs_per_s: rate(&alone),
        apart_pairs_per_s: rate(&apart),
        together_pairs_per_s: rate(&together),
        gap_ms_median: quantile(&together.gaps, 50),
        gap_ms_p99: quantile(&together.gaps, 99),
        wait_ms_median: quantile(&together.waits, 50),
        wait_ms_p99: quantile(&together.waits, 99),
        wait_ms_max: quantile(&together.waits, 100),
        grants_max_by_min: as_f64(*most.unwrap_or(&0)) / as_f64(*least.unwrap_or(&0)).max(1.0),
    };
    Ok((figures, together.waits))
}

/// One part: every client acquires and releases for this long.
async fn part(clients: &[LockManager], time: Duration, one_lock: bool) -> Result<Shared, Failure> {
    let shared = Rc::new(RefCell::new(Shared::default()));
    let end = Instant::now() + time;
    let mut tasks = Vec::new();
    for (number, locks) in clients.iter().enumerate() {
        let name = if one_lock { "together".to_owned() } else { format!("apart {number}") };
        let (locks, shared) = (locks.clone(), Rc::clone(&shared));
        tasks
            .push(tokio::task::spawn_local(async move { work(&locks, &name, end, &shared).await }));
    }
    for task in tasks {
        task.await.expect("a client does not panic")?;
    }
    Ok(Rc::into_inner(shared).expect("all clients are done").into_inner())
}

async fn work(
    locks: &LockManager,
    name: &str,
    end: Instant,
    shared: &RefCell<Shared>,
) -> leasehold::Result<()> {
    let lock = locks.mutex(name)?;
    let mut pairs = 0;
    while Instant::now() < end {
        let asked = Instant::now();
        let lease = lock.lock().timeout(None).await?;
        let granted = Instant::now();
        {
            let mut shared = shared.borrow_mut();
            if shared.waits.len() < WAITS_MAX {
                shared.waits.push(granted - asked);
            }
            if let Some(released) = shared.released.take()
                && shared.gaps.len() < WAITS_MAX
                && asked < released
            {
                shared.gaps.push(granted.saturating_duration_since(released));
            }
        }
        // The others ask meanwhile, so that there is somebody to hand it to.
        tokio::task::yield_now().await;
        shared.borrow_mut().released = Some(Instant::now());
        lease.release().await?;
        pairs += 1;
    }
    shared.borrow_mut().pairs.push(pairs);
    Ok(())
}

fn tell((figures, waits): &(Figures, Vec<Duration>), args: &BenchArgs) -> Result<Exit, Failure> {
    if let Some(path) = &args.plot {
        std::fs::write(path, plot(figures, waits)).map_err(|error| {
            Failure::new(Exit::Output, format!("cannot write {}: {error}", path.display()))
        })?;
    }
    if args.json {
        report::print_json(figures)?;
        return Ok(Exit::Success);
    }
    let count = figures.clients;
    report::print(&format!(
        "one client alone          {:>9.0} pairs/s\n\
         {count:>2} clients, own locks     {:>9.0} pairs/s\n\
         {count:>2} clients, one lock      {:>9.0} pairs/s\n\
         \x20  hand-off gap           {:>9.3} ms median, {:.3} ms p99\n\
         \x20  wait                   {:>9.3} ms median, {:.3} ms p99, {:.3} ms max\n\
         \x20  most / fewest grants   {:>9.2}\n",
        figures.alone_pairs_per_s,
        figures.apart_pairs_per_s,
        figures.together_pairs_per_s,
        figures.gap_ms_median,
        figures.gap_ms_p99,
        figures.wait_ms_median,
        figures.wait_ms_p99,
        figures.wait_ms_max,
        figures.grants_max_by_min,
    ))?;
    Ok(Exit::Success)
}

fn plot(figures: &Figures, waits: &[Duration]) -> String {
    let points: Vec<_> =
        (0..=100).map(|percent| (f64::from(percent), quantile(waits, percent))).collect();
    let title = format!("{} clients on one lock of {}", figures.clients, figures.store);
    let (x, y) = ("percent of the waits", "took at most, in ms");
    Chart { title: &title, x, y, points: &points }.draw()
}

/// In milliseconds; 0 of none.
fn quantile(sorted: &[Duration], percent: u32) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let place = last * usize::try_from(percent).expect("at most 100") / 100;
    sorted[place].as_secs_f64() * 1000.0
}

/// Exact up to 2^53, which no count reaches here.
#[allow(clippy::cast_precision_loss, reason = "counts of at most an hour")]
fn as_f64(count: u64) -> f64 {
    count as f64
}

fn progress(line: &talk::Changing, text: &str) {
    if talk::may_draw() {
        line.show(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_of_what_was_measured() {
        let sorted: Vec<_> = (1..=101).map(Duration::from_millis).collect();
        assert_eq!(quantile(&sorted, 0), 1.0);
        assert_eq!(quantile(&sorted, 50), 51.0);
        assert_eq!(quantile(&sorted, 100), 101.0);
        assert_eq!(quantile(&[], 50), 0.0);
    }
}
