//! What the client's thread has to do: orders that nobody waits for, and the client's end.

use std::{
    collections::VecDeque,
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
    orders: VecDeque<Order>,
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
    pub(crate) fn give_back(&self, name: Name, keys: Arc<LockKeys>, copies: Option<Copies>) {
        self.order(Order::GiveBack { name, keys, copies });
    }

    pub(crate) fn unwatch(&self, name: Name, keys: Arc<LockKeys>) {
        self.order(Order::Unwatch { name, keys });
    }

    fn order(&self, order: Order) {
        {
            let mut state = self.state();
            if state.left {
                return;
            }
            if state.orders.len() >= ORDERS_MAX {
                if state.dropped.is_multiple_of(10_000) {
                    tracing::warn!("too much is to be given back at once; it ends by its TTL");
                }
                state.dropped += 1;
                return;
            }
            state.orders.push_back(order);
        }
        self.ordered.notify_one();
    }

    /// Puts back what could not be done, before all else.
    pub(crate) fn put_back(&self, orders: Vec<Order>) {
        let mut state = self.state();
        orders.into_iter().rev().for_each(|order| state.orders.push_front(order));
    }

    /// The oldest orders, no more than `limit`.
    pub(crate) fn take(&self, limit: usize) -> Vec<Order> {
        let orders = &mut self.state().orders;
        let count = orders.len().min(limit);
        orders.drain(..count).collect()
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
        state.orders = VecDeque::new();
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
