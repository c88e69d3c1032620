//! The toy store against the test kit, on a clock that only the kit moves.
#![forbid(unsafe_code)]

mod toy;

use std::{sync::Arc, time::Duration};

use leasehold_conformance::{Fixture, StoreUnderTest};
use leasehold_core::{Backend, ManualClock};

use toy::{Client, Toy};

fn main() {
    leasehold_conformance::main(&ToyFixture)
}

struct ToyFixture;

impl Fixture for ToyFixture {
    fn name(&self) -> &'static str {
        "toy"
    }

    fn fresh(&self) -> Box<dyn StoreUnderTest> {
        let clock = ManualClock::new();
        Box::new(UnderTest(Toy::new(Arc::new(clock.clone())), clock))
    }
}

struct UnderTest(Arc<Toy>, ManualClock);

impl StoreUnderTest for UnderTest {
    fn client(&self) -> Arc<dyn Backend> {
        Arc::new(Client::of(&self.0))
    }

    fn kill(&self, client: Arc<dyn Backend>) {
        drop(client);
    }

    fn advance(&self, by: Duration) {
        self.1.advance(by);
    }

    fn step(&self) -> Duration {
        Duration::from_secs(1)
    }
}
