//! Where a history plays: a store that processes reach by its address, and what may be done to it
//! from outside.

use std::{path::Path, sync::Arc, time::Instant};

use leasehold_core::{Backend, Fault};

/// What was done to a store.
#[derive(Clone, Copy, Debug)]
pub struct Disturbance {
    /// In a few words, for the summary.
    pub what: &'static str,
    /// Whether the store's clock is another one since: what was promised before it may be over.
    pub steps_clock: bool,
    /// What a replica that took a server's place may never have heard of.
    pub forgets: Option<Forgets>,
}

/// The answers that a failover may have made void. That is all: what was answered before is kept.
#[derive(Clone, Copy, Debug)]
pub struct Forgets {
    /// What was answered before this, the replica had.
    pub since: Instant,
    /// Before this the replica answered nothing.
    pub from: Instant,
    /// After this the server before it answered nothing.
    pub until: Instant,
}

impl From<&'static str> for Disturbance {
    fn from(what: &'static str) -> Self {
        Self { what, steps_clock: false, forgets: None }
    }
}

/// A kind of store.
pub trait Stage: Sync {
    /// What it is, for reports.
    fn name(&self) -> &'static str {
        "the store"
    }

    /// A new client of the store at `address`, which is made if it is not there.
    ///
    /// # Errors
    /// Those of the store.
    fn connect(&self, address: &Path) -> Result<Arc<dyn Backend>, Fault>;

    /// Does something to the store under load that must disturb nobody, and says what it was. `turn`
    /// counts the calls. While it runs no process of the history is about to connect.
    ///
    /// A step of the store's clock may end grants and lose waiters that were there before it, and the
    /// checker allows for that; a step back keeps the dead for as much longer, so it has to be small.
    /// So may a failover, as far as [`Forgets`] goes; what it cost is told in
    /// [`Report::explained`](super::Report::explained).
    ///
    /// # Errors
    /// What should not be as it was found.
    fn disturb(&self, address: &Path, turn: u32) -> Result<Disturbance, String> {
        let _ = (address, turn);
        Ok("nothing".into())
    }

    /// Makes the store believe that the machine was started again, while nobody has it open, and
    /// checks that nothing of before is left in it.
    ///
    /// # Errors
    /// What should not be as it was found.
    fn reboot(&self, address: &Path) -> Result<(), String> {
        let _ = address;
        Ok(())
    }

    /// Checks that the history leaves nothing behind in the store. The last thing that happens.
    ///
    /// # Errors
    /// What is there and should not be.
    fn end(&self, address: &Path) -> Result<(), String> {
        let _ = address;
        Ok(())
    }
}
