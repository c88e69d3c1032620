//! Locks from configuration: start, sharing and shutdown managed (rules S).
//!
//! An application names its lock entries in a file; [`LockService`] checks them, starts them when
//! they are needed, gives every user of an entry the same manager, and ends them all in order.
//! docs/service.md is the guide; [`adapter`] and [`kit`] are for authors of adapters.
//!
//! ```
//! # pollster::block_on(async {
//! use std::time::Duration;
//! use leasehold_service::{LockService, Sources};
//!
//! let config = Sources::new().toml("[entries.jobs]\nadapter = 'memory'\nnamespace = 'jobs'\n");
//! let svc = LockService::builder("shop").config(config.load()?).boot()?.start().await?;
//! let sync = svc.manager("jobs").await?.executor("orders:sync")?;
//! match sync.try_run(Duration::from_secs(1), async { 7 }).await? {
//!     Some(n) => println!("{n} orders"),
//!     None => println!("busy"),
//! }
//! svc.shutdown().await?;
//! # Ok::<(), Box<dyn std::error::Error>>(()) })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub mod adapter;
pub mod kit;
pub mod observe;
#[cfg(feature = "suite")]
pub mod suite;

/// The programs of the guide, as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/service.md")]
struct Guide;

mod adapters;
mod builder;
mod config;
mod diagnostics;
mod entry;
mod executor;
mod lease;
mod lock;
mod manager;
mod service;

pub use leasehold::{
    CancelReason, Clock, Error, ErrorKind, FencingToken, InvalidArgument, LockId, ManualClock,
    Namespace, Operation, Result, SystemClock, Ttl,
};

pub use crate::{
    builder::ServiceBuilder,
    config::{
        ConfigError, DEFAULT_VARIABLE, ENTRY_VARIABLE_PREFIX, EntryConfig, Problem, Secret,
        ServiceConfig, Settings, Sources, load,
    },
    diagnostics::{Diagnostic, What},
    executor::{Executor, Run, TryRun},
    lease::ServiceLease,
    lock::{Locking, ServiceLock, TryLocking},
    manager::ServiceManager,
    service::LockService,
};
