//! Two processes: how long from a release, or from the holder's death, to the next grant.

use std::{path::Path, sync::mpsc, thread::sleep, time::Duration};

use leasehold_benches::{Child, Orders, Report, Result, Row, Unit, monotonic_ns, say};

use crate::{
    folder,
    locker::{Kind, Locker},
};

const HAND_OFF: &str = "hand-off between two processes, median ms";
const KILL: &str = "kill -9 of the holder to the next grant, ms";
const KILL_WORST: &str = "kill -9 of the holder to the next grant, worst";
/// So that the waiter is asleep when the lock is given back.
const ASLEEP: Duration = Duration::from_millis(3);
const KILLS: u64 = 20;

pub(crate) fn measure(report: &mut Report) -> Result<()> {
    if report.wants(&[HAND_OFF]) {
        hand_off(report)?;
    }
    if report.wants(&[KILL, KILL_WORST]) {
        kill(report)?;
    }
    Ok(())
}

fn hand_off(report: &mut Report) -> Result<()> {
    let turns = if report.is_quick() { 20 } else { 100 };
    let mut row = Row::new(HAND_OFF, Unit::MS).goal(2.0);
    let folders = [folder()?, folder()?, folder()?];
    let mut sides = Vec::new();
    for (kind, folder) in Kind::ALL.into_iter().zip(&folders) {
        let here = Locker::open(kind, folder.path())?;
        sides.push((kind, here, Child::start(&["wait", kind.name(), &text(folder.path())])?));
    }
    for _ in 0..turns {
        for (kind, here, child) in &mut sides {
            let gap = one_hand_off(here, child)?;
            match kind {
                Kind::Ours => row.add_ours(gap),
                Kind::Naive => row.add_peer(kind.name(), gap),
                Kind::Flock => row.add_floor(gap),
            }
        }
    }
    report.add(&row);
    Ok(())
}

/// Milliseconds from before the release here to the grant there.
fn one_hand_off(here: &mut Locker, child: &mut Child) -> Result<f64> {
    here.lock(|| ())?;
    child.order("lock")?;
    expect(&child.hear()?, "queued")?;
    sleep(ASLEEP);
    let start = monotonic_ns();
    here.unlock()?;
    let granted: u64 = child.hear()?.parse()?;
    expect(&child.hear()?, "released")?;
    Ok(granted.saturating_sub(start) as f64 / 1e6)
}

/// Locks when it is told to, says when it got the lock, and gives it back.
pub(crate) fn waiting_child(kind: &str, folder: &str) -> Result<()> {
    let mut locker = Locker::open(Kind::of(kind)?, Path::new(folder))?;
    while Orders::next().is_some() {
        locker.lock(|| say("queued"))?;
        let granted = monotonic_ns();
        locker.unlock()?;
        say(granted);
        say("released");
    }
    Ok(())
}

fn kill(report: &mut Report) -> Result<()> {
    let kills = if report.is_quick() { 3 } else { KILLS };
    let mut row = Row::new(KILL, Unit::MS).goal(200.0);
    let mut worst = 0.0_f64;
    let folders = [folder()?, folder()?];
    for round in 0..kills {
        for (kind, folder) in [Kind::Ours, Kind::Flock].into_iter().zip(&folders) {
            // The moment differs from round to round, so that it meets no rhythm of the waiter.
            let wait = ASLEEP + Duration::from_millis(round * 37 % 50);
            let gap = one_kill(kind, folder.path(), wait)?;
            match kind {
                Kind::Ours => row.add_ours(gap),
                _ => row.add_floor(gap),
            }
            if kind == Kind::Ours {
                worst = worst.max(gap);
            }
        }
    }
    report.add(&row);
    let mut row = Row::new(KILL_WORST, Unit::MS).goal(200.0);
    row.add_ours(worst);
    report.add(&row);
    Ok(())
}

/// Milliseconds from before the kill of the holder to the grant here.
fn one_kill(kind: Kind, folder: &Path, wait: Duration) -> Result<f64> {
    let mut here = Locker::open(kind, folder)?;
    let mut holder = Child::start(&["hold", kind.name(), &text(folder)])?;
    expect(&holder.hear()?, "held")?;
    let (tell, queued) = mpsc::channel();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(move || {
            here.lock(move || {
                let _ = tell.send(());
            })
            .map_err(|error| error.to_string())?;
            let granted = monotonic_ns();
            here.unlock().map_err(|error| error.to_string())?;
            Ok::<_, String>(granted)
        });
        let was_queued = queued.recv();
        sleep(wait);
        let start = monotonic_ns();
        holder.kill()?;
        was_queued.map_err(|_| "granted although somebody holds")?;
        let granted = waiter.join().map_err(|_| "the waiter panicked")??;
        Ok(granted.saturating_sub(start) as f64 / 1e6)
    })
}

/// Locks, says so, and holds until it is killed.
pub(crate) fn holding_child(kind: &str, folder: &str) -> Result<()> {
    let mut locker = Locker::open(Kind::of(kind)?, Path::new(folder))?;
    locker.lock(|| ())?;
    say("held");
    let _ = Orders::next();
    locker.unlock()
}

fn expect(said: &str, expected: &str) -> Result<()> {
    if said == expected {
        return Ok(());
    }
    Err(format!("a child said {said:?} instead of {expected:?}").into())
}

fn text(folder: &Path) -> String {
    folder.display().to_string()
}
