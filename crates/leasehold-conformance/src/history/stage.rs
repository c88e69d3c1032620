//! Where a history plays: a store that processes reach by its address, and what may be done to it
//! from outside.

use std::{path::Path, sync::Arc};

use leasehold_core::{Backend, Fault};

/// A kind of store.
pub trait Stage: Sync {
    /// A new client of the store at `address`, which is made if it is not there.
    ///
    /// # Errors
    /// Those of the store.
    fn connect(&self, address: &Path) -> Result<Arc<dyn Backend>, Fault>;

    /// Does something to the store under load that must disturb nobody, and says what it was. `turn`
    /// counts the calls. While it runs no process of the history is about to connect.
    ///
    /// # Errors
    /// What should not be as it was found.
    fn disturb(&self, address: &Path, turn: u32) -> Result<&'static str, String> {
        let _ = (address, turn);
        Ok("nothing")
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
}
