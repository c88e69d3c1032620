//! One client of a memory store: the [`Backend`] trait, method by method.

use std::{fmt, sync::Arc};

use super::{MemoryStore, store::Client};
use crate::{
    Acquire, Acquired, Backend, Binding, Call, Capabilities, ClientId, Clock, Confirmed, Destroyed,
    Extended, Fault, Generation, Grant, LocalTime, LockCounts, LockId, LockState, Namespace,
    Released, Remaining, Renewal, Renewed, StoreTime, Token, Ttl, WatchFor, Watched,
    machine::{LockMachine, Step},
};

/// A client of a [`MemoryStore`].
///
/// Every call is answered inline. Dropping the client is its proven death: its client-bound grants
/// end and its waiters and watchers leave (rules N7, T8).
pub struct MemoryBackend {
    store: MemoryStore,
    client: Client,
}

impl MemoryBackend {
    /// The first client of a store of its own, on the machine's clock.
    #[must_use]
    pub fn new() -> Self {
        MemoryStore::new().client()
    }

    /// The store, to make other clients of it.
    #[must_use]
    pub const fn store(&self) -> &MemoryStore {
        &self.store
    }

    pub(super) fn of(store: MemoryStore) -> Self {
        Self { store, client: Client::new() }
    }

    /// One step on a lock that may have to be made.
    #[inline]
    fn create<R>(
        &self,
        id: &Arc<LockId>,
        work: impl FnOnce(&mut LockMachine, &mut Step<'_>) -> Result<R, Fault>,
    ) -> Result<R, Fault> {
        self.store.0.create(&self.client, id, work)
    }

    /// One step on a lock, or `none` when nobody uses it.
    #[inline]
    fn find<R>(
        &self,
        id: &Arc<LockId>,
        none: R,
        work: impl FnOnce(&mut LockMachine, &mut Step<'_>) -> R,
    ) -> Result<R, Fault> {
        self.store.0.find(&self.client, id, none, work)
    }
}

impl Backend for MemoryBackend {
    fn store(&self) -> &'static str {
        "memory"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { proves_death: true, cross_process: false, inline: true }
    }

    fn client(&self) -> ClientId {
        self.client.id
    }

    fn clock(&self) -> &Arc<dyn Clock> {
        self.store.0.timeline.clock()
    }

    fn store_time(&self, local: LocalTime) -> StoreTime {
        self.store.0.timeline.store_time(local)
    }

    fn acquire(&self, request: &Acquire) -> Call<Acquired> {
        let client = self.client.id;
        Call::ready(self.create(&request.lock, |lock, step| lock.acquire(request, client, step)))
    }

    fn confirm(&self, lock: &Arc<LockId>, token: &Token) -> Call<Confirmed> {
        Call::ready(self.find(lock, Confirmed::Unknown, |lock, step| lock.confirm(token, step)))
    }

    fn renew(&self, leases: Vec<Renewal>) -> Call<Vec<Renewed>> {
        let renew = |lease: &Renewal| {
            self.find(&lease.lock, Renewed::Unknown, |lock, step| lock.renew(&lease.token, step))
        };
        Call::ready(leases.iter().map(renew).collect())
    }

    fn extend(&self, lock: &Arc<LockId>, token: &Token, ttl: Option<Ttl>) -> Call<Extended> {
        Call::ready(self.find(lock, Extended::Gone, |lock, step| lock.extend(token, ttl, step)))
    }

    fn rebind(
        &self,
        lock: &Arc<LockId>,
        token: &Token,
        binding: Binding,
        ttl: Option<Ttl>,
    ) -> Call<Option<Grant>> {
        let client = self.client.id;
        let rebound =
            self.find(lock, Ok(None), |lock, step| lock.rebind(token, binding, ttl, client, step));
        Call::ready(rebound.flatten())
    }

    fn release(&self, lock: &Arc<LockId>, token: &Token) -> Call<Released> {
        Call::ready(self.find(lock, Released::Unknown, |lock, step| lock.release(token, step)))
    }

    fn abandon(&self, lock: &Arc<LockId>, token: &Token) {
        // Refused only when the client is closed, and then nothing of it is left to abandon.
        drop(self.find(lock, (), |lock, step| lock.abandon(token, step)));
    }

    fn remaining(&self, lock: &Arc<LockId>, token: &Token) -> Call<Remaining> {
        Call::ready(self.find(lock, Remaining::Gone, |lock, step| lock.remaining(token, step)))
    }

    fn watch(
        &self,
        lock: &Arc<LockId>,
        generation: Option<Generation>,
        id: &Token,
        what: WatchFor,
    ) -> Call<Watched> {
        let client = self.client.id;
        Call::ready(
            self.create(lock, |lock, step| Ok(lock.watch(generation, id, what, client, step))),
        )
    }

    fn unwatch(&self, lock: &Arc<LockId>, id: &Token) {
        drop(self.find(lock, (), |lock, step| lock.unwatch(id, step)));
    }

    fn cancel_all(&self, lock: &Arc<LockId>, reason: &str) -> Call<u64> {
        Call::ready(self.find(lock, 0, |lock, step| lock.cancel_all(reason, step)))
    }

    fn destroy(
        &self,
        lock: &Arc<LockId>,
        generation: Option<Generation>,
        reason: &str,
    ) -> Call<Destroyed> {
        Call::ready(self.create(lock, |lock, step| Ok(lock.destroy(generation, reason, step))))
    }

    fn counts(&self, lock: &Arc<LockId>) -> Call<Option<LockCounts>> {
        Call::ready(self.find(lock, None, |lock, step| lock.counts(step)))
    }

    fn inspect(&self, lock: &Arc<LockId>) -> Call<Option<LockState>> {
        Call::ready(self.find(lock, None, |lock, step| lock.inspect(step)))
    }

    fn survey(&self, namespace: Option<&Namespace>) -> Call<Vec<LockState>> {
        Call::ready(self.store.0.survey(&self.client, namespace))
    }

    fn close(&self) -> Call<()> {
        self.store.0.forget(&self.client);
        Call::ready(Ok(()))
    }
}

impl Drop for MemoryBackend {
    fn drop(&mut self) {
        if !self.client.is_closed() {
            self.store.0.forget(&self.client);
        }
    }
}

impl Default for MemoryBackend {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryBackend").field("client", &self.client.id).finish_non_exhaustive()
    }
}
