//! What a store's author writes.

use std::{fmt, process::Command, sync::Arc, time::Duration};

use leasehold_core::{Backend, defaults};

/// Makes stores to test.
pub trait Fixture: Sync {
    /// What trials of this store are marked with.
    fn name(&self) -> &'static str;

    /// A store of its own, empty, for one case.
    fn fresh(&self) -> Box<dyn StoreUnderTest>;

    /// The same for the case of this name, which may need a store that can be broken in its way.
    fn fresh_for(&self, case: &str) -> Box<dyn StoreUnderTest> {
        let _ = case;
        self.fresh()
    }

    /// Why no store of this kind can be made here, such as a server that is not installed. All
    /// cases are then listed as ignored, with this reason.
    fn missing(&self) -> Option<String> {
        None
    }

    /// How many cases run at the same time when the command line does not say. `None`: as many as
    /// there are processors. More serve a store whose cases wait for a time to pass.
    fn at_a_time(&self) -> Option<usize> {
        None
    }

    /// A client of the store at `address`, in another process than the one that made the store: the
    /// argument of [`holder::this_program`](crate::holder::this_program).
    ///
    /// # Panics
    /// When the store is not cross-process.
    fn connect(&self, address: &str) -> Arc<dyn Backend> {
        panic!("the store {} at {address} cannot be reached by other processes", self.name())
    }
}

/// One store under test. Dropping it removes what it left behind.
pub trait StoreUnderTest: Send + Sync {
    /// A new client.
    fn client(&self) -> Arc<dyn Backend>;

    /// Makes a client die without a goodbye, as nearly as that can be had within one process. The
    /// kit hands over the last reference.
    fn kill(&self, client: Arc<dyn Backend>);

    /// Lets time pass: moves a manual clock, or waits.
    fn advance(&self, by: Duration);

    /// The stretch of time that cases count in. A store in real time says how long a busy machine
    /// may delay a test without changing its outcome; a store with a manual clock says anything.
    fn step(&self) -> Duration;

    /// How to start the holder program on this store; `None`: no other process can reach it.
    fn holder(&self) -> Option<Command> {
        None
    }

    /// How long a lost push may delay whoever waits for it (rule L5).
    fn heartbeat(&self) -> Duration {
        defaults::SQLITE_HEARTBEAT
    }

    /// Cuts the path by which this client is told to look, for good: pushes to it are lost.
    ///
    /// # Errors
    /// There is no such path, or it cannot be cut from here.
    fn disconnect(&self, client: &dyn Backend) -> Result<(), Cannot> {
        let _ = client;
        Err(Cannot::new("pushes of this store need no connection"))
    }

    /// Fills the path by which this client is told to look, so that the next push finds no room.
    /// The client may empty it at once; a case that needs it full fills it again and again.
    ///
    /// # Errors
    /// The path cannot be full, or cannot be filled from here.
    fn fill_wake(&self, client: &dyn Backend) -> Result<(), Cannot> {
        let _ = client;
        Err(Cannot::new("pushes of this store need no room"))
    }

    /// Steps the wall clock that the store's time comes from, as an administrator or a time server
    /// may; no time passes by it.
    ///
    /// # Errors
    /// That clock is not the test's to step.
    fn step_wall_clock(&self, step: WallStep) -> Result<(), Cannot> {
        let _ = step;
        Err(Cannot::new("the store's wall clock is not the test's to step"))
    }

    /// Whether that clock is the store's time itself, so that a step of it moves every expiry, as on
    /// a server that knows no other. Else it only gives fencing tokens their start.
    fn lives_by_the_wall_clock(&self) -> bool {
        false
    }
}

/// A step of a wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WallStep {
    /// It was behind.
    Forward(Duration),
    /// It was ahead.
    Back(Duration),
}

/// Why a store cannot be broken in the way that a case needs. The case is then listed as ignored,
/// with this reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Cannot(&'static str);

impl Cannot {
    /// For this reason.
    pub const fn new(reason: &'static str) -> Self {
        Self(reason)
    }
}

impl fmt::Display for Cannot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Cannot {}
