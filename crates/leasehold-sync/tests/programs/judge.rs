//! A second opinion on who is stuck, by another way than a search for cycles: whoever can go on is
//! crossed out, until nobody else can; the rest is stuck.
#![allow(dead_code, reason = "only programs with leases know of locks that run out")]

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

/// What the programs tell of themselves.
#[derive(Default)]
pub(crate) struct Judge {
    next: Cell<u64>,
    state: RefCell<State>,
    /// Whether anybody came to wait since the last look.
    changed: Cell<bool>,
    /// The locks whose grants run out: whoever waits for one gets in sooner or later, whatever its
    /// holders do.
    run_out: Range<usize>,
}

#[derive(Default)]
struct State {
    /// In the order in which they came: each lock's queue is a part of it.
    waits: BTreeMap<u64, Entry>,
    frames: BTreeMap<u64, Entry>,
}

#[derive(Clone, Copy)]
struct Entry {
    lock: usize,
    writes: bool,
    /// The enclosing frame.
    parent: Option<u64>,
}

/// What a request must come to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    Reentrant,
    Shares,
    Waits,
}

/// A request, and then the frame that it opened. Dropped with it.
pub(crate) struct Seat<'a> {
    judge: &'a Judge,
    pub(crate) id: u64,
}

impl Judge {
    pub(crate) fn of_leases(run_out: Range<usize>) -> Self {
        Self { run_out, ..Self::default() }
    }

    pub(crate) fn ask(&self, lock: usize, writes: bool, parent: Option<u64>) -> Seat<'_> {
        let id = self.next.replace(self.next.get() + 1);
        self.state.borrow_mut().waits.insert(id, Entry { lock, writes, parent });
        self.changed.set(true);
        Seat { judge: self, id }
    }

    pub(crate) fn expected(&self, lock: usize, writes: bool, parent: Option<u64>) -> Expected {
        let state = self.state.borrow();
        let mut outer = state.ancestors(parent).filter(|frame| frame.lock == lock);
        match outer.next() {
            None => Expected::Waits,
            Some(frame) if frame.writes || writes => Expected::Reentrant,
            Some(_) => Expected::Shares,
        }
    }

    /// Whether anybody is stuck; looks only if somebody came to wait since the last time.
    pub(crate) fn anybody_stuck(&self) -> bool {
        self.changed.replace(false) && !self.stuck().is_empty()
    }

    pub(crate) fn is_stuck(&self, id: u64) -> bool {
        self.stuck().contains(&id)
    }

    fn stuck(&self) -> BTreeSet<u64> {
        let state = self.state.borrow();
        let mut stuck = state.waits.keys().copied().collect::<BTreeSet<_>>();
        loop {
            let goes_on = stuck.iter().copied().find(|id| self.can_go_on(&state, *id, &stuck));
            match goes_on {
                Some(id) => stuck.remove(&id),
                None => return stuck,
            };
        }
    }

    fn can_go_on(&self, state: &State, id: u64, stuck: &BTreeSet<u64>) -> bool {
        self.run_out.contains(&state.waits[&id].lock) || state.can_go_on(id, stuck)
    }
}

impl State {
    fn ancestors(&self, mut at: Option<u64>) -> impl Iterator<Item = Entry> {
        std::iter::from_fn(move || {
            let frame = self.frames.get(&at?).copied()?;
            at = frame.parent;
            Some(frame)
        })
    }

    fn is_inside(&self, wait: &Entry, frame: u64) -> bool {
        let mut at = wait.parent;
        while let Some(id) = at {
            if id == frame {
                return true;
            }
            at = self.frames.get(&id).and_then(|outer| outer.parent);
        }
        false
    }

    fn can_go_on(&self, id: u64, stuck: &BTreeSet<u64>) -> bool {
        let wait = &self.waits[&id];
        let first = self
            .waits
            .range(..id)
            .all(|(earlier, entry)| entry.lock != wait.lock || !stuck.contains(earlier));
        let free = self.frames.iter().all(|(frame, held)| {
            let excludes = held.lock == wait.lock && (held.writes || wait.writes);
            !excludes || stuck.iter().all(|inner| !self.is_inside(&self.waits[inner], *frame))
        });
        first && free
    }
}

impl Seat<'_> {
    /// It is granted: it waits no more, and its frame is open.
    pub(crate) fn granted(&self) {
        let mut state = self.judge.state.borrow_mut();
        let entry = state.waits.remove(&self.id).expect("granted once");
        state.frames.insert(self.id, entry);
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        let mut state = self.judge.state.borrow_mut();
        state.waits.remove(&self.id);
        state.frames.remove(&self.id);
    }
}
