//! Eight tasks that want one lock all the time, with 1 ms inside: how long the lock is idle between
//! two of them, how long they wait, whether all get their share, and what they ask of the server.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use leasehold_benches::{Report, Result, Row, Unit, median, monotonic_ns, quantile};
use test_servers::{Server, proxy::Proxy};
use tokio::runtime::Runtime;

use crate::{
    locker::{Blpop, Distributed, Lock, Locks, Ours, Rslock, connection},
    runtime,
};

const TASKS: usize = 8;
const SECTION: Duration = Duration::from_millis(1);
/// Turns of the first moments are not counted: some tasks are still on their way.
const SETTLE: Duration = Duration::from_millis(300);
/// How often the round trip is measured.
const PINGS: u32 = 1_000;

const GAP: &str = "8 tasks one name, hand-off gap ms";
const P99: &str = "8 tasks one name, p99 wait turns";
const SHARES: &str = "8 tasks one name, max/min";
const REQUESTS: &str = "8 tasks one name, client requests per acquisition";

/// One acquisition: asked, granted, about to be given back; and by which task.
#[derive(Clone, Copy)]
struct Turn {
    task: usize,
    asked: u64,
    granted: u64,
    ended: u64,
}

struct Outcome {
    gap_ms: f64,
    p99_turns: f64,
    max_over_min: f64,
    requests: f64,
}

impl Outcome {
    const fn figures(&self) -> [f64; 4] {
        [self.gap_ms, self.p99_turns, self.max_over_min, self.requests]
    }
}

pub(crate) fn measure(report: &mut Report, server: &Server) -> Result<()> {
    if !report.wants(&[GAP, P99, SHARES, REQUESTS]) {
        return Ok(());
    }
    let budget = report.budget();
    let window = if report.is_quick() { budget.run * 3 } else { budget.run * 2 };
    let runtime = runtime(2);
    let mut rows = [
        Row::new(GAP, Unit::MS).goal(2.0 * round_trip_ms(&runtime, server)),
        // Each waits for the seven others.
        Row::new(P99, Unit::TURNS).goal(1.2 * 7.0),
        Row::new(SHARES, Unit::RATIO).goal(1.05),
        Row::new(REQUESTS, Unit::COUNT).goal(3.2),
    ];
    for _ in 0..budget.rounds {
        let ours = contest::<Ours>(&runtime, server, window)?;
        rows.iter_mut().zip(ours.figures()).for_each(|(row, figure)| row.add_ours(figure));
        let floor = contest::<Blpop>(&runtime, server, window)?;
        rows.iter_mut().zip(floor.figures()).for_each(|(row, figure)| row.add_floor(figure));
        let rslock = contest::<Rslock>(&runtime, server, window)?;
        let distributed = contest::<Distributed>(&runtime, server, window)?;
        for (name, outcome) in [(Rslock::NAME, rslock), (Distributed::NAME, distributed)] {
            let figures = outcome.figures();
            rows.iter_mut().zip(figures).for_each(|(row, figure)| row.add_peer(name, figure));
        }
    }
    rows.iter().for_each(|row| report.add(row));
    Ok(())
}

fn contest<L: Locks>(runtime: &Runtime, server: &Server, window: Duration) -> Result<Outcome> {
    runtime.block_on(fill(&server.url()));
    let (turns, from, until) = take_turns::<L>(runtime, &server.url(), window);
    // Counted on another way, which would cost time.
    let proxy = Proxy::to(server.address());
    let locks = runtime.block_on(L::connect(&proxy.url()));
    let before = Counted { locks, requests: proxy.requests() };
    runtime.block_on(fill(&server.url()));
    let (counted, ..) = runtime.block_on(compete(&before.locks, window / 2));
    let requests = proxy.requests() - before.requests;
    let requests = requests as f64 / counted.len().max(1) as f64;
    outcome(turns, from, until, requests)
}

/// A client that has connected, and what it asked until then.
struct Counted<L> {
    locks: L,
    requests: u64,
}

