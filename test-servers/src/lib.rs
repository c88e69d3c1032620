//! Starts and stops real Redis and Valkey servers for tests, and stands between them and a client.
//!
//! Servers listen on free loopback ports and on a Unix socket in a private directory. They end with
//! their handle, and also with the test process if that is killed. The programs come from
//! [`install`], into the target folder; nothing is installed on the system. Without them
//! [`Server::start`] says what is missing, and tests show themselves as ignored.

#![forbid(unsafe_code)]

mod builder;
mod cluster;
mod flavor;
mod install;
mod port;
mod process;
pub mod proxy;
pub mod resp;
mod sentinels;
mod server;
#[cfg(feature = "tls")]
mod tls;

pub use crate::{
    builder::Builder,
    cluster::{Cluster, SLOTS},
    flavor::{Flavor, Missing},
    install::{install, missing},
    process::wait_until,
    resp::Reply,
    sentinels::Sentinels,
    server::{Data, Server},
};
