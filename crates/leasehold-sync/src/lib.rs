//! Fair locks of one process, for async tasks and for threads: [`Mutex`], [`RwLock`] and
//! [`Semaphore`].
//!
//! - **Fair**: requests are granted in the order they arrive, from hand to hand. Nobody barges,
//!   not even a `try`; a queued write is not overtaken by later reads, nor a large weight by small
//!   ones. `RwLock` and `Semaphore` are faces of the one FIFO queue that `Mutex` is too.
//! - **Fast**: a free lock costs one compare-and-swap to take and one to give back. A waiter lives
//!   inside of its own future, so nothing is allocated.
//! - **Any runtime**: Tokio, smol, a bare `block_on`, threads. With the feature `tokio`, a task
//!   asks Tokio's budget *before* it takes a permit, and timeouts follow Tokio's clock, a paused
//!   one included.
//! - **Safe to drop**: dropping a future at any point takes its request back; a grant that was on
//!   its way is passed on. A panic inside of a critical section releases the lock and poisons
//!   nothing.
//!
//! Plain calls are infallible. A timeout or a cancellation is an option of the call and turns its
//! result into a `Result`:
//!
//! ```
//! use std::time::Duration;
//!
//! use leasehold_sync::{Error, Mutex};
//!
//! # fn main() -> Result<(), Error> { pollster::block_on(async {
//! let m = Mutex::new(Vec::new());
//! m.lock().await.push(1);
//! match m.lock().timeout(Duration::from_millis(50)).await {
//!     Ok(mut g) => g.push(2),
//!     Err(e) if e.is_timeout() => eprintln!("{e}"),
//!     Err(e) => return Err(e),
//! }
//! m.lock().blocking().push(3);
//! assert_eq!(m.into_inner(), [1, 2, 3]);
//! # Ok(()) }) }
//! ```
//!
//! These locks guard data and cannot expire (rule T7). `lock`, `read`, `write` and `acquire` do not
//! know who holds a lock, so a task that locks twice waits for itself. `run_exclusive` and
//! `run_shared` do know: they are told of that, and of deadlocks, with the places in the source
//! (rules R):
//!
//! ```
//! # pollster::block_on(async {
//! let m = leasehold_sync::Mutex::new(1);
//! let twice = m.run_exclusive(async |_| m.run_exclusive(async |n| *n).await).await?;
//! assert!(twice.unwrap_err().is_reentrant());
//! # Ok::<(), leasehold_sync::Error>(()) }).unwrap();
//! ```
//!
//! Needs 64-bit atomics.
//!
//! # Features
//!
//! - `tokio`: Tokio's budget, and in current-thread runtimes, whose time may be paused, Tokio's
//!   timers. Elsewhere a timer thread of this crate serves. Whether a runtime has timers is found
//!   out by trying, once per runtime, with the panic hook set aside for that one try. A program
//!   built with `panic = "abort"` uses this crate's own timer thread instead.

#![deny(unsafe_op_in_unsafe_fn)]

mod acquire;
mod acquire_with;
mod block;
mod budget;
mod cancel;
mod error;
#[cfg(not(leasehold_loom))]
#[doc(hidden)]
pub mod frames;
mod guard;
mod hold;
mod keyed;
mod mutex;
#[cfg(not(leasehold_loom))]
mod object;
mod raw;
#[cfg(not(leasehold_loom))]
mod run;
mod rw_lock;
mod semaphore;
mod timer;
mod watch;

#[cfg(not(leasehold_loom))]
pub use crate::frames::{InCurrentScope, Inherits, Scope, scope};
pub use crate::{
    acquire::{Acquire, Grant},
    acquire_with::AcquireWith,
    cancel::CancelReason,
    error::{Blocker, CapacityError, DeadlockStep, Error, ErrorKind, LockKind, Place},
    keyed::{
        AcquireKeyed, AcquireKeyedWith, KeyHash, KeyHasher, KeyedGuard, KeyedLock, KeyedSource,
    },
    mutex::{Mutex, MutexGuard, OwnedMutexGuard},
    rw_lock::{
        MappedRwLockWriteGuard, OwnedMappedRwLockWriteGuard, OwnedRwLockReadGuard,
        OwnedRwLockUpgradableGuard, OwnedRwLockWriteGuard, RwLock, RwLockReadGuard,
        RwLockUpgradableGuard, RwLockWriteGuard, Upgrade,
    },
    semaphore::{OwnedSemaphorePermit, Semaphore, SemaphorePermit},
    watch::Watch,
};
#[cfg(not(leasehold_loom))]
pub use crate::{
    keyed::CheckedKeyedLock,
    object::{Object, ObjectLock, object_exclusive, object_shared},
};
