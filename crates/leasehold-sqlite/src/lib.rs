//! The embedded store of Leasehold: locks by name for all processes of one machine, no server.
//!
//! [`SqliteBackend`] is a client of a store, which is one SQLite database with a directory of
//! helper files beside it. Applications hand it to the `LockManager` of the crate `leasehold`; how
//! it works, what it guarantees and what it needs is told in `docs/backends/sqlite.md`.
//!
//! # Fork
//! A client belongs to the process that opened it. After a `fork` without `exec` the child has a
//! copy that must not be used: every call on it is answered with a fault of kind `Unsupported`.
//! And a child that lives on with the inherited descriptors keeps its parent's client alive in the
//! eyes of the others, so grants of a parent that dies are freed only when the child ends as well.
//!
//! # Examples
//! ```
//! use std::sync::Arc;
//! use leasehold_core::{
//!     Acquire, Acquired, AttemptId, Backend, Binding, Capacity, CapacityClaim, HolderInfo, LockId,
//!     LockKind, LockName, Namespace, Share, Token, Ttl, defaults,
//! };
//! use leasehold_sqlite::SqliteBackend;
//!
//! # let directory = tempfile::tempdir()?;
//! let backend = SqliteBackend::open(directory.path().join("locks.db"))?;
//! let lock = LockId::new(Namespace::default(), LockKind::Mutex, LockName::new("orders")?);
//! let request = Acquire {
//!     lock: Arc::new(lock),
//!     generation: None,
//!     capacity: CapacityClaim::Exactly(Capacity::ONE),
//!     share: Share::ONE,
//!     token: Token::random(),
//!     attempt: AttemptId::random(),
//!     ttl: Some(Ttl::DEFAULT),
//!     binding: Binding::Client,
//!     wait: false,
//!     not_after: None,
//!     queue_limit: defaults::QUEUE_LIMIT,
//!     info: Arc::new(HolderInfo::here()),
//! };
//! // Nobody else is at the store, so the answer is there at once.
//! let answer = backend.acquire(&request).into_ready().unwrap()?;
//! assert!(matches!(answer, Acquired::Granted(_)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

#[cfg(not(target_os = "linux"))]
compile_error!(
    "leasehold-sqlite runs on Linux only: its calls to the system are in src/sys.rs and have not \
     been written for this one"
);

mod answer;
mod backend;
mod boot;
mod client;
mod config;
mod desk;
mod effects;
mod error;
mod fence;
mod fresh;
mod guard;
mod members;
mod open;
mod place;
mod report;
mod rows;
mod settle;
mod steps;
mod sys;
mod thread;
mod tx;
mod waits;

pub use backend::SqliteBackend;
pub use config::{default_path, path_of_url};
pub use report::SqliteReport;
