//! The store of Leasehold for many machines: locks by name on Redis and Valkey.

#![forbid(unsafe_code)]

mod backend;
mod book;
mod census;
mod checks;
mod client;
mod config;
mod desk;
mod dial;
mod error;
mod fleet;
mod follow;
mod guard;
mod lane;
mod link;
mod net;
mod offset;
mod pulse;
mod report;
mod roster;
#[doc(hidden)]
pub mod script;
mod sentinel;
mod site;
mod slots;
mod survey;
mod thread;
mod time;
#[cfg(feature = "tls")]
mod tls;
mod topology;
mod trip;
mod url;

pub use backend::RedisBackend;
pub use census::{RedisSentinel, RedisServer};
pub use config::RedisConfig;
pub use report::{Finding, RedisReport};
