//! Random programs under an executor of their own, which polls what it likes: no deadlock is told
//! where there is none, and each is told where there is one (rule R4).
#![cfg(not(leasehold_loom))]

mod deadlock_free;
mod judge;
mod kit;
mod stuck;
mod threads;

pub(crate) use kit::{Random, Task, join, poll, polls};
