//! Where connections lead: to one server, or to whichever has a part to play just now.

use crate::{config::RedisConfig, offset::Offset, topology::Endpoint};

/// Where connections lead, and what is known of the server there.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) goal: Goal,
    /// The site in messages.
    pub(crate) place: String,
    /// The clock of the server there. Each server has its own.
    pub(crate) offset: Offset,
}

/// Which server a new connection goes to.
#[derive(Debug)]
pub(crate) enum Goal {
    /// This one.
    Server(Endpoint),
    /// The one that the sentinels call the master.
    Master,
}

impl Site {
    pub(crate) fn new(goal: Goal, config: &RedisConfig) -> Self {
        Self { goal, place: config.to_string(), offset: Offset::default() }
    }
}
