//! Drives the real program, one module per theme.

mod common;
mod crash;
mod environment;
mod exit_codes;
mod lost_lease;
mod signals;
mod take_turns;
mod terminal;
