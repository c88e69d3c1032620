//! What the client's thread has to do: orders that nobody waits for, and the client's end.

use std::{
    collections::{BTreeMap, HashSet, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
};

use leasehold_core::{ClientId, Fault, LocalTime};
use tokio::sync::{Notify, oneshot};

use crate::{
    book::Name,
    script::{self, Copies, LockKeys, Request},
};

/// How many orders may wait. What is beyond ends by its TTL.
const ORDERS_MAX: usize = 1_000_000;

/// Something to undo in the server, tried until it is done.
#[derive(Debug)]
pub(crate) enum Order {
    GiveBack { name: Name, keys: Arc<LockKeys>, copies: Option<Copies> },
    Unwatch { name: Name, keys: Arc<LockKeys> },
}

/// How the client ends.
#[derive(Debug)]
pub(crate) enum Ending {
    /// All that it has is given back first; who waits for that is answered.
    Close(oneshot::Sender<Result<(), Fault>>),
    /// All that it has is given back, as far as that can be done by then.
    Quit(LocalTime),
    /// At once and without a goodbye, as a killed process does.
    Vanish,
}

#[derive(Debug)]
pub(crate) struct Desk {
    state: Mutex<State>,
    /// There are orders.
    pub(crate) ordered: Notify,
    /// The client is to end.
    pub(crate) ending: Notify,
    /// Somebody waits, or looks sooner than before.
    pub(crate) waiting: Notify,
    /// When the thread looks next at who waits.
    looks_at: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    /// By the part of the store that they are for; none is empty.
    orders: BTreeMap<u64, VecDeque<Order>>,
    waiting: usize,
    endings: Vec<Ending>,
    /// The thread has ended.
    left: bool,
    dropped: u64,
}

impl Default for Desk {
    fn default() -> Self {
        Self {
            state: Mutex::default(),
            ordered: Notify::new(),
            ending: Notify::new(),
            waiting: Notify::new(),
            looks_at: AtomicU64::new(LocalTime::MAX.0),
        }
    }
}

impl Desk {
    /// Takes an order for a part of the store.
    pub(crate) fn order(&self, part: u64, order: Order) {
        {
            let mut state = self.state();
            if state.left {
                return;
            }
            if state.waiting >= ORDERS_MAX {
                if state.dropped.is_multiple_of(10_000) {
                    tracing::warn!("too much is to be given back at once; it ends by its TTL");
                }
                state.dropped += 1;
                return;
            }
            state.waiting += 1;
            state.orders.entry(part).or_default().push_back(order);
        }
        self.ordered.notify_one();
    }

    /// Puts back what could not be done, before all else of the same part.
    pub(crate) fn put_back(&self, part: u64, orders: Vec<Order>) {
        if orders.is_empty() {
            return;
        }
        let mut state = self.state();
        state.waiting += orders.len();
        let queue = state.orders.entry(part).or_default();
        orders.into_iter().rev().for_each(|order| queue.push_front(order));
    }

    /// The oldest orders, no more than `limit`, for a part that nobody is busy with.
    pub(crate) fn take(&self, limit: usize, busy: &HashSet<u64>) -> Option<(u64, Vec<Order>)> {
        let part = *self.state().orders.keys().find(|part| !busy.contains(part))?;
        Some((part, self.take_of(part, limit)))
    }

    /// The oldest orders for a part.
    pub(crate) fn take_of(&self, part: u64, limit: usize) -> Vec<Order> {
        let mut state = self.state();
        let Some(queue) = state.orders.get_mut(&part) else { return Vec::new() };
        let orders: Vec<_> = queue.drain(..queue.len().min(limit)).collect();
        if queue.is_empty() {
            state.orders.remove(&part);
        }
        state.waiting -= orders.len();
        orders
    }

    /// Ends the client. `false`: its thread has ended already.
    pub(crate) fn end(&self, ending: Ending) -> bool {
        {
            let mut state = self.state();
            if state.left {
                return false;
            }
            state.endings.push(ending);
        }
        self.ending.notify_one();
        true
    }

    pub(crate) fn endings(&self) -> Vec<Ending> {
        std::mem::take(&mut self.state().endings)
    }

    /// The thread ends: nobody is at the desk any more.
    pub(crate) fn leave(&self) -> Vec<Ending> {
        let mut state = self.state();
        state.left = true;
        state.orders = BTreeMap::new();
        std::mem::take(&mut state.endings)
    }

    /// Somebody waits, and is to look by itself at this time. The thread is woken when it would not
    /// look by then, or not at all.
    pub(crate) fn waits(&self, look: Option<LocalTime>) {
        let planned = self.looks_at.load(SeqCst);
        if planned == LocalTime::MAX.0 || look.is_some_and(|look| look.0 < planned) {
            self.waiting.notify_one();
        }
    }

    /// The thread looks next at this time; at the end of time when nobody waits.
    pub(crate) fn plan(&self, looks_at: LocalTime) {
        self.looks_at.store(looks_at.0, SeqCst);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Order {
    /// What the server is asked for.
    pub(crate) fn request(&self, client: ClientId) -> Request<()> {
        match self {
            Self::GiveBack { name, keys, copies } => {
                script::release(keys, &name.token, client, *copies).unread()
            }
            Self::Unwatch { name, keys } => script::unwatch(keys, &name.token),
        }
    }
}
