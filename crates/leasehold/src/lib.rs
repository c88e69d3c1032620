#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod observe;

/// Plain locks of one process: they guard data, are exactly fair, and cannot expire (rule T7). Their
/// error is a small one of their own.
pub mod sync {
    #[doc(inline)]
    pub use leasehold_sync::*;
}

mod acquire_all;
mod acquiring;
mod connect;
mod core;
mod entry;
mod hand_over;
mod lease;
mod lease_state;
mod life_cycle;
mod manager;
mod named;
mod one_process;
mod options;
mod renew;
mod run;
mod shared_op;
mod shutdown;
#[cfg(feature = "tokio")]
mod tokio_clock;
mod watch;

/// The programs of the recipes, as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/recipes.md")]
struct Recipes;

pub use leasehold_core::{
    Backend, Capacity, Clock, Error, ErrorKind, Fault, FaultKind, FencingToken, HolderInfo,
    HolderState, InvalidArgument, LockCounts, LockId, LockKind, LockName, LockState, ManualClock,
    MemoryBackend, MemoryStore, Namespace, Obstacle, Operation, Remaining, Result, Share, Sleep,
    SystemClock, Ticket, Token, Ttl, WaiterState, Weight, defaults,
};
#[cfg(feature = "sqlite")]
pub use leasehold_sqlite::SqliteBackend;

#[cfg(feature = "tokio")]
pub use crate::tokio_clock::TokioClock;
pub use crate::{
    acquire_all::AcquireAll,
    acquiring::{Acquiring, Detaching, TryAcquiring},
    connect::connect,
    hand_over::{Adopt, Detached, LeaseRef, NotHandedOver},
    lease::Lease,
    lease_state::LeaseState,
    life_cycle::{LockInfo, LockSnapshot},
    manager::{LockManager, ManagerBuilder},
    named::{NamedMutex, NamedRwLock, NamedSemaphore},
    one_process::{LeaseMutex, LeaseRwLock, LeaseSemaphore},
    options::{Acquire, CancelReason, TryAcquire},
    run::RunError,
    shutdown::Shutdown,
};
