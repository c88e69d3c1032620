//! The memory store against the test kit, on a clock that only the kit moves.

use std::{sync::Arc, time::Duration};

use leasehold_conformance::{Cannot, Fixture, StoreUnderTest, WallStep};
use leasehold_core::{Backend, ManualClock, MemoryStore};

fn main() {
    leasehold_conformance::main(&Memory)
}

struct Memory;

impl Fixture for Memory {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn fresh(&self) -> Box<dyn StoreUnderTest> {
        let clock = ManualClock::new();
        let store = MemoryStore::with_clock(Arc::new(clock.clone()));
        Box::new(MemoryUnderTest { clock, store })
    }
}

struct MemoryUnderTest {
    clock: ManualClock,
    store: MemoryStore,
}

impl StoreUnderTest for MemoryUnderTest {
    fn client(&self) -> Arc<dyn Backend> {
        Arc::new(self.store.client())
    }

    fn kill(&self, client: Arc<dyn Backend>) {
        drop(client);
    }

    fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    fn step(&self) -> Duration {
        Duration::from_secs(1)
    }

    fn step_wall_clock(&self, _: WallStep) -> Result<(), Cannot> {
        Err(Cannot::new("memory reads the wall clock once, when the store is made"))
    }
}
