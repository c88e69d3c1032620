//! The life of a service against a gated adapter, on a deterministic executor.

mod acquiring;
mod adapter;
mod ending;
mod interleavings;
mod panics;
mod stage;
mod starting;
