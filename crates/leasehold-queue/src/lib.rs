//! The weighted FIFO permit queue under every lock of Leasehold.
//!
//! A lock is a *permit queue* (rule Q1): a capacity, a number of permits in use, and a FIFO of
//! waiters, each with the weight it asks for. A mutex has capacity 1, a semaphore capacity n, and
//! in a read-write lock a read weighs 1 and a write weighs the whole capacity.
//!
//! This crate is that queue as a plain value: no I/O, no clock, no threads, no async, no unsafe.
//! It decides *who gets in*; its caller decides when to ask, under which lock, and how to wake.
//!
//! - [`rules`]: the algorithm as small pure functions, for stores that keep their holders and
//!   waiters in tables and read only the head of the queue.
//! - [`PermitQueue`]: the same algorithm with the waiters in memory. Every operation costs O(1)
//!   per request and per grant, removal of any waiter included (rule Q6).
//!
//! # Examples
//!
//! ```
//! use leasehold_queue::{Enqueued, PermitQueue};
//!
//! // A read-write lock for four readers: a read weighs 1, a write weighs 4.
//! let mut queue = PermitQueue::new(4)?;
//! assert!(queue.acquire_now(1)?);
//!
//! let Ok(Enqueued::Queued(writer)) = queue.enqueue(4, "writer") else { unreachable!() };
//! let Ok(Enqueued::Queued(_)) = queue.enqueue(1, "late reader") else { unreachable!() };
//! // Three permits are free, yet nobody overtakes the queued writer, not even a try (rule Q3).
//! assert!(!queue.acquire_now(1)?);
//!
//! // The writer gives up, so the reader behind it gets in at once (rule Q2).
//! let mut granted = Vec::new();
//! let left = queue.cancel(writer, |_key, weight, who| granted.push((who, weight)));
//! assert_eq!(left, Some("writer"));
//! assert_eq!(granted, [("late reader", 1)]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod error;
mod permit_queue;
mod resize;
pub mod rules;
mod upgradable;
mod waiter_list;

pub use crate::{
    error::{CapacityError, EnqueueError, HoldError, WeightError},
    permit_queue::{Enqueued, PermitQueue},
    rules::{CAPACITY_MAX, Permits},
    waiter_list::WaiterKey,
};
