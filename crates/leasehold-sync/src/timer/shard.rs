//! The waits with a timeout that were begun on some of the threads.

use std::{collections::BTreeSet, mem, task::Waker};

/// How many places an idle shard keeps: what a burst of waits needed is given back.
const IDLE_PLACES_MAX: usize = 1024;
/// The ends of the two rings, which are places too.
const FRESH: u32 = 0;
const FAR: u32 = 1;
/// No place: an end is never free.
const NONE: u32 = 0;

/// Waits with their deadlines. Most waits end long before their deadline, and cost O(1): they are
/// in a ring, and put into order only when the thread looks at a deadline of that ring.
pub(super) struct Shard {
    places: Vec<Place>,
    /// The first of the places that are free.
    free: u32,
    waits: u32,
    /// No deadline in the ring `FAR` is before.
    far_due: u64,
    ordered: BTreeSet<(u64, u32)>,
}

struct Place {
    waker: Option<Waker>,
    /// Of a fresh wait its timeout, else its deadline.
    time: u64,
    prev: u32,
    /// Of a free place the next one that is free.
    next: u32,
    at: At,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    /// In a ring: begun since the thread looked, without a look at the clock.
    Fresh,
    /// In a ring, with a deadline.
    Far,
    Ordered,
    /// Its time has come.
    Fired,
}

/// What the thread is told by a shard.
pub(super) struct Seen {
    /// When the next deadline may be.
    pub(super) next: Option<u64>,
    /// Whether waits were begun since the last look.
    pub(super) fresh: bool,
}

impl Shard {
    pub(super) const fn new() -> Self {
        Self {
            places: Vec::new(),
            free: NONE,
            waits: 0,
            far_due: u64::MAX,
            ordered: BTreeSet::new(),
        }
    }

    /// Adds a wait whose timeout begins with the next look, and gives its place.
    #[inline]
    pub(super) fn add_fresh(&mut self, timeout: u64, waker: Waker) -> u32 {
        self.add(At::Fresh, timeout, waker)
    }

    /// Adds a wait with a deadline, and gives its place.
    pub(super) fn add_far(&mut self, deadline: u64, waker: Waker) -> u32 {
        self.far_due = self.far_due.min(deadline);
        self.add(At::Far, deadline, waker)
    }

    #[inline]
    fn add(&mut self, at: At, time: u64, waker: Waker) -> u32 {
        let number = if self.free == NONE { self.make_place() } else { self.free };
        let place = &mut self.places[number as usize];
        self.free = place.next;
        (place.waker, place.time, place.at) = (Some(waker), time, at);
        self.waits += 1;
        self.link(if at == At::Fresh { FRESH } else { FAR }, number);
        number
    }

    /// Takes a wait out, and gives its waker, to be used or dropped elsewhere.
    #[inline]
    pub(super) fn remove(&mut self, number: u32) -> Option<Waker> {
        let place = &mut self.places[number as usize];
        let waker = place.waker.take();
        match place.at {
            At::Fresh | At::Far => self.unlink(number),
            At::Ordered => self.remove_ordered(number),
            At::Fired => {}
        }
        self.places[number as usize].next = self.free;
        self.free = number;
        self.waits -= 1;
        if self.waits == 0 && self.places.len() > IDLE_PLACES_MAX {
            self.give_back();
        }
        waker
    }

    #[cold]
    fn remove_ordered(&mut self, number: u32) {
        let was_there = self.ordered.remove(&(self.places[number as usize].time, number));
        debug_assert!(was_there);
    }

    #[cold]
    fn give_back(&mut self) {
        *self = Self::new();
    }

    /// Lets a wait wake another task, and gives its deadline and the waker that it is rid of.
    /// `Err`: its time has come, or the clock says that it should have.
    pub(super) fn renew(
        &mut self,
        number: u32,
        waker: Waker,
        now: u64,
    ) -> Result<(u64, Option<Waker>), Waker> {
        if self.places[number as usize].at == At::Fresh {
            self.begin(number, now);
        }
        let place = &mut self.places[number as usize];
        if place.at == At::Fired || place.time <= now {
            return Err(waker);
        }
        Ok((place.time, place.waker.replace(waker)))
    }

    /// Begins the timeouts of what is fresh, puts into order what may be due, and fires what is.
    pub(super) fn look(&mut self, now: u64, due: &mut Vec<Waker>) -> Seen {
        let mut fresh = false;
        while let Some(number) = self.first(FRESH) {
            self.begin(number, now);
            fresh = true;
        }
        if self.far_due <= now {
            self.far_due = u64::MAX;
            while let Some(number) = self.first(FAR) {
                self.unlink(number);
                let place = &mut self.places[number as usize];
                place.at = At::Ordered;
                self.ordered.insert((place.time, number));
            }
        }
        let ordered_due = self.fire(now, due);
        let next = ordered_due.min(self.far_due);
        Seen { next: (next != u64::MAX).then_some(next), fresh }
    }

    /// Fires what is due of what is in order, and says when the next is.
    fn fire(&mut self, now: u64, due: &mut Vec<Waker>) -> u64 {
        while let Some(&(deadline, number)) = self.ordered.first() {
            if deadline > now {
                return deadline;
            }
            self.ordered.pop_first();
            let place = &mut self.places[number as usize];
            place.at = At::Fired;
            due.extend(place.waker.take());
        }
        u64::MAX
    }

