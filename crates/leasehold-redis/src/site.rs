//! Where connections lead: to one server, or to whichever has a part to play just now.

use std::sync::{Mutex, PoisonError};

use crate::{
    config::RedisConfig,
    offset::Offset,
    topology::{Endpoint, Topology},
};

/// Where connections lead, and what is known of the server there.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) goal: Goal,
    /// The site in messages.
    pub(crate) place: String,
    /// The clock of the server there. Each server has its own.
    pub(crate) offset: Offset,
    /// The server there that was looked at last.
    looked_at: Mutex<Option<Endpoint>>,
}

/// Which server a new connection goes to.
#[derive(Debug)]
pub(crate) enum Goal {
    /// This one.
    Server(Endpoint),
    /// The one that the sentinels call the master.
    Master,
    /// Any one of a cluster.
    Anyone,
}

impl Site {
    pub(crate) fn new(goal: Goal, config: &RedisConfig) -> Self {
        let place = match (&goal, &config.topology) {
            (Goal::Server(endpoint), Topology::Cluster { .. }) => {
                let scheme = if config.tls { "rediss" } else { "redis" };
                format!("{scheme}://{endpoint}/0")
            }
            _ => config.to_string(),
        };
        Self { goal, place, offset: Offset::default(), looked_at: Mutex::default() }
    }

    /// The server, where it is always the same.
    pub(crate) fn address(&self) -> Option<String> {
        match &self.goal {
            Goal::Server(endpoint) => Some(endpoint.to_string()),
            Goal::Master | Goal::Anyone => None,
        }
    }

    /// Whether this is the server that was found good here last.
    pub(crate) fn has_seen(&self, server: &Endpoint) -> bool {
        self.looked_at.lock().unwrap_or_else(PoisonError::into_inner).as_ref() == Some(server)
    }

    pub(crate) fn saw(&self, server: &Endpoint) {
        *self.looked_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(server.clone());
    }
}
