//! The waits with a timeout that were begun on some of the threads.

use std::{collections::BTreeSet, mem, task::Waker};

/// How many places an idle shard keeps: what a burst of waits needed is given back.
const IDLE_PLACES_MAX: usize = 1024;

/// Waits with their deadlines. Most waits end long before their deadline, and cost O(1): they are
/// put into order only when the thread looks, which it does at a deadline.
pub(super) struct Shard {
    places: Vec<Place>,
    /// The places that are free.
    free: Vec<u32>,
    /// The places of waits that came since the thread looked, in no order.
    fresh: Vec<u32>,
    ordered: BTreeSet<(u64, u32)>,
}

struct Place {
    deadline: u64,
    waker: Option<Waker>,
    at: At,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    Fresh {
        index: u32,
    },
    Ordered,
    /// Its time has come.
    Fired,
}

impl Shard {
    pub(super) const fn new() -> Self {
        Self { places: Vec::new(), free: Vec::new(), fresh: Vec::new(), ordered: BTreeSet::new() }
    }

    /// Adds a wait, and gives its place.
    pub(super) fn add(&mut self, deadline: u64, waker: Waker) -> u32 {
        let index = narrow(self.fresh.len());
        let place = Place { deadline, waker: Some(waker), at: At::Fresh { index } };
        let number = match self.free.pop() {
            Some(number) => {
                self.places[number as usize] = place;
                number
            }
            None => {
                self.places.push(place);
                narrow(self.places.len() - 1)
            }
        };
        self.fresh.push(number);
        number
    }

    /// Takes a wait out, and gives its waker to be dropped elsewhere.
    pub(super) fn remove(&mut self, number: u32) -> Option<Waker> {
        let place = &mut self.places[number as usize];
        let waker = place.waker.take();
        match place.at {
            At::Fresh { index } => {
                self.fresh.swap_remove(index as usize);
                if let Some(&moved) = self.fresh.get(index as usize) {
                    self.places[moved as usize].at = At::Fresh { index };
                }
            }
            At::Ordered => {
                let was_there = self.ordered.remove(&(place.deadline, number));
                debug_assert!(was_there);
            }
            At::Fired => {}
        }
        self.free.push(number);
        if self.free.len() == self.places.len() && self.places.len() > IDLE_PLACES_MAX {
            *self = Self::new();
        }
        waker
    }

    /// Lets a wait wake another task, and gives the waker that it is rid of. `Err`: its time has
    /// come, or the clock says that it should have.
    pub(super) fn renew(
        &mut self,
        number: u32,
        waker: Waker,
        now: u64,
    ) -> Result<(u64, Option<Waker>), Waker> {
        let place = &mut self.places[number as usize];
        if place.at == At::Fired || place.deadline <= now {
            return Err(waker);
        }
        Ok((place.deadline, place.waker.replace(waker)))
    }

    /// Puts what is new into order, fires what is due, and says when the next is due.
    pub(super) fn look(&mut self, now: u64, due: &mut Vec<Waker>) -> Option<u64> {
        for number in mem::take(&mut self.fresh) {
            let place = &mut self.places[number as usize];
            place.at = At::Ordered;
            self.ordered.insert((place.deadline, number));
        }
        while let Some(&(deadline, number)) = self.ordered.first() {
            if deadline > now {
                return Some(deadline);
            }
            self.ordered.pop_first();
            let place = &mut self.places[number as usize];
            place.at = At::Fired;
            due.extend(place.waker.take());
        }
        None
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }
}

fn narrow(number: usize) -> u32 {
    u32::try_from(number).expect("fewer waits than memory has room for")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(shard: &mut Shard, deadline: u64) -> u32 {
        shard.add(deadline, Waker::noop().clone())
    }

    #[test]
    fn waits_fire_at_their_deadlines_whenever_they_were_looked_at() {
        let mut shard = Shard::new();
        let mut due = Vec::new();
        let [late, soon, gone, sooner] = [50, 30, 20, 10].map(|at| add(&mut shard, at));
        assert!(shard.remove(gone).is_some());
        assert_eq!(shard.look(5, &mut due), Some(10));
        assert_eq!(shard.look(10, &mut due), Some(30));
        assert_eq!(due.len(), 1);
        assert!(shard.renew(sooner, Waker::noop().clone(), 0).is_err());
        assert!(matches!(shard.renew(late, Waker::noop().clone(), 49), Ok((50, Some(_)))));
        assert!(shard.renew(late, Waker::noop().clone(), 50).is_err());
        let new = add(&mut shard, 40);
        assert!(shard.remove(soon).is_some(), "ordered, not due");
        assert!(shard.remove(sooner).is_none(), "fired");
        assert_eq!(shard.look(39, &mut due), Some(40));
        assert_eq!(shard.look(100, &mut due), None);
        assert_eq!(due.len(), 3);
        assert!(shard.remove(new).is_none() && shard.remove(late).is_none());
        assert_eq!(shard.len(), 0);
    }

    #[test]
    fn removing_from_the_middle_keeps_the_others() {
        let mut shard = Shard::new();
        let numbers: Vec<u32> = (0..100).map(|at| add(&mut shard, at)).collect();
        for number in numbers.iter().step_by(3) {
            assert!(shard.remove(*number).is_some());
        }
        let mut due = Vec::new();
        assert_eq!(shard.look(99, &mut due), None);
        assert_eq!(due.len(), 66);
        assert_eq!(shard.len(), 66);
    }

    #[test]
    fn a_burst_gives_its_memory_back() {
        let mut shard = Shard::new();
        let numbers: Vec<u32> = (0..2000).map(|at| add(&mut shard, at)).collect();
        for number in numbers {
            assert!(shard.remove(number).is_some());
        }
        assert_eq!(shard.places.capacity(), 0);
    }
}
