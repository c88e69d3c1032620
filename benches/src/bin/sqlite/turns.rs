//! Eight processes that want one lock all the time, with 1 ms inside: how long they wait, and
//! whether all get their share.

use std::{path::Path, thread::sleep, time::Duration};

use leasehold_benches::{
    Child, Orders, Report, Result, Row, Unit, median, monotonic_ns, quantile, say,
};

use crate::{
    folder,
    locker::{Kind, Locker},
};

const PROCESSES: usize = 8;
const SECTION: Duration = Duration::from_millis(1);
/// Turns of the first moments are not counted: some processes are still on their way.
const SETTLE_NS: u64 = 300_000_000;

const P99: &str = "8 processes, 1 ms sections: p99 wait / 7 turns";
const SHARES: &str = "8 processes, 1 ms sections: max/min turns";
const LONGEST: &str = "8 processes, 1 ms sections: longest / 7 turns";
const GAP: &str = "8 processes, 1 ms sections: gap, ms";

/// One acquisition: asked, granted, about to be given back; and by which process.
struct Turn {
    process: usize,
    asked: u64,
    granted: u64,
    ended: u64,
}

struct Outcome {
    p99_in_7_turns: f64,
    longest_in_7_turns: f64,
    max_over_min: f64,
    gap_ms: f64,
}

pub(crate) fn measure(report: &mut Report) -> Result<()> {
    if !report.wants(&[P99, LONGEST, SHARES, GAP]) {
        return Ok(());
    }
    let budget = report.budget();
    let window = if report.is_quick() { budget.run * 3 } else { budget.run * 2 };
    let mut rows = [
        Row::new(P99, Unit::RATIO).goal(1.5),
        Row::new(LONGEST, Unit::RATIO),
        Row::new(SHARES, Unit::RATIO),
        Row::new(GAP, Unit::MS),
    ];
    for _ in 0..budget.rounds {
        for kind in Kind::ALL {
            let outcome = contest(kind, window)?;
            let figures = [
                outcome.p99_in_7_turns,
                outcome.longest_in_7_turns,
                outcome.max_over_min,
                outcome.gap_ms,
            ];
            for (row, figure) in rows.iter_mut().zip(figures) {
                match kind {
                    Kind::Ours => row.add_ours(figure),
                    peer => row.add_peer(peer.name(), figure),
                }
            }
        }
    }
    rows.iter().for_each(|row| report.add(row));
    Ok(())
}

fn contest(kind: Kind, window: Duration) -> Result<Outcome> {
    let folder = folder()?;
    let path = folder.path().display().to_string();
    let mut children = Vec::new();
    for _ in 0..PROCESSES {
        children.push(Child::start(&["turns", kind.name(), &path])?);
    }
    for child in &mut children {
        child.hear()?;
    }
    for child in &mut children {
        child.order("go")?;
    }
    let from = monotonic_ns() + SETTLE_NS;
    sleep(window + Duration::from_nanos(SETTLE_NS));
    let until = monotonic_ns();
    for child in &mut children {
        child.order("stop")?;
    }
    let mut turns = Vec::new();
    for (process, child) in children.iter_mut().enumerate() {
        loop {
            let line = child.hear()?;
            if line == "end" {
                break;
            }
            let times: Vec<u64> =
                line.split(' ').map(str::parse).collect::<std::result::Result<_, _>>()?;
            let [asked, granted, ended] = times[..] else { return Err("not a turn".into()) };
            turns.push(Turn { process, asked, granted, ended });
        }
    }
    outcome(turns, from, until)
}

/// What happened between the two moments.
fn outcome(mut turns: Vec<Turn>, from: u64, until: u64) -> Result<Outcome> {
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
        return Err("two processes were inside at once".into());
    }
    let periods: Vec<f64> = next().map(|(one, two)| ms(one.granted, two.granted)).collect();
    let gaps: Vec<f64> = next().map(|(one, two)| ms(one.ended, two.granted)).collect();
    let mut shares = [0_u32; PROCESSES];
    turns.iter().for_each(|turn| shares[turn.process] += 1);
    let (most, fewest) = (shares.iter().max(), shares.iter().min());
    let (most, fewest) = most.zip(fewest).ok_or("no process")?;
    let seven_turns = 7.0 * periods.iter().sum::<f64>() / periods.len().max(1) as f64;
    let (p99, longest) = (quantile(&waits, 0.99), quantile(&waits, 1.0));
    Ok(Outcome {
        p99_in_7_turns: p99.ok_or("no turn in time")? / seven_turns,
        longest_in_7_turns: longest.ok_or("no turn in time")? / seven_turns,
        max_over_min: f64::from(*most) / f64::from((*fewest).max(1)),
        gap_ms: median(&gaps).ok_or("no turn in time")?,
    })
}

/// Takes turns until it is told to stop, then says when they were.
pub(crate) fn child(kind: &str, folder: &str) -> Result<()> {
    let mut locker = Locker::open(Kind::of(kind)?, Path::new(folder))?;
    say("ready");
    if Orders::next().is_none() {
        return Ok(());
    }
    let orders = Orders::watch();
    let mut turns = Vec::new();
    while !orders.came() {
        let asked = monotonic_ns();
        locker.lock(|| ())?;
        let granted = monotonic_ns();
        sleep(SECTION);
        turns.push((asked, granted, monotonic_ns()));
        locker.unlock()?;
    }
    for (asked, granted, ended) in turns {
        say(format_args!("{asked} {granted} {ended}"));
    }
    say("end");
    Ok(())
}
