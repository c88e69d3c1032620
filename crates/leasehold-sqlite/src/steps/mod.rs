//! The operations of the contract, one file each: what happens to a lock in one transaction.

mod acquire;
mod bury;
mod cancel;
mod confirm;
mod destroy;
mod inspect;
mod lifetime;
mod look;
mod release;
mod sweep;
mod watch;

use leasehold_core::{HolderInfo, Obstacle};
use rusqlite::params;

use crate::{
    error::Stop,
    rows::LockRow,
    tx::{Tx, sql},
};

pub(crate) use acquire::AcquireStep;
pub(crate) use bury::Bury;
pub(crate) use cancel::CancelStep;
pub(crate) use confirm::ConfirmStep;
pub(crate) use destroy::DestroyStep;
pub(crate) use inspect::{CountsStep, InspectStep, SurveyStep};
pub(crate) use lifetime::{ExtendStep, RebindStep, RemainingStep, RenewStep};
pub(crate) use look::{Look, Seen, TickStep};
pub(crate) use release::ReleaseStep;
pub(crate) use sweep::Sweep;
pub(crate) use watch::{UnwatchStep, WatchStep};

/// One operation. It may be run again after a failure, which left nothing behind.
pub(crate) trait Step: Send + 'static {
    /// What it answers.
    type Answer: Send + 'static;
    /// Whether it only reads, as long as nothing is found to clean up.
    const READS: bool = false;
    /// Whether it may run in a caller's thread, because it takes microseconds.
    const INLINE: bool = true;
    /// Whether it has to take effect sooner or later, whoever waits for the answer: the client's
    /// thread repeats it while it lives.
    const MUST: bool = false;

    /// The step in its transaction.
    fn run(&self, tx: &mut Tx<'_>) -> Result<Self::Answer, Stop>;
}

impl Tx<'_> {
    /// What stands in the way of a request (rule E2): one of the holders, and how many are ahead.
    fn obstacle(&self, lock: &LockRow, ahead: Option<u64>) -> Result<Obstacle, Stop> {
        let holder = self.one(sql!("grant_any"), [lock.id], |row| {
            let (host, label): (String, Option<String>) = (row.get(0)?, row.get(2)?);
            let info = HolderInfo::from_parts(&host, row.get(1)?, label.as_deref());
            Ok((info, self.since(row.get(3)?)))
        })?;
        Ok(Obstacle { holder, ahead })
    }

    /// How many wait before a place, as long as counting is cheap (rule Q6).
    fn ahead_of(&self, lock: &LockRow, seq: i64) -> Result<Option<u64>, Stop> {
        let counted =
            self.one(sql!("waiters_ahead"), params![lock.id, seq, COUNTED_MAX], |row| {
                row.get::<_, i64>(0)
            })?;
        Ok(counted.filter(|ahead| *ahead < COUNTED_MAX).and_then(|ahead| u64::try_from(ahead).ok()))
    }
}

/// Up to how many waiters ahead are counted.
const COUNTED_MAX: i64 = 100;
