//! The contract of Leasehold: what a lock is called, what may be asked of a store, and what a store
//! must answer.
//!
//! Applications use the crate `leasehold`, which re-exports what they meet. This crate is for
//! backend authors: implement [`Backend`], hold to the contract written at each of its methods, and
//! prove it with `leasehold-conformance`. [`MemoryBackend`] is the reference; [`machine`] is what a
//! store that keeps its locks as values can be made of.
#![forbid(unsafe_code)]

pub mod clock;
pub mod defaults;
pub mod machine;

mod backend;
mod call;
mod error;
mod fault;
mod holder;
mod memory;
mod name;
mod reply;
mod request;
mod state;
mod ticket;
mod token;
mod ttl;
mod wake;
mod weight;

pub use backend::{Backend, Capabilities};
pub use call::Call;
pub use clock::{Clock, LocalTime, ManualClock, Sleep, StoreTime, SystemClock};
pub use error::{Error, ErrorKind, InvalidArgument, Obstacle, Operation, Result};
pub use fault::{Fault, FaultKind};
pub use holder::HolderInfo;
pub use memory::{MemoryBackend, MemoryStore};
pub use name::{LockId, LockKind, LockName, Namespace};
pub use reply::{
    Acquired, Confirmed, Destroyed, Extended, Grant, Place, Refusal, Rejection, Released,
    Remaining, Renewed, Watched,
};
pub use request::{Acquire, Binding, CapacityClaim, Generation, Renewal, Share, WatchFor};
pub use state::{HolderState, LockCounts, LockState, WaiterState};
pub use ticket::Ticket;
pub use token::{AttemptId, ClientId, FencingToken, Token};
pub use ttl::Ttl;
pub use wake::Wake;
pub use weight::{Capacity, Weight};
