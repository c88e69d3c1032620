//! `cargo xtask bench memory`: named locks on the memory store, through the public API.
//!
//! Everything runs in spawned tasks of Tokio, with the default call unless the row says otherwise:
//! a timeout of 60 s and a renewed TTL of 60 s. For the arguments see [`Report`].

#![forbid(unsafe_code)]

mod growth;
mod hand_off;
mod idle;
mod pairs;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use leasehold_benches::{Budget, Report, Result, child_arguments};

const FULL: Budget = Budget { rounds: 11, run: Duration::from_millis(150) };
const QUICK: Budget = Budget { rounds: 3, run: Duration::from_millis(30) };
const MINUTE: Duration = Duration::from_secs(60);

fn main() -> Result<()> {
    if let Some(arguments) = child_arguments() {
        return idle::child(&arguments);
    }
    let mut report = Report::from_arguments(FULL, QUICK)?;
    pairs::measure(&mut report);
    hand_off::measure(&mut report);
    growth::measure(&mut report);
    idle::measure(&mut report)?;
    report.finish()
}

/// The floor of a lock by name: a map behind a mutex that says which names are taken.
#[derive(Clone, Default)]
struct Map(Arc<Mutex<HashMap<Arc<str>, bool>>>);

impl Map {
    fn take(&self, name: &Arc<str>) -> bool {
        !std::mem::replace(self.lock().entry(Arc::clone(name)).or_default(), true)
    }

    fn give(&self, name: &str) {
        self.lock().remove(name);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, bool>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
