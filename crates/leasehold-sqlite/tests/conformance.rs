//! The SQLite store against the test kit, in real time, with holder processes that are killed and
//! stopped.

use std::{
    fs,
    io::{ErrorKind, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::PathBuf,
    process::Command,
    sync::Arc,
    thread,
    time::Duration,
};

use leasehold_conformance::{Cannot, Fixture, StoreUnderTest, WallStep, holder};
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

    /// The named pipe by which a client is told to look.
    fn pipe(&self, client: &dyn Backend) -> PathBuf {
        self.directory.path().join("locks.db.d/wake").join(client.client().to_string())
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

    fn disconnect(&self, client: &dyn Backend) -> Result<(), Cannot> {
        fs::remove_file(self.pipe(client)).expect("a client that lives has its pipe");
        Ok(())
    }

    fn fill_wake(&self, client: &dyn Backend) -> Result<(), Cannot> {
        // The client may read while this writes; a few times what a pipe holds is enough.
        const WRITES_MAX: usize = 64;
        let mut options = fs::OpenOptions::new();
        options.write(true).custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
        let mut pipe = options.open(self.pipe(client)).expect("a client that lives has its pipe");
        for _ in 0..WRITES_MAX {
            match pipe.write(&[b'l'; 4096]) {
                Ok(_) => {}
                Err(full) if full.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("the pipe cannot be written: {error}"),
            }
        }
        Ok(())
    }

    fn step_wall_clock(&self, _: WallStep) -> Result<(), Cannot> {
        Err(Cannot::new("sqlite reads the machine's wall clock, which is not the tests' to step"))
    }
}
