//! The SQLite store against the test kit, in real time, with holder processes that are killed and
//! stopped.

use std::{path::PathBuf, process::Command, sync::Arc, thread, time::Duration};

use leasehold_conformance::{Fixture, StoreUnderTest, holder};
use leasehold_core::Backend;
use leasehold_sqlite::SqliteBackend;
use tempfile::TempDir;

fn main() {
    leasehold_conformance::main(&Sqlite)
}

struct Sqlite;

impl Fixture for Sqlite {
    fn name(&self) -> &'static str {
        "sqlite"
    }

    fn fresh(&self) -> Box<dyn StoreUnderTest> {
        let directory = tempfile::tempdir().expect("a directory for the store");
        Box::new(SqliteUnderTest { directory })
    }

    fn connect(&self, address: &str) -> Arc<dyn Backend> {
        Arc::new(SqliteBackend::open(address).expect("the store can be opened"))
    }
}

struct SqliteUnderTest {
    directory: TempDir,
}

impl SqliteUnderTest {
    fn path(&self) -> PathBuf {
        self.directory.path().join("locks.db")
    }
}

impl StoreUnderTest for SqliteUnderTest {
    fn client(&self) -> Arc<dyn Backend> {
        Arc::new(SqliteBackend::open(self.path()).expect("the store can be opened"))
    }

    /// A drop says goodbye where it can; deaths without one are those of the holder processes.
    fn kill(&self, client: Arc<dyn Backend>) {
        drop(client);
    }

    fn advance(&self, by: Duration) {
        // sleep: the store's clock is the machine's; a TTL has to pass.
        thread::sleep(by);
    }

    fn step(&self) -> Duration {
        Duration::from_millis(250)
    }

    fn holder(&self) -> Option<Command> {
        Some(holder::this_program(self.path()))
    }
}