    /// The timeout of a fresh wait begins now.
    fn begin(&mut self, number: u32, now: u64) {
        self.unlink(number);
        let place = &mut self.places[number as usize];
        place.at = At::Far;
        place.time = place.time.saturating_add(now);
        self.far_due = self.far_due.min(place.time);
        self.link(FAR, number);
    }

    fn first(&self, end: u32) -> Option<u32> {
        let first = self.places.get(end as usize)?.next;
        (first != end).then_some(first)
    }

    #[inline]
    fn link(&mut self, end: u32, number: u32) {
        let next = mem::replace(&mut self.places[end as usize].next, number);
        self.places[next as usize].prev = number;
        let place = &mut self.places[number as usize];
        (place.prev, place.next) = (end, next);
    }

    #[inline]
    fn unlink(&mut self, number: u32) {
        let place = &self.places[number as usize];
        let (prev, next) = (place.prev, place.next);
        self.places[prev as usize].next = next;
        self.places[next as usize].prev = prev;
    }

    /// A place more, which is free.
    #[cold]
    fn make_place(&mut self) -> u32 {
        if self.places.is_empty() {
            self.places.extend([FRESH, FAR].map(Place::at_itself));
        }
        let number =
            u32::try_from(self.places.len()).expect("fewer waits than memory has room for");
        self.places.push(Place { next: NONE, ..Place::at_itself(number) });
        number
    }

    #[cfg(test)]
    pub(super) const fn len(&self) -> usize {
        self.waits as usize
    }
}

impl Place {
    const fn at_itself(number: u32) -> Self {
        Self { waker: None, time: 0, prev: number, next: number, at: At::Fired }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn far(shard: &mut Shard, deadline: u64) -> u32 {
        shard.add_far(deadline, Waker::noop().clone())
    }

    fn fresh(shard: &mut Shard, timeout: u64) -> u32 {
        shard.add_fresh(timeout, Waker::noop().clone())
    }

    fn next(shard: &mut Shard, now: u64, due: &mut Vec<Waker>) -> Option<u64> {
        shard.look(now, due).next
    }

    #[test]
    fn waits_fire_at_their_deadlines_whenever_they_were_looked_at() {
        let mut shard = Shard::new();
        let mut due = Vec::new();
        let [late, soon, gone, sooner] = [50, 30, 20, 10].map(|at| far(&mut shard, at));
        assert!(shard.remove(gone).is_some());
        assert_eq!(next(&mut shard, 5, &mut due), Some(10));
        assert_eq!(next(&mut shard, 10, &mut due), Some(30));
        assert_eq!(due.len(), 1);
        assert!(shard.renew(sooner, Waker::noop().clone(), 0).is_err());
        assert!(matches!(shard.renew(late, Waker::noop().clone(), 49), Ok((50, Some(_)))));
        assert!(shard.renew(late, Waker::noop().clone(), 50).is_err());
        let new = far(&mut shard, 40);
        assert!(shard.remove(soon).is_some(), "ordered, not due");
        assert!(shard.remove(sooner).is_none(), "fired");
        assert_eq!(next(&mut shard, 39, &mut due), Some(40));
        assert_eq!(next(&mut shard, 100, &mut due), None);
        assert_eq!(due.len(), 3);
        assert!(shard.remove(new).is_none() && shard.remove(late).is_none());
        assert_eq!(shard.len(), 0);
    }

    #[test]
    fn a_fresh_wait_begins_when_it_is_seen_and_never_before() {
        let mut shard = Shard::new();
        let mut due = Vec::new();
        let (long, short) = (fresh(&mut shard, 100), fresh(&mut shard, 30));
        let seen = shard.look(1000, &mut due);
        assert!(seen.fresh && seen.next == Some(1030));
        let later = fresh(&mut shard, 30);
        assert!(matches!(shard.renew(later, Waker::noop().clone(), 1010), Ok((1040, Some(_)))));
        let seen = shard.look(1029, &mut due);
        assert!(!seen.fresh && seen.next == Some(1030) && due.is_empty());
        assert_eq!(next(&mut shard, 1030, &mut due), Some(1040));
        assert!(shard.remove(short).is_none() && due.len() == 1);
        assert_eq!(next(&mut shard, 1099, &mut due), Some(1100));
        assert!(shard.remove(later).is_none() && shard.remove(long).is_some());
        // A timeout that the clock never reaches.
        let never = fresh(&mut shard, u64::MAX - 1);
        assert_eq!(next(&mut shard, 2000, &mut due), None);
        assert!(shard.remove(never).is_some());
        assert_eq!(shard.len(), 0);
    }

    #[test]
    fn removing_from_the_middle_keeps_the_others() {
        let mut shard = Shard::new();
        let mut numbers: Vec<u32> = (0..100).map(|at| far(&mut shard, at)).collect();
        numbers.extend((0..100).map(|timeout| fresh(&mut shard, timeout)));
        for number in numbers.iter().step_by(3) {
            assert!(shard.remove(*number).is_some());
        }
        let mut due = Vec::new();
        assert_eq!(next(&mut shard, 99, &mut due), Some(100));
        assert_eq!(next(&mut shard, 99 + 99, &mut due), None);
        assert_eq!(due.len(), 133);
        assert_eq!(shard.len(), 133);
    }

    #[test]
    fn a_burst_gives_its_memory_back() {
        let mut shard = Shard::new();
        let numbers: Vec<u32> = (0..2000).map(|at| far(&mut shard, at)).collect();
        for number in numbers {
            assert!(shard.remove(number).is_some());
        }
        assert_eq!(shard.places.capacity(), 0);
    }
}
