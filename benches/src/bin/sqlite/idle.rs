//! A process whose manager was used and is not used any more must sleep; one that holds a lease
//! only renews it.

use std::{path::Path, thread::sleep, time::Duration};

use leasehold_benches::{Child, Orders, Report, Result, Row, Unit, WakeUps, say};

use crate::{folder, url};

/// Threads that end when they have had nothing to do for a second are gone by then.
const SETTLE: Duration = Duration::from_secs(2);
const WINDOW: Duration = Duration::from_secs(5);
/// From the first window to the second. A lease of the default TTL of 60 s is renewed once in it;
/// what was used and given back would have been.
const RENEWAL: Duration = Duration::from_secs(15);

const FIRST: &str = "idle wake-ups per second, 2 s after use";
const LATER: &str = "idle wake-ups per second";
const HOLDING: &str = "wake-ups per second holding one lease";

pub(crate) fn measure(report: &mut Report) -> Result<()> {
    if !report.wants(&[FIRST, LATER, HOLDING]) {
        return Ok(());
    }
    let folders = [folder()?, folder()?];
    let mut idle = start("use", folders[0].path())?;
    let mut holding = start("hold", folders[1].path())?;
    idle.hear()?;
    holding.hear()?;
    sleep(SETTLE);
    let renewals = WakeUps::of(holding.pid())?;
    let mut row = Row::new(FIRST, Unit::PER_SECOND).goal(0.0);
    row.add_ours(WakeUps::per_second(idle.pid(), WINDOW)?);
    report.add(&row);
    let mut held = WINDOW;
    if !report.is_quick() {
        sleep(RENEWAL);
        let mut row = Row::new(LATER, Unit::PER_SECOND).goal(0.0);
        row.add_ours(WakeUps::per_second(idle.pid(), WINDOW)?);
        report.add(&row);
        held += RENEWAL + WINDOW;
    }
    let mut row = Row::new(HOLDING, Unit::PER_SECOND);
    row.add_ours(renewals.so_far()? as f64 / held.as_secs_f64());
    report.add(&row);
    Ok(())
}

fn start(then: &str, folder: &Path) -> Result<Child> {
    Ok(Child::start(&["idle", then, &folder.display().to_string()])?)
}

/// Uses a manager, with waiting in it, says so, and sleeps until the parent is done; while it holds
/// if `then` says so.
pub(crate) async fn child(then: &str, folder: &str) -> Result<()> {
    let locks = leasehold::connect(&url(Path::new(folder))).await?;
    let mutex = locks.mutex("orders")?;
    let tasks: Vec<_> = (0..64)
        .map(|_| {
            let mutex = mutex.clone();
            tokio::spawn(async move { mutex.lock().await?.release().await })
        })
        .collect();
    for task in tasks {
        task.await??;
    }
    let lease = if then == "hold" { Some(mutex.lock().await?) } else { None };
    say("used");
    let _ = Orders::next();
    drop(lease);
    Ok(())
}
