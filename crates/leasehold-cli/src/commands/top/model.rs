//! What the live screen knows and what it is asked to show.

use std::{
    cmp::Reverse,
    collections::{HashSet, VecDeque},
    time::{Duration, Instant},
};

use leasehold::LockState;

use super::keys::Key;
use crate::args::{TopArgs, TopSort};

/// Over which time waits are counted.
const RATE_OVER: Duration = Duration::from_secs(10);

/// The longest filter.
const FILTER_MAX: usize = 512;

/// What a key or a moment asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    Draw,
    Look,
    Stop,
    End,
}

/// What is shown.
pub(super) struct Model {
    pub(super) store: String,
    /// In the chosen order, filtered.
    pub(super) locks: Vec<LockState>,
    all: Vec<LockState>,
    /// Why the last look failed.
    pub(super) failure: Option<String>,
    pub(super) sort: TopSort,
    pub(super) reversed: bool,
    pub(super) filter: String,
    /// Whether the filter is being typed.
    pub(super) filters: bool,
    /// Whether one lock is shown with everybody.
    pub(super) detailed: bool,
    paused: bool,
    /// The chosen lock, by its key, so that it stays chosen in another order.
    selected: Option<String>,
    /// The first row on the screen.
    pub(super) offset: usize,
    /// How many rows the screen had last.
    pub(super) page: usize,
    rate: Rate,
}

impl Model {
    pub(super) fn new(store: &str, args: &TopArgs) -> Self {
        Self {
            store: store.to_owned(),
            locks: Vec::new(),
            all: Vec::new(),
            failure: None,
            sort: args.sort,
            reversed: false,
            filter: args.filter.clone(),
            filters: false,
            detailed: false,
            paused: false,
            selected: None,
            offset: 0,
            page: 1,
            rate: Rate::default(),
        }
    }

    pub(super) fn is_paused(&self) -> bool {
        self.paused
    }

    /// Waits per second, lately.
    pub(super) fn rate(&self) -> f64 {
        self.rate.per_second()
    }

    /// Takes what a look has brought.
    pub(super) fn show(&mut self, states: Result<Vec<LockState>, String>) {
        match states {
            Ok(states) => {
                self.rate.look(Instant::now(), &states);
                self.all = states;
                self.failure = None;
            }
            // The last that was seen stays, and the failure is told.
            Err(why) => self.failure = Some(why),
        }
        self.arrange();
    }

    /// The place of the chosen lock; the first one if it is gone.
    pub(super) fn selected(&self) -> usize {
        let chosen = self.selected.as_deref();
        self.locks.iter().position(|state| Some(state.lock.key()) == chosen).unwrap_or(0)
    }

    pub(super) fn press(&mut self, key: Key) -> Wish {
        if key == Key::Control('z') {
            return Wish::Stop;
        }
        if self.filters {
            return self.type_filter(key);
        }
        if key.is_end() {
            return Wish::End;
        }
        match key {
            Key::Up | Key::Text('k') => self.select(self.selected().saturating_sub(1)),
            Key::Down | Key::Text('j') => self.select(self.selected() + 1),
            Key::PageUp => self.select(self.selected().saturating_sub(self.page)),
            Key::PageDown => self.select(self.selected() + self.page),
            Key::Home => self.select(0),
            Key::End => self.select(usize::MAX),
            Key::Enter => self.detailed = !self.locks.is_empty(),
            Key::Escape | Key::Backspace => self.detailed = false,
            Key::Text('s') => self.sort = after(self.sort),
            Key::Text('r') => self.reversed = !self.reversed,
            Key::Text('/') => self.filters = true,
            Key::Text(' ') => {
                self.paused = !self.paused;
                return if self.paused { Wish::Draw } else { Wish::Look };
            }
            _ => {}
        }
        self.arrange();
        Wish::Draw
    }

    fn type_filter(&mut self, key: Key) -> Wish {
        match key {
            Key::Control('c') => return Wish::End,
            Key::Text(c) if self.filter.len() < FILTER_MAX => self.filter.push(c),
            Key::Backspace => drop(self.filter.pop()),
            Key::Enter => self.filters = false,
            Key::Escape => {
                self.filters = false;
                self.filter.clear();
            }
            _ => {}
        }
        self.arrange();
        Wish::Draw
    }

    fn select(&mut self, place: usize) {
        let place = place.min(self.locks.len().saturating_sub(1));
        self.selected = self.locks.get(place).map(|state| state.lock.key().to_owned());
    }

    fn arrange(&mut self) {
        let is_meant = |state: &&LockState| state.lock.name().as_str().contains(&self.filter);
        self.locks = self.all.iter().filter(is_meant).cloned().collect();
        // The look brings them by namespace, name and kind, and sorting keeps that among equals.
        match self.sort {
            TopSort::Name => {}
            TopSort::Waiting => self.locks.sort_by_key(|state| Reverse(state.waiters.len())),
            TopSort::Held => self.locks.sort_by_key(|state| {
                Reverse(state.holders.iter().map(|holder| holder.held_for).max())
            }),
            TopSort::Ttl => self.locks.sort_by_key(|state| {
                let least = state.holders.iter().filter_map(|holder| holder.ttl_left).min();
                least.unwrap_or(Duration::MAX)
            }),
        }
        if self.reversed {
            self.locks.reverse();
        }
        if self.selected.is_none() || self.locks.is_empty() {
            self.select(0);
        }
        self.detailed &= !self.locks.is_empty();
    }
}

fn after(sort: TopSort) -> TopSort {
    match sort {
        TopSort::Name => TopSort::Waiting,
        TopSort::Waiting => TopSort::Held,
        TopSort::Held => TopSort::Ttl,
        TopSort::Ttl => TopSort::Name,
    }
}

/// How many requests began to wait; those that came and went between two looks are not seen.
#[derive(Default)]
struct Rate {
    seen: HashSet<String>,
    begun: VecDeque<(Instant, usize)>,
    since: Option<Instant>,
}

impl Rate {
    fn look(&mut self, now: Instant, states: &[LockState]) {
        let waiting: HashSet<String> = states
            .iter()
            .flat_map(|state| {
                state
                    .waiters
                    .iter()
                    .map(|waiter| format!("{} {}", state.lock.key(), waiter.short_id))
            })
            .collect();
        // Those of the first look have begun before it.
        if self.since.is_some() {
            let new = waiting.iter().filter(|id| !self.seen.contains(*id)).count();
            self.begun.push_back((now, new));
        }
        self.since.get_or_insert(now);
        self.seen = waiting;
        while self.begun.front().is_some_and(|(at, _)| now - *at > RATE_OVER) {
            let gone = self.begun.pop_front();
            self.since = gone.map(|(at, _)| at);
        }
    }

    fn per_second(&self) -> f64 {
        let (Some(since), Some((last, _))) = (self.since, self.begun.back()) else { return 0.0 };
        let count: usize = self.begun.iter().map(|(_, new)| new).sum();
        let seconds = (*last - since).as_secs_f64();
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        if seconds > 0.0 { f64::from(count) / seconds } else { 0.0 }
    }
}
