//! Who waits for whom: the graph of rule R4.
//!
//! Its nodes are the checked requests that are queued. Each may depend on several others and can
//! go on only when *all* of them can (an AND graph), so one cycle through it is enough to stop it:
//!
//! - a request waits for every *structured hold* on its lock that excludes it, and such a hold
//!   ends with its frame, that is after every checked request which waits inside of that frame;
//! - in a FIFO queue it waits for the checked request queued last before it, which is let in no
//!   later than it is; in a keyed lock for every earlier one that excludes it.
//!
//! What may end in another way is not here: guards that can be moved, semaphores, readers that
//! are merely too many, leases, other processes, `.in_current_scope()`. So a cycle means that
//! nobody in it can go on unless somebody gives up: by a timeout, a cancellation, or a branch that
//! is dropped. A request that may still give up waits all the same, so it counts.
//!
//! # Why a report is never wrong
//!
//! All of this is under one lock, and so is a request's step into the queue of its own lock. A
//! hold is taken out before its permit is given back, a request before it leaves its queue. So
//! what the search sees as held is held. A request may be granted already without having noticed:
//! then nothing that excludes it holds the lock, nor did anything before it, so there is no way
//! from it to anything that still waits.
//!
//! # Why this costs so little
//!
//! A hold matters only while a request waits inside of its frame. So that request publishes the
//! holds around it when it is queued, and a request that is granted at once never comes here.
//! This table is the second exception to "no globals", beside that of the object locks: a cycle
//! goes over locks that know nothing of one another.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    num::NonZeroU64,
};

use parking_lot::{Mutex, MutexGuard};

use super::{
    ask::{Access, Ask, Order},
    chain,
    hold::Hold,
};
use crate::error::{Blocker, DeadlockStep, Place};

/// How many edges one search follows before it gives up in silence.
const EDGES_MAX: usize = 4096;

static GRAPH: Mutex<Graph> = Mutex::new(Graph::new());

/// Ids grow in the order in which they are given, and none is given twice. 0 is none.
type Id = u64;

pub(super) struct Graph {
    last: Id,
    waits: BTreeMap<Id, Wait>,
    holds: BTreeMap<Id, Ask>,
    /// Waits by lock and key, in the order of their queue; holds likewise.
    queued: BTreeSet<Filed>,
    held: BTreeSet<Filed>,
    /// Which waits are inside of the frame of a hold.
    inside: BTreeSet<(Id, Id)>,
}

type Filed = (u64, Option<NonZeroU64>, Id);

struct Wait {
    ask: Ask,
    task: Place,
    holds: Vec<Id>,
}

/// One step from a wait to one that it depends on.
#[derive(Clone, Copy)]
struct Edge {
    from: Id,
    to: Id,
    blocker: Blocker,
    taken: Place,
}

/// The graph is locked: nothing foreign may run, and no lock's future be dropped.
pub(super) fn lock() -> MutexGuard<'static, Graph> {
    GRAPH.lock()
}

/// The hold is over; called before its permit is given back.
#[cold]
pub(super) fn remove_hold(id: Id) {
    lock().unhold(id);
}

/// The lock is gone, and another one may come to be in its place: what forgotten futures held of it
/// or wait for is none of that one's.
#[cold]
pub(crate) fn forget_lock(domain: u64) {
    let mut graph = lock();
    let all = (domain, None, 0)..=(domain, Some(NonZeroU64::MAX), Id::MAX);
    while let Some(&(.., id)) = graph.held.range(all.clone()).next() {
        graph.unhold(id);
    }
    while let Some(&(.., id)) = graph.queued.range(all.clone()).next() {
        graph.unwait(id);
    }
}

impl Graph {
    const fn new() -> Self {
        Self {
            last: 0,
            waits: BTreeMap::new(),
            holds: BTreeMap::new(),
            queued: BTreeSet::new(),
            held: BTreeSet::new(),
            inside: BTreeSet::new(),
        }
    }

    /// Files a request that was queued just now, with the holds around it. The cycle, if it closes
    /// one.
    pub(super) fn wait(&mut self, ask: &Ask) -> (Id, Option<Vec<DeadlockStep>>) {
        let id = self.next();
        self.queued.insert(filed(ask, id));
        self.waits.insert(id, Wait { ask: *ask, task: ask.place, holds: Vec::new() });
        let cycle = self.enclose(id);
        (id, cycle)
    }

    /// Puts a queued request inside of the frames that enclose it now. The cycle, if that closes
    /// one.
    pub(super) fn enclose(&mut self, id: Id) -> Option<Vec<DeadlockStep>> {
        let mut holds = Vec::new();
        let task =
            chain::enclosing(self.waits[&id].ask.place, |hold| holds.push(self.publish(hold)));
        for &outer in &holds {
            self.inside.insert((outer, id));
        }
        let nothing_waits_for_it = holds.is_empty();
        let wait = self.waits.get_mut(&id)?;
        wait.task = task;
        for left in std::mem::replace(&mut wait.holds, holds) {
            if !self.waits[&id].holds.contains(&left) {
                self.inside.remove(&(left, id));
            }
        }
        // It is the last in its queue, so only over a hold can anything depend on it.
        if nothing_waits_for_it { None } else { self.cycle(id) }
    }

