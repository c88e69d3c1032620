//! Drives the real program, one module per theme.

mod common;
mod crash;
mod environment;
mod exit_codes;
mod hand_over;
mod lost_lease;
mod secrets;
mod signals;
mod take_turns;
mod terminal;
mod tickets;
