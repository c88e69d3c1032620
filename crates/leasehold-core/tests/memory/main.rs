//! The memory store through the `Backend` trait alone, by theme.

mod client_death;
mod expiry;
mod fairness;
mod generations;
mod kit;
mod leases;
mod model;
mod refusals;
mod replay;
mod reports;
mod waking;
mod watchers;
