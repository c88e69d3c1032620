//! What a case works with: clients of one store, locks, and handles of what they asked for.
//!
//! Everything here panics when the store answers otherwise than the method's name says; that is how
//! a case fails.

#![expect(clippy::missing_panics_doc, reason = "the module says it once for all of them")]

mod ask;
pub mod client;
mod held;
mod queued;
mod watcher;
mod wire;

pub(crate) mod block;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use leasehold_core::{
    Backend, Capabilities, Capacity, CapacityClaim, LockId, LockKind, LockName, Namespace, defaults,
};

use crate::{Cannot, StoreUnderTest};

pub use ask::Ask;
pub use client::Client;
pub use held::Held;
pub use queued::Queued;
pub use watcher::Watcher;
pub use wire::Wire;

/// How late a push may be. A lost one is made up for by the store's heartbeat (rule L5); this is
/// three of the slowest embedded one.
pub const WAKE_BOUND: Duration = Duration::from_millis(3 * 1000);

/// Within what time a proven death must have freed what the client had: three times the 200 ms
/// that a store with the proof promises.
pub const DEATH_BOUND: Duration = Duration::from_millis(3 * 200);

/// One fresh store.
pub struct Bench {
    store: Box<dyn StoreUnderTest>,
}

impl Bench {
    /// A bench on a store that nobody has used yet.
    #[must_use]
    pub fn new(store: Box<dyn StoreUnderTest>) -> Self {
        Self { store }
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &dyn StoreUnderTest {
        &*self.store
    }

    /// A new client of the store.
    #[must_use]
    pub fn client(&self) -> Client {
        Client::new(self.store.client())
    }

    /// A new client at the other end of a wire that the case has in hand.
    #[must_use]
    pub fn wired_client(&self) -> (Client, Arc<Wire>) {
        let wire = Arc::new(Wire::new(self.store.client()));
        (Client::new(Arc::clone(&wire) as _), wire)
    }

    /// Makes a client die.
    pub fn kill(&self, client: Client) {
        let client = client.into_backend();
        assert_eq!(Arc::strong_count(&client), 1, "the case keeps a reference to a dying client");
        self.store.kill(client);
    }

    /// What the store can and cannot do.
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        self.client().backend().capabilities()
    }

    /// This many steps of time.
    #[must_use]
    pub fn steps(&self, count: u32) -> Duration {
        self.store.step() * count
    }

    /// Lets this many steps pass.
    pub fn pass(&self, count: u32) {
        self.store.advance(self.steps(count));
    }

    /// Lets a whole claim pass (rule L10).
    pub fn pass_a_claim(&self) {
        self.store.advance(defaults::CLAIM + self.steps(1));
    }

    /// Lets a whole heartbeat pass: what was not pushed is seen by then (rule L5).
    pub fn pass_a_heartbeat(&self) {
        self.store.advance(self.store.heartbeat());
    }

    /// Loses all pushes to a client from now on.
    ///
    /// # Errors
    /// The store cannot be broken so.
    pub fn disconnect(&self, client: &Client) -> Result<(), Cannot> {
        self.store.disconnect(&**client.backend())
    }

    /// Does something while the path of the client's pushes is kept full.
    ///
    /// # Errors
    /// The store cannot be broken so; then nothing was done.
    pub fn while_full<R>(&self, client: &Client, work: impl FnOnce() -> R) -> Result<R, Cannot> {
        let fill = || self.store.fill_wake(&**client.backend());
        fill()?;
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    fill().expect("it could be filled before");
                    thread::yield_now();
                }
            });
            // Also when the work panics; else the scope would wait for ever.
            let _over = SetOnDrop(&over);
            Ok(work())
        })
    }

    /// A mutex of the default namespace.
    #[must_use]
    pub fn mutex(&self, name: &str) -> Lock {
        Lock::new("default", LockKind::Mutex, name, 1)
    }

    /// A semaphore of the default namespace.
    #[must_use]
    pub fn semaphore(&self, name: &str, permits: u32) -> Lock {
        Lock::new("default", LockKind::Semaphore, name, permits)
    }

    /// A read-write lock of the default namespace.
    #[must_use]
    pub fn rw_lock(&self, name: &str, readers_max: u32) -> Lock {
        Lock::new("default", LockKind::RwLock, name, readers_max)
    }
}

impl std::fmt::Debug for Bench {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bench").finish_non_exhaustive()
    }
}

struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A lock as a handle knows it: its name, and the capacity that the handle believes in.
#[derive(Clone, Debug)]
pub struct Lock {
    /// Namespace, kind and name.
    pub id: Arc<LockId>,
    /// The capacity that requests claim.
    pub claim: CapacityClaim,
}

impl Lock {
    /// A lock that claims exactly `capacity` permits.
    ///
    /// # Panics
    /// When an argument is not valid.
    #[must_use]
    pub fn new(namespace: &str, kind: LockKind, name: &str, capacity: u32) -> Self {
        let namespace = Namespace::new(namespace).expect("a valid namespace");
        let name = LockName::new(name).expect("a valid name");
        let id = Arc::new(LockId::new(namespace, kind, name));
        Self { id, claim: CapacityClaim::Exactly(capacity_of(capacity)) }
    }

    /// The same lock, believed to have exactly `capacity` permits.
    #[must_use]
    pub fn claiming(&self, capacity: u32) -> Self {
        let claim = CapacityClaim::Exactly(capacity_of(capacity));
        Self { id: Arc::clone(&self.id), claim }
    }

    /// The same lock, taking the capacity that is registered.
    #[must_use]
    pub fn registered_or(&self, otherwise: u32) -> Self {
        let claim = CapacityClaim::Registered { otherwise: capacity_of(otherwise) };
        Self { id: Arc::clone(&self.id), claim }
    }
}

pub(crate) fn capacity_of(permits: u32) -> Capacity {
    Capacity::new(permits).expect("a valid capacity")
}

/// The backend behind a handle, which does not keep its client alive.
pub(crate) type WeakBackend = std::sync::Weak<dyn Backend>;

#[track_caller]
pub(crate) fn living(client: &WeakBackend) -> Arc<dyn Backend> {
    client.upgrade().expect("the case uses a client that is dead")
}