    /// It is granted, or about to leave its queue.
    pub(super) fn unwait(&mut self, id: Id) {
        let Some(wait) = self.waits.remove(&id) else { return };
        self.queued.remove(&filed(&wait.ask, id));
        for hold in wait.holds {
            self.inside.remove(&(hold, id));
        }
    }

    fn unhold(&mut self, id: Id) {
        let Some(ask) = self.holds.remove(&id) else { return };
        self.held.remove(&filed(&ask, id));
        // Its frame is gone, and yet something still waits that was polled in it: it was moved out.
        while let Some(&(hold, wait)) = self.inside.range((id, 0)..=(id, Id::MAX)).next() {
            self.inside.remove(&(hold, wait));
        }
    }

    fn publish(&mut self, hold: &Hold) -> Id {
        if hold.published() == 0 {
            let id = self.next();
            self.held.insert(filed(hold.ask(), id));
            self.holds.insert(id, *hold.ask());
            hold.set_published(id);
        }
        hold.published()
    }

    const fn next(&mut self) -> Id {
        self.last += 1;
        self.last
    }

    /// The shortest cycle through this wait; `None` also when the search is too long.
    fn cycle(&self, start: Id) -> Option<Vec<DeadlockStep>> {
        let (mut reached, mut next) = (BTreeMap::<Id, Edge>::new(), VecDeque::from([start]));
        let mut edges = Vec::new();
        let mut followed = 0;
        while let Some(at) = next.pop_front() {
            self.edges(at, EDGES_MAX - followed, &mut edges);
            followed += edges.len();
            for edge in edges.drain(..) {
                if edge.to == start {
                    return Some(self.told(edge, &reached));
                }
                if let std::collections::btree_map::Entry::Vacant(first) = reached.entry(edge.to) {
                    first.insert(edge);
                    next.push_back(edge.to);
                }
            }
            if followed >= EDGES_MAX {
                return None;
            }
        }
        None
    }

    /// The steps from the start to the start, whose last one is `last`.
    fn told(&self, last: Edge, reached: &BTreeMap<Id, Edge>) -> Vec<DeadlockStep> {
        let (mut cycle, mut edge) = (Vec::new(), last);
        loop {
            let Wait { ask, task, .. } = &self.waits[&edge.from];
            cycle.push(DeadlockStep {
                lock: ask.lock.kind,
                of: ask.lock.of,
                task,
                waits: ask.place,
                blocked_by: edge.blocker,
                taken: edge.taken,
            });
            match reached.get(&edge.from) {
                Some(before) if edge.from != last.to => edge = *before,
                _ => break,
            }
        }
        cycle.reverse();
        cycle
    }

    /// All that a wait depends on, as far as `max`.
    fn edges(&self, from: Id, max: usize, edges: &mut Vec<Edge>) {
        let Some(wait) = self.waits.get(&from) else { return };
        let ask = &wait.ask;
        for held in ranges(ask, Id::MAX).into_iter().flatten() {
            for filed in self.held.range(held) {
                let hold = &self.holds[&filed.2];
                if !hold.conflicts(ask) {
                    continue;
                }
                for &(_, to) in self.inside.range((filed.2, 0)..=(filed.2, Id::MAX)) {
                    if edges.len() == max {
                        return;
                    }
                    edges.push(Edge { from, to, blocker: Blocker::Holder, taken: hold.place });
                }
            }
        }
        for queued in ranges(ask, from - 1).into_iter().flatten() {
            for filed in self.queued.range(queued).rev().filter(|filed| filed.2 < from) {
                let earlier = &self.waits[&filed.2].ask;
                if edges.len() == max {
                    return;
                }
                if ask.order == Order::Keyed && !earlier.conflicts(ask) {
                    continue;
                }
                let taken = earlier.place;
                edges.push(Edge { from, to: filed.2, blocker: Blocker::Earlier, taken });
                // It depends on everything before it that this one does.
                let for_all =
                    earlier.access == Access::Exclusive && earlier.target.covers(ask.target);
                if ask.order == Order::Fifo || for_all {
                    break;
                }
            }
        }
    }
}

/// Where something is filed that has this target.
const fn filed(ask: &Ask, id: Id) -> Filed {
    (ask.target.domain, ask.target.key, id)
}

/// Where that stands which has anything in common with this target, up to an id: all of the lock,
/// and the key, or every key.
fn ranges(ask: &Ask, last: Id) -> [Option<std::ops::RangeInclusive<Filed>>; 2] {
    let domain = ask.target.domain;
    let all = (domain, None, 0);
    match ask.target.key {
        None if ask.order == Order::Keyed => {
            [Some(all..=(domain, Some(NonZeroU64::MAX), Id::MAX)), None]
        }
        None => [Some(all..=(domain, None, last)), None],
        key => [Some(all..=(domain, None, last)), Some((domain, key, 0)..=(domain, key, last))],
    }
}
