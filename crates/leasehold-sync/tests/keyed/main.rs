//! What keyed locks promise (rules K), by what could go wrong. Only the public API is used.
#![cfg(not(leasehold_loom))]

mod cancellation;
mod checked;
#[path = "../common/mod.rs"]
mod common;
mod conflicts;
mod fairness;
mod forgotten;
mod model;
mod naive;
mod objects;
mod runtimes;
mod traces;

pub(crate) use common::{Count, HOUR, poll, ready};
