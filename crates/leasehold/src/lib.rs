// Its examples use what is on by default.
#![cfg_attr(feature = "macros", doc = include_str!("../README.md"))]
#![cfg_attr(not(feature = "macros"), doc = "Locks that are exactly fair; see the README.")]
#![forbid(unsafe_code)]

pub mod observe;

/// Plain locks of one process: they guard data, are exactly fair, and cannot expire (rule T7). Their
/// error is a small one of their own.
///
/// ```
/// # use std::time::Duration;
/// # fn ms(ms: u64) -> Duration { Duration::from_millis(ms) }
/// # pollster::block_on(async {
/// use leasehold::Mutex;
///
/// let m = Mutex::new(Vec::new());
/// m.lock().await.push(1); // infallible, as in Tokio
/// match m.lock().timeout(ms(50)).await {
///     Ok(mut g) => g.push(2),
///     Err(e) if e.is_timeout() => eprintln!("{e}"),
///     Err(e) => return Err(e.into()),
/// }
/// let n = m.run_exclusive(async |v| { v.push(3); v.len() }).await?; // checked: Reentrant, Deadlock
/// assert_eq!(n, 3);
/// # Ok::<(), leasehold::Error>(()) }).unwrap();
/// ```
pub mod sync {
    #[doc(inline)]
    pub use leasehold_sync::*;
}

#[cfg(feature = "macros")]
#[doc(hidden)]
pub mod __private;
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
#[cfg(feature = "macros")]
pub use leasehold_macros::{exclusive, shared};
#[cfg(feature = "sqlite")]
pub use leasehold_sqlite::SqliteBackend;
pub use leasehold_sync::{
    Blocker, CancelReason, DeadlockStep, InCurrentScope, Inherits, Mutex, MutexGuard, Place,
    RwLock, Scope, Semaphore, scope,
};

#[cfg(feature = "tokio")]
pub use crate::tokio_clock::TokioClock;
pub use crate::{
    acquire_all::AcquireAll,
    acquiring::{Acquiring, Detaching, TryAcquiring},
    connect::{connect, is_scheme},
    hand_over::{Adopt, Detached, LeaseRef, NotHandedOver},
    lease::Lease,
    lease_state::LeaseState,
    life_cycle::{LockInfo, LockSnapshot},
    manager::{LockManager, ManagerBuilder},
    named::{NamedMutex, NamedRwLock, NamedSemaphore},
    one_process::{LeaseMutex, LeaseRwLock, LeaseSemaphore},
    options::{Acquire, TryAcquire},
    run::RunError,
    shutdown::Shutdown,
};
