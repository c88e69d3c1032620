//! The test kit that proves a store of Leasehold.
//!
//! A store's author writes a [`Fixture`] (how to make a fresh store, a client of it, the death of a
//! client, the passing of time) and a test target without Rust's own harness:
//!
//! ```toml
//! [[test]]
//! name = "conformance"
//! harness = false
//! ```
//!
//! ```no_run
//! use std::{sync::Arc, time::Duration};
//!
//! use leasehold_conformance::{Fixture, StoreUnderTest};
//! use leasehold_core::{Backend, ManualClock, MemoryStore};
//!
//! struct Memory;
//!
//! impl Fixture for Memory {
//!     fn name(&self) -> &'static str {
//!         "memory"
//!     }
//!     fn fresh(&self) -> Box<dyn StoreUnderTest> {
//!         let clock = ManualClock::new();
//!         Box::new(Fresh(MemoryStore::with_clock(Arc::new(clock.clone())), clock))
//!     }
//! }
//!
//! struct Fresh(MemoryStore, ManualClock);
//!
//! impl StoreUnderTest for Fresh {
//!     fn client(&self) -> Arc<dyn Backend> {
//!         Arc::new(self.0.client())
//!     }
//!     fn kill(&self, client: Arc<dyn Backend>) {
//!         drop(client);
//!     }
//!     fn advance(&self, by: Duration) {
//!         self.1.advance(by);
//!     }
//!     fn step(&self) -> Duration {
//!         Duration::from_secs(1)
//!     }
//! }
//!
//! fn main() {
//!     leasehold_conformance::main(&Memory);
//! }
//! ```
//!
//! The cases are data ([`cases()`]): a name, the rule it proves, the capability it needs, and a
//! function that drives nothing but the [`Backend`](leasehold_core::Backend) trait. A case whose
//! capability the store lacks runs as its opposite where it has one, else it is listed as ignored
//! with what it needs; no case passes without having run. Some cases break the store first: they
//! cut or fill the path of a client's pushes, or step the wall clock
//! ([`StoreUnderTest::disconnect`], [`fill_wake`](StoreUnderTest::fill_wake),
//! [`step_wall_clock`](StoreUnderTest::step_wall_clock)); on a store that cannot be broken so they
//! are ignored, with its reason.
//!
//! Cross-process cases start a second program on the store, the *holder* ([`holder`]). [`main()`]
//! is that program too: it runs as one when [`holder::this_program`] started it, so nothing has to
//! be built or found first.
#![forbid(unsafe_code)]

pub mod bench;
pub mod cases;
pub mod history;
pub mod holder;

mod case;
mod fixture;
mod model;
mod run;

pub use bench::Bench;
pub use case::{Case, Needs};
pub use cases::cases;
pub use fixture::{Cannot, Fixture, StoreUnderTest, WallStep};
pub use run::{main, main_of, trials};