fn take_turns<L: Locks>(runtime: &Runtime, url: &str, window: Duration) -> (Vec<Turn>, u64, u64) {
    let locks = runtime.block_on(L::connect(url));
    runtime.block_on(compete(&locks, window + SETTLE))
}

/// Has the tasks compete; all their turns, and the moments between which they count.
async fn compete<L: Locks>(locks: &L, run: Duration) -> (Vec<Turn>, u64, u64) {
    let stop = Arc::new(AtomicBool::new(false));
    let mut tasks = Vec::new();
    for task in 0..TASKS {
        let lock = locks.lock("orders").await;
        tasks.push(tokio::spawn(repeat(task, lock, Arc::clone(&stop))));
    }
    let settle = u64::try_from(SETTLE.as_nanos()).expect("moments");
    let from = monotonic_ns() + settle;
    tokio::time::sleep(run).await;
    let until = monotonic_ns();
    stop.store(true, Ordering::Relaxed);
    let mut turns = Vec::new();
    for task in tasks {
        turns.extend(task.await.expect("no panic"));
    }
    (turns, from, until)
}

async fn repeat(task: usize, mut lock: impl Lock, stop: Arc<AtomicBool>) -> Vec<Turn> {
    let mut turns = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let asked = monotonic_ns();
        let held = lock.lock().await;
        let granted = monotonic_ns();
        tokio::time::sleep(SECTION).await;
        turns.push(Turn { task, asked, granted, ended: monotonic_ns() });
        lock.unlock(held).await;
    }
    turns
}

/// What happened between the two moments.
fn outcome(mut turns: Vec<Turn>, from: u64, until: u64, requests: f64) -> Result<Outcome> {
    let ms = |from: u64, to: u64| to.saturating_sub(from) as f64 / 1e6;
    // A wait that lasts beyond the end counts with what it took until then: somebody who starves
    // has few waits, and long ones.
    turns.retain(|turn| turn.granted >= from && turn.asked < until);
    let waits = turns.iter().map(|turn| ms(turn.asked, turn.granted.min(until)));
    let waits: Vec<f64> = waits.collect();
    turns.retain(|turn| turn.granted < until);
    turns.sort_by_key(|turn| turn.granted);
    // A turn is hold + gap: from one grant to the next.
    let next = || turns.windows(2).map(|pair| (&pair[0], &pair[1]));
    if next().any(|(one, two)| two.granted < one.ended) {
        return Err("two tasks were inside at once".into());
    }
    let periods: Vec<f64> = next().map(|(one, two)| ms(one.granted, two.granted)).collect();
    let gaps: Vec<f64> = next().map(|(one, two)| ms(one.ended, two.granted)).collect();
    let mut shares = [0_u32; TASKS];
    turns.iter().for_each(|turn| shares[turn.task] += 1);
    let (most, fewest) = (shares.iter().max(), shares.iter().min());
    let (most, fewest) = most.zip(fewest).ok_or("no task")?;
    let turn = periods.iter().sum::<f64>() / periods.len().max(1) as f64;
    Ok(Outcome {
        gap_ms: median(&gaps).ok_or("no turn in time")?,
        p99_turns: quantile(&waits, 0.99).ok_or("no turn in time")? / turn,
        max_over_min: f64::from(*most) / f64::from((*fewest).max(1)),
        requests,
    })
}

async fn fill(url: &str) {
    Blpop::connect(url).await.lock("orders").await.fill().await;
}

fn round_trip_ms(runtime: &Runtime, server: &Server) -> f64 {
    let url = server.url();
    runtime.block_on(async {
        let mut connection = connection(&url).await;
        let mut times = Vec::new();
        for _ in 0..PINGS {
            let begun = monotonic_ns();
            redis::cmd("PING").exec_async(&mut connection).await.expect("answers");
            times.push((monotonic_ns() - begun) as f64 / 1e6);
        }
        median(&times).expect("some")
    })
}
