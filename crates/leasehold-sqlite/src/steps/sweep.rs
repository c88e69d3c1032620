//! Forgets locks that have been idle for long, a window at a time: nothing scans all names.

use leasehold_core::defaults;
use rusqlite::params;

use super::Step;
use crate::{
    error::Stop,
    rows::count,
    sys,
    tx::{Tx, sql, us},
};

/// How many locks are looked at in one sweep.
const WINDOW: i64 = 256;
/// A client sweeps once while this many locks become idle through it, so rows are looked at as
/// fast as they are made.
const IDLE_PER_SWEEP: u32 = 128;
const RETENTION_US: i64 = us(defaults::DESTROYED_RETENTION);

/// Forgets what is idle in one window of the table, wherever the clock points.
#[derive(Debug)]
pub(crate) struct Sweep;

impl Step for Sweep {
    type Answer = ();

    fn run(&self, tx: &mut Tx<'_>) -> Result<(), Stop> {
        let last = tx.one(sql!("lock_id_max"), [], |row| row.get::<_, Option<i64>>(0))?.flatten();
        let Some(last) = last else { return Ok(()) };
        // Different clients and times begin at different places, without a cursor to keep.
        let windows = u64::try_from(last / WINDOW + 1).unwrap_or(1);
        let first = (sys::wall_us() % windows).cast_signed() * WINDOW;
        let before = tx.now - RETENTION_US;
        let fences =
            tx.all(sql!("lock_sweep"), params![first, first + WINDOW - 1, before], |row| {
                count(row, 0)
            })?;
        if let Some(highest) = fences.into_iter().max() {
            // L8: a lock that comes again goes on above what it had.
            tx.execute(sql!("floor_raise"), [highest.cast_signed()])?;
        }
        Ok(())
    }
}

impl Sweep {
    /// Sweeps once per so many locks that became idle.
    pub(super) fn now_and_then(tx: &mut Tx<'_>) -> Result<(), Stop> {
        *tx.sweeps += 1;
        if tx.sweeps.is_multiple_of(IDLE_PER_SWEEP) { Self.run(tx) } else { Ok(()) }
    }
}
