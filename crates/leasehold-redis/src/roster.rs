//! The servers of a cluster that may be asked who the others are.

use std::sync::{Mutex, PoisonError};

use crate::topology::Endpoint;

/// Servers in turn: each asker gets the next.
#[derive(Debug, Default)]
pub(crate) struct Roster {
    /// Those that the URL names: what is left when all others are gone.
    seeds: Vec<Endpoint>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    masters: Vec<Endpoint>,
    next: usize,
}

impl Roster {
    pub(crate) fn new(seeds: Vec<Endpoint>) -> Self {
        Self { seeds, state: Mutex::default() }
    }

    pub(crate) fn set(&self, masters: Vec<Endpoint>) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).masters = masters;
    }

    /// Masters first, then seeds, and round again.
    pub(crate) fn next(&self) -> Option<Endpoint> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let all = state.masters.len() + self.seeds.len();
        let at = state.next.checked_rem(all)?;
        state.next = at + 1;
        state.masters.get(at).or_else(|| self.seeds.get(at - state.masters.len())).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_has_a_turn() {
        let host = |name: &str| Endpoint::Host { name: name.into(), port: 1 };
        assert_eq!(Roster::default().next(), None);
        let roster = Roster::new(vec![host("a"), host("b")]);
        assert_eq!([(); 3].map(|()| roster.next()), ["a", "b", "a"].map(|name| Some(host(name))));
        roster.set(vec![host("c")]);
        assert_eq!([(); 3].map(|()| roster.next()), ["a", "b", "c"].map(|name| Some(host(name))));
    }
}
