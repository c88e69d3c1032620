//! A process whose manager was used and is not used any more must sleep.

use std::{thread::sleep, time::Duration};

use leasehold::LockManager;
use leasehold_benches::{Child, Orders, Report, Result, Row, Unit, WakeUps, runtime, say};

use crate::hand_off::hand_off;

/// Threads that end when they have had nothing to do for a second are gone by then.
const SETTLE: Duration = Duration::from_secs(2);
const WINDOW: Duration = Duration::from_secs(5);
/// From the first window to the second, after what would have been the renewal of the leases that
/// were used.
const RENEWAL: Duration = Duration::from_secs(15);
const FIRST: &str = "idle wake-ups per second, 2 s after use";
const LATER: &str = "idle wake-ups per second";

pub(crate) fn measure(report: &mut Report) -> Result<()> {
    if !report.wants(&[FIRST, LATER]) {
        return Ok(());
    }
    let mut child = Child::start(&["idle"])?;
    child.hear()?;
    sleep(SETTLE);
    let mut row = Row::new(FIRST, Unit::PER_SECOND).goal(0.0);
    row.add_ours(WakeUps::per_second(child.pid(), WINDOW)?);
    report.add(&row);
    if !report.is_quick() {
        sleep(RENEWAL);
        let mut row = Row::new(LATER, Unit::PER_SECOND).goal(0.0);
        row.add_ours(WakeUps::per_second(child.pid(), WINDOW)?);
        report.add(&row);
    }
    Ok(())
}

/// Uses a manager, says so, and sleeps until the parent is done.
pub(crate) fn child(_arguments: &[String]) -> Result<()> {
    let runtime = runtime(2);
    let mutex = LockManager::in_memory().mutex("orders")?;
    hand_off(&runtime, Duration::from_millis(200), 64, &mutex);
    say("used");
    let _ = Orders::next();
    Ok(())
}
