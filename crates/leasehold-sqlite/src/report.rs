//! Who holds and who waits, for somebody who only looks: without a client, and without the guard
//! where it is not to be had.

use std::{
    fmt,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use leasehold_core::{
    ClientId, Clock, Fault, FaultKind, LockId, LockState, Namespace, SystemClock,
};
use rusqlite::config::DbConfig;

use crate::{
    boot::Boot,
    config::default_path,
    desk::{Context, Desk},
    error::{Stop, at, from_sqlite},
    fence::Fence,
    guard::Guard,
    members::Members,
    open::{check_database_is_not_lost, connect_known},
    place::Place,
    steps::{InspectStep, Step, SurveyStep},
    tx::Mode,
    waits::Waits,
};

/// How long a report waits for the guard: longer than any transaction of a process that runs takes.
const PATIENCE: Duration = Duration::from_millis(250);

/// A look at a store from outside: no database is made, and nobody is registered.
///
/// A report is a snapshot. Where it finds that something has ended, by death or by its TTL, it tidies
/// up first. If a process that is stopped inside the store's guard is in the way of that, it goes on
/// after 250 ms without: it leaves out the holders that are over, and shows the rest as it is.
///
/// # Examples
/// ```
/// use leasehold_sqlite::{SqliteBackend, SqliteReport};
///
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("locks.db");
/// let backend = SqliteBackend::open(&path)?;
/// assert!(SqliteReport::open(&path)?.survey(None)?.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SqliteReport {
    place: Place,
    clock: Arc<dyn Clock>,
    guard: Guard,
    members: Members,
    waits: Waits,
    /// `None`: there is nothing in the store that could be shown.
    desk: Option<Desk>,
}

impl SqliteReport {
    /// Opens the store whose database is `path`. It blocks for 250 ms at most, and for the time of
    /// the look. A store that is not there yet has nothing to show.
    ///
    /// # Errors
    /// As [`SqliteBackend::open`](crate::SqliteBackend::open), without the store being busy.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Fault> {
        Self::at(Place::explicit(path.as_ref())?)
    }

    /// Opens the default store of this user.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_default() -> Result<Self, Fault> {
        Self::at(Place::default_at(&default_path()?)?)
    }

    /// The state of every lock in use, of one namespace or of all, in the order of their names
    /// (rule N4).
    ///
    /// # Errors
    /// `Corrupt` and what reading a database brings.
    pub fn survey(&mut self, namespace: Option<&Namespace>) -> Result<Vec<LockState>, Fault> {
        self.look(&SurveyStep(namespace.cloned())).map(Option::unwrap_or_default)
    }

    /// The state of a lock; `None`: it is not in use.
    ///
    /// # Errors
    /// As [`survey`](Self::survey).
    pub fn inspect(&mut self, lock: &Arc<LockId>) -> Result<Option<LockState>, Fault> {
        self.look(&InspectStep(Arc::clone(lock))).map(Option::flatten)
    }

    fn at(place: Place) -> Result<Self, Fault> {
        let guard = Guard::new(place.side_file("guard")?, place.side_path().join("guard"))?;
        let members = Members::of(&place)?;
        let desk = {
            // With it nobody is just making, wiping or closing the store. Without it somebody has
            // stopped, and in the middle of that only in the rarest of cases.
            let _held = if_free(guard.hold_by(Instant::now() + PATIENCE))?;
            open_desk(&place, &members)?
        };
        let (clock, waits) = (Arc::new(SystemClock::new()), Waits::default());
        Ok(Self { place, clock, guard, members, waits, desk })
    }

    fn look<S: Step>(&mut self, step: &S) -> Result<Option<S::Answer>, Fault> {
        let Self { place, clock, guard, members, waits, desk } = self;
        let Some(desk) = desk else { return Ok(None) };
        // Nobody's id: what is done here is done for others.
        let context = Context { me: ClientId::random(), clock, members, waits };
        let mut ran = desk.transact(context, Mode::Read, step);
        if matches!(ran, Err(Stop::NeedsWrite)) {
            let held = if_free(guard.hold_by(Instant::now() + PATIENCE))?;
            let mode = if held.is_some() { Mode::Thread } else { Mode::Glance };
            ran = desk.transact(context, mode, step);
        }
        let (answer, effects) = ran.map_err(|stop| at(&place.path, stop.into_fault()))?;
        effects.deliver(waits, members);
        Ok(Some(answer))
    }
}

impl fmt::Debug for SqliteReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteReport").field("path", &self.place.path).finish_non_exhaustive()
    }
}

/// The guard, or `None` where somebody else keeps it.
fn if_free<T>(held: Result<T, Fault>) -> Result<Option<T>, Fault> {
    match held {
        Err(fault) if fault.kind() == FaultKind::Unavailable => Ok(None),
        other => other.map(Some),
    }
}

fn open_desk(place: &Place, members: &Members) -> Result<Option<Desk>, Fault> {
    let boot = Boot::of(place)?;
    if !boot.is_this {
        boot.check_stale(place, members)?;
        return Ok(None);
    }
    if !place.has_database()? {
        check_database_is_not_lost(place, members)?;
        return Ok(None);
    }
    let Some(conn) = connect_known(place)? else { return Ok(None) };
    // SQLite tidies up when the last connection is closed, which must not meet somebody who opens.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
        .map_err(|error| at(&place.path, from_sqlite(error)))?;
    let fence = Fence::open(place.side_file("fence")?, place.side_path().join("fence"))?;
    Ok(Some(Desk::new(conn, fence)))
}
