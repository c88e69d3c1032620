//! Who watches a lock without acquiring it (rules U).

use std::collections::HashMap;

use crate::{ClientId, Token, Wake, WatchFor};

/// The watchers of one lock, by what they wait for, so that a condition that becomes true visits
/// only those that it completes.
#[derive(Default)]
pub(super) struct Watchers {
    waiting: [HashMap<Token, Watcher>; KINDS.len()],
    /// Completed and not told yet.
    done: HashMap<Token, Watcher>,
}

struct Watcher {
    client: ClientId,
    wake: Wake,
}

const KINDS: [WatchFor; 4] =
    [WatchFor::Unlocked, WatchFor::AnyPermit, WatchFor::Readable, WatchFor::Destroyed];

const fn index(what: WatchFor) -> usize {
    match what {
        WatchFor::Unlocked => 0,
        WatchFor::AnyPermit => 1,
        WatchFor::Readable => 2,
        WatchFor::Destroyed => 3,
    }
}

impl Watchers {
    pub(super) fn is_empty(&self) -> bool {
        self.done.is_empty() && self.waiting() == 0
    }

    /// How many wait for something.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.iter().map(HashMap::len).sum()
    }

    /// Whether one waits for what an expiry can bring about.
    pub(super) fn wait_for_permits(&self) -> bool {
        self.waiting() > self.waiting[index(WatchFor::Destroyed)].len()
    }

    pub(super) fn add(&mut self, id: Token, client: ClientId, what: WatchFor) -> Wake {
        let wake = Wake::new();
        self.waiting[index(what)].insert(id, Watcher { client, wake: wake.clone() });
        wake
    }

    /// The wake of a watcher that waits.
    pub(super) fn find(&self, id: &Token) -> Option<Wake> {
        self.waiting.iter().find_map(|waiting| waiting.get(id)).map(|watcher| watcher.wake.clone())
    }

    /// Whether a watcher is done; if so, it is told now and forgotten.
    pub(super) fn tell(&mut self, id: &Token) -> bool {
        self.done.remove(id).is_some()
    }

    /// Forgets a watcher.
    pub(super) fn remove(&mut self, id: &Token) -> bool {
        let waited = self.waiting.iter_mut().any(|waiting| waiting.remove(id).is_some());
        waited || self.tell(id)
    }

    /// Completes every watcher whose condition holds now. It stays done, whatever comes.
    pub(super) fn fire(&mut self, holds: impl Fn(WatchFor) -> bool, mut wake: impl FnMut(Wake)) {
        for what in KINDS {
            let waiting = &mut self.waiting[index(what)];
            if waiting.is_empty() || !holds(what) {
                continue;
            }
            for (id, watcher) in std::mem::take(waiting) {
                wake(watcher.wake.clone());
                self.done.insert(id, watcher);
            }
        }
    }

    /// Forgets the watchers of one client and hands over their wakes.
    pub(super) fn forget(&mut self, client: ClientId, mut wake: impl FnMut(Wake)) {
        for watchers in self.waiting.iter_mut().chain([&mut self.done]) {
            watchers.retain(|_, watcher| {
                let theirs = watcher.client == client;
                if theirs {
                    wake(watcher.wake.clone());
                }
                !theirs
            });
        }
    }
}
