//! Random programs that take plain locks and leases within one another: a lease that runs out makes
//! nobody wait for ever, so no deadlock is told over it, and those of the plain locks around it are
//! told all the same (rules R2b and R4).

#[path = "../../../leasehold-sync/tests/programs/judge.rs"]
mod judge;
#[path = "../../../leasehold-sync/tests/programs/kit.rs"]
mod kit;
mod leases;

mod deadlock_free;
mod stuck;
