//! One lock among processes, ours and the peers, behind the same three calls.

use std::{fs::File, path::Path, thread::sleep, time::Duration};

use leasehold::{Lease, NamedMutex};
use leasehold_benches::{Result, runtime};
use rusqlite::Connection;
use rustix::fs::{FlockOperation, flock};
use tokio::runtime::Runtime;

/// How often the naive peer looks.
const POLL: Duration = Duration::from_millis(10);

/// Whose lock it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Ours,
    /// A table with one row per held lock, under `BEGIN IMMEDIATE`, polled. Knows no crash, no TTL,
    /// no order.
    Naive,
    /// The kernel's file lock. Knows no order among those who wait, no TTL, no names.
    Flock,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Ours, Self::Naive, Self::Flock];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ours => "leasehold",
            Self::Naive => "naive table",
            Self::Flock => "flock",
        }
    }

    pub(crate) fn of(name: &str) -> Result<Self> {
        let kind = Self::ALL.into_iter().find(|kind| kind.name() == name);
        kind.ok_or_else(|| format!("no lock is called {name}").into())
    }
}

/// A lock that this process may hold.
pub(crate) enum Locker {
    Ours { runtime: Runtime, mutex: NamedMutex, lease: Option<Lease> },
    Naive(Connection),
    Flock(File),
}

impl Locker {
    pub(crate) fn open(kind: Kind, folder: &Path) -> Result<Self> {
        match kind {
            Kind::Ours => {
                let runtime = runtime(2);
                let locks = runtime.block_on(leasehold::connect(&crate::url(folder)))?;
                Ok(Self::Ours { runtime, mutex: locks.mutex("orders")?, lease: None })
            }
            Kind::Naive => {
                let connection = Connection::open(folder.join("naive.db"))?;
                connection.busy_timeout(Duration::from_secs(60))?;
                connection.execute_batch(
                    "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF;
                     CREATE TABLE IF NOT EXISTS locks (name TEXT PRIMARY KEY) WITHOUT ROWID;",
                )?;
                Ok(Self::Naive(connection))
            }
            Kind::Flock => Ok(Self::Flock(File::create(folder.join("flock"))?)),
        }
    }

    /// Waits for the lock, in a spawned task as an application does. `queued` is called when it has
    /// to wait.
    pub(crate) fn lock(&mut self, queued: impl FnOnce() + Send + 'static) -> Result<()> {
        match self {
            Self::Ours { runtime, mutex, lease } => {
                let mutex = mutex.clone();
                let waiting = async move { mutex.lock().on_queued(|_| queued()).await };
                *lease = Some(runtime.block_on(runtime.spawn(waiting))??);
            }
            Self::Naive(connection) => {
                let mut queued = Some(queued);
                while !naive(connection, "INSERT OR IGNORE INTO locks VALUES ('orders')")? {
                    if let Some(queued) = queued.take() {
                        queued();
                    }
                    sleep(POLL);
                }
            }
            Self::Flock(file) => {
                if flock(&*file, FlockOperation::NonBlockingLockExclusive).is_err() {
                    queued();
                    flock(&*file, FlockOperation::LockExclusive)?;
                }
            }
        }
        Ok(())
    }

    pub(crate) fn unlock(&mut self) -> Result<()> {
        match self {
            Self::Ours { runtime, lease, .. } => {
                let lease = lease.take().ok_or("not held")?;
                let releasing = async move { lease.release().await };
                runtime.block_on(runtime.spawn(releasing))??;
            }
            Self::Naive(connection) => {
                naive(connection, "DELETE FROM locks WHERE name = 'orders'")?;
            }
            Self::Flock(file) => flock(&*file, FlockOperation::Unlock)?,
        }
        Ok(())
    }
}

/// One statement of the naive peer in a transaction of its own; whether it changed anything.
pub(crate) fn naive(connection: &Connection, statement: &str) -> Result<bool> {
    connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
    let changed = connection.prepare_cached(statement)?.execute([])?;
    connection.prepare_cached("COMMIT")?.execute([])?;
    Ok(changed > 0)
}
