//! What a store's author writes.

use std::{process::Command, sync::Arc, time::Duration};

use leasehold_core::Backend;

/// Makes stores to test.
pub trait Fixture: Sync {
    /// What trials of this store are marked with.
    fn name(&self) -> &'static str;

    /// A store of its own, empty, for one case.
    fn fresh(&self) -> Box<dyn StoreUnderTest>;

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
}
