//! Which servers a store is made of, and where a connection goes.

use std::{fmt, path::PathBuf};

/// Where one server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Host { name: String, port: u16 },
    Socket(PathBuf),
}

/// What the servers of a store are to each other. Every new connection asks it where to go, so a
/// store whose servers change their roles is followed by reconnecting.
#[derive(Clone, Debug)]
pub(crate) enum Topology {
    /// One server has every lock.
    One(Endpoint),
}

impl Topology {
    /// Where the server is that takes writes now.
    pub(crate) const fn endpoint(&self) -> &Endpoint {
        match self {
            Self::One(endpoint) => endpoint,
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host { name, port } if name.contains(':') => write!(f, "[{name}]:{port}"),
            Self::Host { name, port } => write!(f, "{name}:{port}"),
            Self::Socket(path) => path.display().fmt(f),
        }
    }
}
