//! Which servers a store is made of.

use std::{fmt, path::PathBuf};

/// Where one server is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Endpoint {
    Host { name: String, port: u16 },
    Socket(PathBuf),
}

/// What the servers of a store are to each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Topology {
    /// One server has every lock.
    One(Endpoint),
    /// These say which server has every lock now: the master of the service.
    Sentinel { sentinels: Vec<Endpoint>, service: String },
    /// Each server has the locks of its slots. These are asked first which servers there are.
    Cluster { seeds: Vec<Endpoint> },
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

/// Several servers, as a URL names them.
pub(crate) fn listed(endpoints: &[Endpoint]) -> String {
    endpoints.iter().map(Endpoint::to_string).collect::<Vec<_>>().join(",")
}
