#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod observe;

mod acquiring;
mod connect;
mod core;
mod entry;
mod lease;
mod lease_state;
mod manager;
mod named;
mod options;
mod renew;
mod run;
mod shared_op;
mod shutdown;
#[cfg(feature = "tokio")]
mod tokio_clock;

pub use leasehold_core::{
    Backend, Capacity, Clock, Error, ErrorKind, Fault, FaultKind, FencingToken, HolderInfo,
    HolderState, InvalidArgument, LockCounts, LockId, LockKind, LockName, LockState, ManualClock,
    MemoryBackend, MemoryStore, Namespace, Obstacle, Operation, Remaining, Result, Share, Sleep,
    SystemClock, Token, Ttl, WaiterState, Weight, defaults,
};
#[cfg(feature = "sqlite")]
pub use leasehold_sqlite::SqliteBackend;

#[cfg(feature = "tokio")]
pub use crate::tokio_clock::TokioClock;
pub use crate::{
    acquiring::{Acquiring, TryAcquiring},
    connect::connect,
    lease::Lease,
    lease_state::LeaseState,
    manager::{LockManager, ManagerBuilder},
    named::{NamedMutex, NamedRwLock, NamedSemaphore},
    options::{Acquire, CancelReason, TryAcquire},
    run::RunError,
    shutdown::Shutdown,
};
