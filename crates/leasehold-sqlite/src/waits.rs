//! The waiters and watchers of this client, in memory: whom to wake, and which locks to look at.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use leasehold_core::Wake;

/// Names a waiter or a watcher: the lock's key, its token, and which of the two it is.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct WaitKey {
    pub(crate) lock: Box<str>,
    pub(crate) token: Box<str>,
    pub(crate) watches: bool,
}

impl WaitKey {
    pub(crate) fn waiter(lock: &str, token: &str) -> Self {
        Self { lock: lock.into(), token: token.into(), watches: false }
    }

    pub(crate) fn watcher(lock: &str, token: &str) -> Self {
        Self { lock: lock.into(), token: token.into(), watches: true }
    }
}

impl std::fmt::Debug for WaitKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The token is a secret.
        f.debug_struct("WaitKey").field("lock", &self.lock).finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
pub(crate) struct Waits(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    waiting: HashMap<WaitKey, Waiting>,
    /// The locks that somebody here waits for, by their row.
    locks: HashMap<i64, Interest>,
}

#[derive(Debug)]
struct Waiting {
    wake: Wake,
    /// `None`: neither an expiry nor a death brings what it waits for.
    lock: Option<i64>,
    /// The attempt of the waiter (rule L7).
    attempt: u64,
    notified: bool,
}

#[derive(Debug)]
struct Interest {
    waits: usize,
    /// When this client is to tick the lock.
    due: Option<i64>,
}

impl Waits {
    /// Enters a wait, or finds the one that is there, and says which. `lock`: where an expiry or a
    /// death may bring what it waits for. `due`: when something may expire there.
    pub(crate) fn enter(
        &self,
        key: &WaitKey,
        lock: Option<i64>,
        attempt: u64,
        due: Option<i64>,
    ) -> (Wake, bool) {
        let mut state = self.lock();
        if let Some(known) = state.waiting.get_mut(key) {
            known.notified = false;
            return (known.wake.clone(), false);
        }
        let wake = Wake::new();
        let waiting = Waiting { wake: wake.clone(), lock, attempt, notified: false };
        state.waiting.insert(key.clone(), waiting);
        if let Some(lock) = lock {
            let interest = state.locks.entry(lock).or_insert(Interest { waits: 0, due });
            interest.waits += 1;
            interest.due = [interest.due, due].into_iter().flatten().min();
        }
        (wake, true)
    }

    /// The attempt of a waiter that is known here.
    pub(crate) fn attempt(&self, key: &WaitKey) -> Option<u64> {
        self.lock().waiting.get(key).map(|waiting| waiting.attempt)
    }

    /// Forgets a wait.
    pub(crate) fn remove(&self, key: &WaitKey) -> Option<Wake> {
        let mut state = self.lock();
        let waiting = state.waiting.remove(key)?;
        if let Some(lock) = waiting.lock
            && let Some(interest) = state.locks.get_mut(&lock)
        {
            interest.waits -= 1;
            if interest.waits == 0 {
                state.locks.remove(&lock);
            }
        }
        Some(waiting.wake)
    }

    /// The wake of a wait that was not woken since it last asked.
    pub(crate) fn take_notice(&self, key: &WaitKey) -> Option<Wake> {
        let mut state = self.lock();
        let waiting = state.waiting.get_mut(key)?;
        if std::mem::replace(&mut waiting.notified, true) {
            return None;
        }
        Some(waiting.wake.clone())
    }

    /// The waiter asked and waits on.
    pub(crate) fn asked(&self, key: &WaitKey) {
        if let Some(waiting) = self.lock().waiting.get_mut(key) {
            waiting.notified = false;
        }
    }

    /// Says when a lock is to be ticked, after a look at it.
    pub(crate) fn set_due(&self, lock: i64, due: Option<i64>) {
        if let Some(interest) = self.lock().locks.get_mut(&lock) {
            interest.due = due;
        }
    }

    /// The locks that are due at `now`.
    pub(crate) fn due(&self, now: i64) -> Vec<i64> {
        let state = self.lock();
        let due = state.locks.iter().filter(|(_, lock)| lock.due.is_some_and(|due| due <= now));
        due.map(|(lock, _)| *lock).collect()
    }

    /// The earliest time at which a lock is due.
    pub(crate) fn next_due(&self) -> Option<i64> {
        self.lock().locks.values().filter_map(|lock| lock.due).min()
    }

    /// Every lock that somebody here waits for.
    pub(crate) fn locks(&self) -> Vec<i64> {
        self.lock().locks.keys().copied().collect()
    }

    pub(crate) fn lock_count(&self) -> usize {
        self.lock().locks.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().waiting.is_empty()
    }

    /// Wakes everybody: the client ends.
    pub(crate) fn take_all(&self) -> Vec<Wake> {
        let mut state = self.lock();
        state.locks.clear();
        state.waiting.drain().map(|(_, waiting)| waiting.wake).collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
