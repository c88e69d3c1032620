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
//! # struct MyFixture;
//! # impl leasehold_conformance::Fixture for MyFixture {
//! #     fn name(&self) -> &'static str { "mine" }
//! #     fn fresh(&self) -> Box<dyn leasehold_conformance::StoreUnderTest> { unimplemented!() }
//! # }
//! fn main() {
//!     leasehold_conformance::main(&MyFixture);
//! }
//! ```
//!
//! The cases are data ([`cases()`]): a name, the rule it proves, the capability it needs, and a
//! function that drives nothing but the [`Backend`](leasehold_core::Backend) trait. A case whose
//! capability the store lacks runs as its opposite where it has one, else it is listed as ignored
//! with what it needs; no case passes without having run.
//!
//! Cross-process cases start a second program on the store, the *holder* ([`holder`]). [`main()`]
//! is that program too: it runs as one when [`holder::this_program`] started it, so nothing has to
//! be built or found first.
#![forbid(unsafe_code)]

pub mod bench;
pub mod cases;
pub mod holder;

mod case;
mod fixture;
mod model;
mod run;

pub use bench::Bench;
pub use case::{Case, Needs};
pub use cases::cases;
pub use fixture::{Fixture, StoreUnderTest};
pub use run::{main, trials};
