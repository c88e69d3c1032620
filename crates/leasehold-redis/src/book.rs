//! What this client has, waits for and watches, in memory: what its end gives back, whom a push
//! wakes, and what is beaten for.

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    fmt, mem,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use leasehold_core::{AttemptId, LocalTime, LockId, StoreTime, Token, Wake};
use slab::Slab;

use crate::script::{BEAT_TOKENS_MAX, Copies, LockKeys, WakeId};

/// Pushes for waits that are not entered yet: an answer comes over another connection than the push
/// that may overtake it. One that is forgotten here is made up for by a beat.
const EARLY_MAX: usize = 1024;

/// Names a grant, a waiter or a watcher.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Name {
    pub(crate) lock: Arc<LockId>,
    pub(crate) token: Token,
}

impl Name {
    pub(crate) fn new(lock: &Arc<LockId>, token: &Token) -> Self {
        Self { lock: Arc::clone(lock), token: token.clone() }
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of {:?}", self.token, self.lock)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Book {
    state: Mutex<State>,
    last_id: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    own: HashMap<Name, Own>,
    watchers: HashMap<Name, usize>,
    waits: Slab<Wait>,
    by_id: HashMap<WakeId, usize>,
    locks: HashMap<Arc<LockId>, Vec<usize>>,
    looks: BTreeSet<(LocalTime, usize)>,
    early: VecDeque<WakeId>,
    ended: bool,
}

/// What has a token of this client.
#[derive(Debug)]
struct Own {
    keys: Arc<LockKeys>,
    /// The acquisition that it comes from, and until when copies of that have an effect.
    copies: Option<Copies>,
    /// Bound to this client. What is bound to its token outlives it, so it leaves this book with
    /// its grant.
    to_client: bool,
    /// It was sent more than once.
    resent: bool,
    /// Until when its caller waits.
    limit: LocalTime,
    stage: Stage,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    /// The answer is not there yet.
    Asked,
    Waiting(usize),
    Held,
}

/// A waiter or a watcher.
#[derive(Debug)]
struct Wait {
    name: Name,
    keys: Arc<LockKeys>,
    watches: bool,
    /// What the server may know it by: a request that was made twice has two.
    ids: Vec<WakeId>,
    wake: Wake,
    look: Option<LocalTime>,
    /// Where it is among those of its lock.
    place: usize,
}

/// What was taken out of the book: to be given back to the server.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) keys: Arc<LockKeys>,
    pub(crate) copies: Option<Copies>,
    /// It was held, as far as is known.
    pub(crate) held: bool,
}

/// Waiters and watchers of one lock that the server shall hear of.
#[derive(Debug)]
pub(crate) struct Beat {
    pub(crate) keys: Arc<LockKeys>,
    pub(crate) lock: Arc<LockId>,
    pub(crate) waiters: Vec<Token>,
    pub(crate) watchers: Vec<Token>,
}

/// All that the client leaves behind at its end.
#[derive(Debug, Default)]
pub(crate) struct Estate {
    pub(crate) own: Vec<(Name, Taken)>,
    pub(crate) watchers: Vec<(Name, Arc<LockKeys>)>,
    pub(crate) wakes: Vec<Wake>,
}

impl Book {
    /// An id that no other waiter or watcher of this client has.
    pub(crate) fn next_id(&self) -> WakeId {
        WakeId(self.last_id.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// An acquisition is about to be sent, or sent again. `false`: the client has ended.
    pub(crate) fn ask(
        &self,
        name: &Name,
        keys: &Arc<LockKeys>,
        attempt: AttemptId,
        until: Option<StoreTime>,
        to_client: bool,
        limit: Option<LocalTime>,
    ) -> bool {
        let copies = until.map(|until| Copies { attempt, until });
        let mut state = self.state();
        if state.ended {
            return false;
        }
        match state.own.get_mut(name) {
            None => {
                let (keys, stage) = (Arc::clone(keys), Stage::Asked);
                let limit = limit.unwrap_or(LocalTime::MAX);
                state.own.insert(
                    name.clone(),
                    Own { keys, copies, to_client, resent: false, limit, stage },
                );
            }
            Some(own) => {
                // The same request once more. Another use of the token changes nothing here before
                // the server has allowed it.
                if let (Some(known), Some(copies)) = (&mut own.copies, copies)
                    && known.attempt == attempt
                {
                    known.until = known.until.max(copies.until);
                    own.resent = true;
                }
            }
        }
        true
    }

    /// Until when the caller of an acquisition waits.
    pub(crate) fn limit_of(&self, name: &Name) -> LocalTime {
        self.state().own.get(name).map_or(LocalTime(0), |own| own.limit)
    }

    /// Whether a request that was asked is still wanted.
    pub(crate) fn is_wanted(&self, name: &Name) -> bool {
        self.state().own.contains_key(name)
    }

    /// An acquisition was granted, at once or as a replay.
    pub(crate) fn granted(&self, name: &Name, attempt: AttemptId, to_client: bool) {
        let mut state = self.state();
        // Without an entry it was abandoned meanwhile, and is undone.
        let Some(own) = state.own.get_mut(name) else { return };
        if own.copies.is_some_and(|copies| copies.attempt != attempt) {
            own.copies = None;
        }
        own.to_client = to_client;
        state.holds(name);
    }

    /// An acquisition came to nothing.
    pub(crate) fn refused(&self, name: &Name, attempt: AttemptId) {
        let mut state = self.state();
        let asked = state.own.get(name).is_some_and(|own| {
            matches!(own.stage, Stage::Asked)
                && own.copies.is_none_or(|copies| copies.attempt == attempt)
        });
        if asked {
            state.own.remove(name);
        }
    }

    /// An acquisition was queued; gives the waiter's flag. `look_at`: when it is to look by itself.
    pub(crate) fn queued(&self, name: &Name, id: WakeId, look_at: Option<LocalTime>) -> Wake {
        let (wake, early) = {
            let mut state = self.state();
            let Some(own) = state.own.get(name) else {
                // Abandoned meanwhile, or the client has ended: let it ask, and hear so.
                let wake = Wake::new();
                wake.notify();
                return wake;
            };
            let (keys, stage) = (Arc::clone(&own.keys), own.stage);
            let slot = match stage {
                Stage::Waiting(slot) => slot,
                Stage::Asked | Stage::Held => {
                    let slot = state.insert_wait(name, keys, false);
                    state.own.get_mut(name).expect("seen above").stage = Stage::Waiting(slot);
                    slot
                }
            };
            state.set_look(slot, look_at);
            let early = state.add_id(slot, id);
            (state.waits[slot].wake.clone(), early)
        };
        if early {
            wake.notify();
        }
        wake
    }

    /// A waiter asked and waits on.
    pub(crate) fn waits_on(&self, name: &Name, look_at: Option<LocalTime>) {
        let mut state = self.state();
        if let Some(Own { stage: Stage::Waiting(slot), .. }) = state.own.get(name) {
            let slot = *slot;
            state.set_look(slot, look_at);
        }
    }

    /// A waiter asked and holds.
    pub(crate) fn confirmed(&self, name: &Name) {
        self.state().holds(name);
    }

    /// A grant was bound to this client.
    pub(crate) fn adopted(&self, name: &Name, keys: &Arc<LockKeys>) {
        self.state().own.entry(name.clone()).or_insert_with(|| Own {
            keys: Arc::clone(keys),
            copies: None,
            to_client: true,
            resent: false,
            limit: LocalTime(0),
            stage: Stage::Held,
        });
    }

    /// Takes out what has this token, to release it or because it is gone.
    pub(crate) fn take(&self, name: &Name) -> Option<Taken> {
        self.state().take(name)
    }

    /// The same for an acquisition that may have been sent in vain, if it is the one that has the
    /// token here.
    pub(crate) fn take_attempt(&self, name: &Name, attempt: AttemptId) -> Option<Taken> {
        let mut state = self.state();
        let own = state.own.get(name)?;
        if own.copies.is_some_and(|copies| copies.attempt != attempt) {
            return None;
        }
        state.take(name)
    }

    /// Enters a watcher, or finds it.
    pub(crate) fn watch(&self, name: &Name, keys: &Arc<LockKeys>) -> (WakeId, Wake) {
        let id = self.next_id();
        let mut state = self.state();
        let slot = match state.watchers.get(name) {
            Some(slot) => *slot,
            None => {
                let slot = state.insert_wait(name, Arc::clone(keys), true);
                state.watchers.insert(name.clone(), slot);
                state.add_id(slot, id);
                slot
            }
        };
        let wait = &state.waits[slot];
        (wait.ids[0], wait.wake.clone())
    }

    /// A watcher asked and waits on.
    pub(crate) fn watches_on(&self, name: &Name, look_at: Option<LocalTime>) {
        let mut state = self.state();
        if let Some(slot) = state.watchers.get(name).copied() {
            state.set_look(slot, look_at);
        }
    }

    /// Forgets a watcher, and says whether there was one.
    pub(crate) fn unwatch(&self, name: &Name) -> bool {
        let mut state = self.state();
        let Some(slot) = state.watchers.remove(name) else { return false };
        state.remove_wait(slot);
        true
    }

    /// Whom these ids name; those that nobody has yet are kept for a while.
    pub(crate) fn pushed(&self, ids: &[WakeId]) -> Vec<Wake> {
        let mut state = self.state();
        let mut wakes = Vec::with_capacity(ids.len());
        for id in ids {
            match state.by_id.get(id) {
                Some(slot) => wakes.push(state.waits[*slot].wake.clone()),
                None => {
                    if state.early.len() == EARLY_MAX {
                        state.early.pop_front();
                    }
                    state.early.push_back(*id);
                }
            }
        }
        wakes
    }

    /// These are to look at this time. An id that nobody has yet: its answer says when.
    pub(crate) fn look_at(&self, ids: &[WakeId], at: LocalTime) {
        let mut state = self.state();
        for id in ids {
            if let Some(slot) = state.by_id.get(id).copied() {
                state.set_look(slot, Some(at));
            }
        }
    }

    /// When somebody is to look.
    pub(crate) fn next_look(&self) -> Option<LocalTime> {
        self.state().looks.first().map(|(at, _)| *at)
    }

    /// Who is to look now, no more than `limit`; they are not due any more.
    pub(crate) fn due(&self, now: LocalTime, limit: usize) -> Vec<Beat> {
        let mut state = self.state();
        let mut due: Vec<Beat> = Vec::new();
        let mut open: HashMap<Arc<LockId>, usize> = HashMap::new();
        for _ in 0..limit {
            let Some((at, slot)) = state.looks.first().copied() else { break };
            if at > now {
                break;
            }
            state.set_look(slot, None);
            let wait = &state.waits[slot];
            let at = match open.get(&wait.name.lock) {
                Some(at) if due[*at].len() < BEAT_TOKENS_MAX => *at,
                _ => {
                    open.insert(Arc::clone(&wait.name.lock), due.len());
                    due.push(Beat::new(&wait.name.lock, &wait.keys));
                    due.len() - 1
                }
            };
            due[at].add(wait);
        }
        due
    }

    /// The locks that somebody here waits for or watches.
    pub(crate) fn locks(&self) -> Vec<Arc<LockId>> {
        self.state().locks.keys().cloned().collect()
    }

    /// Whether there is something to lose.
    pub(crate) fn has_any(&self) -> bool {
        let state = self.state();
        !state.own.is_empty() || !state.waits.is_empty()
    }

    pub(crate) fn is_waiting(&self) -> bool {
        !self.state().waits.is_empty()
    }

    /// Everybody who waits for these locks, in portions that one beat takes.
    pub(crate) fn beats(&self, locks: &[Arc<LockId>]) -> Vec<Beat> {
        let state = self.state();
        let mut beats = Vec::with_capacity(locks.len());
        for lock in locks {
            let Some(slots) = state.locks.get(lock) else { continue };
            for portion in slots.chunks(BEAT_TOKENS_MAX) {
                let mut beat = Beat::new(lock, &state.waits[portion[0]].keys);
                portion.iter().for_each(|slot| beat.add(&state.waits[*slot]));
                beats.push(beat);
            }
        }
        beats
    }

    /// The flag of a waiter or a watcher.
    pub(crate) fn wake_of(&self, name: &Name, watches: bool) -> Option<Wake> {
        let state = self.state();
        let slot = if watches {
            *state.watchers.get(name)?
        } else {
            match state.own.get(name)?.stage {
                Stage::Waiting(slot) => slot,
                Stage::Asked | Stage::Held => return None,
            }
        };
        Some(state.waits[slot].wake.clone())
    }

    /// Sets when a waiter or a watcher is to look.
    pub(crate) fn looks_at(&self, name: &Name, watches: bool, at: Option<LocalTime>) {
        if watches { self.watches_on(name, at) } else { self.waits_on(name, at) }
    }

    /// Ends the book: nothing is entered any more.
    pub(crate) fn end(&self) -> Estate {
        let mut state = self.state();
        state.ended = true;
        let State { own, watchers, waits, .. } = mem::take(&mut *state);
        state.ended = true;
        drop(state);
        let own = own.into_iter().map(|(name, own)| (name, own.taken()));
        let watchers = watchers.into_iter().map(|(name, slot)| (name, waits[slot].keys.clone()));
        Estate {
            own: own.collect(),
            watchers: watchers.collect(),
            wakes: waits.iter().map(|(_, wait)| wait.wake.clone()).collect(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn holds(&mut self, name: &Name) {
        let Some(own) = self.own.get_mut(name) else { return };
        let to_client = own.to_client;
        if let Stage::Waiting(slot) = mem::replace(&mut own.stage, Stage::Held) {
            self.remove_wait(slot);
        }
        if !to_client {
            self.own.remove(name);
        }
    }

    fn take(&mut self, name: &Name) -> Option<Taken> {
        let own = self.own.remove(name)?;
        if let Stage::Waiting(slot) = own.stage {
            self.remove_wait(slot);
        }
        Some(own.taken())
    }

    fn insert_wait(&mut self, name: &Name, keys: Arc<LockKeys>, watches: bool) -> usize {
        let of_lock = self.locks.entry(Arc::clone(&name.lock)).or_default();
        let place = of_lock.len();
        let slot = self.waits.insert(Wait {
            name: name.clone(),
            keys,
            watches,
            ids: Vec::new(),
            wake: Wake::new(),
            look: None,
            place,
        });
        of_lock.push(slot);
        slot
    }

    fn remove_wait(&mut self, slot: usize) {
        self.set_look(slot, None);
        let wait = self.waits.remove(slot);
        for id in &wait.ids {
            self.by_id.remove(id);
        }
        let of_lock = self.locks.get_mut(&wait.name.lock).expect("a wait is one of its lock");
        of_lock.swap_remove(wait.place);
        match of_lock.get(wait.place) {
            Some(moved) => self.waits[*moved].place = wait.place,
            None if of_lock.is_empty() => drop(self.locks.remove(&wait.name.lock)),
            None => {}
        }
    }

    /// Adds what the server may know a wait by, and says whether a push for it has come already.
    fn add_id(&mut self, slot: usize, id: WakeId) -> bool {
        self.waits[slot].ids.push(id);
        self.by_id.insert(id, slot);
        match self.early.iter().position(|early| *early == id) {
            Some(at) => self.early.remove(at).is_some(),
            None => false,
        }
    }

    fn set_look(&mut self, slot: usize, at: Option<LocalTime>) {
        let look = &mut self.waits[slot].look;
        if let Some(before) = mem::replace(look, at) {
            self.looks.remove(&(before, slot));
        }
        if let Some(at) = at {
            self.looks.insert((at, slot));
        }
    }
}

impl Own {
    /// Copies are told of only where there may be some that the server has not seen: it remembers
    /// the end of an acquisition that it answered by itself, at less cost.
    fn taken(self) -> Taken {
        let may_come = self.resent || matches!(self.stage, Stage::Asked);
        let held = matches!(self.stage, Stage::Held);
        Taken { held, keys: self.keys, copies: self.copies.filter(|_| may_come) }
    }
}

impl Beat {
    fn new(lock: &Arc<LockId>, keys: &Arc<LockKeys>) -> Self {
        Self {
            keys: Arc::clone(keys),
            lock: Arc::clone(lock),
            waiters: Vec::new(),
            watchers: Vec::new(),
        }
    }

    fn add(&mut self, wait: &Wait) {
        let tokens = if wait.watches { &mut self.watchers } else { &mut self.waiters };
        tokens.push(wait.name.token.clone());
    }

    fn len(&self) -> usize {
        self.waiters.len() + self.watchers.len()
    }

    /// The names in the order in which the server answers for them, and whether they watch.
    pub(crate) fn names(&self) -> impl Iterator<Item = (Name, bool)> {
        let waiters = self.waiters.iter().map(|token| (Name::new(&self.lock, token), false));
        waiters.chain(self.watchers.iter().map(|token| (Name::new(&self.lock, token), true)))
    }
}
