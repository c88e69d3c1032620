//! The client of a store, as the contract of `leasehold-core` has it.

use std::{fmt, sync::Arc};

use leasehold_core::{
    Acquire, Acquired, Backend, Binding, Call, Capabilities, ClientId, Clock, Confirmed, Destroyed,
    Extended, Fault, FaultKind, Generation, Grant, LocalTime, LockCounts, LockId, LockState,
    Namespace, Released, Remaining, Renewal, Renewed, StoreTime, Token, Ttl, WatchFor, Watched,
    defaults,
};
use tokio::{sync::oneshot, task::coop::unconstrained};

use crate::{
    book::Name,
    client::{Client, needs_ttl},
    config::RedisConfig,
    desk::Ending,
    report::RedisReport,
    script::{self, Extension, RebindReply},
    survey, thread,
    trip::{From, Trip, send_all},
};

/// One client of a store on a Redis or Valkey server.
///
/// A call made in a Tokio runtime goes out over a connection of that runtime; any other, in any
/// executor or thread, over the connection of the client's own thread, `leasehold-redis`. That
/// thread also takes the server's pushes, shows the server that its waiters live, and gives back
/// what was dropped.
///
/// A client belongs to the process that connected it: after a `fork` without `exec` the child must
/// not use its copy.
///
/// Dropping it ends the client like [`close`](Backend::close), without blocking: its thread lives
/// up to 250 ms longer to give back what it has; what is left then ends by its TTL.
pub struct RedisBackend {
    client: Arc<Client>,
}

impl RedisBackend {
    /// Connects to a server, and looks whether it can be trusted with locks. It needs no runtime.
    ///
    /// # Errors
    /// The server cannot be reached or does not answer in time (`Unavailable`); it refuses the
    /// user (`Denied`); it may drop locks to make room (`Unsafe`, see
    /// [`RedisConfig::allow_eviction`]); it is older than Redis 6.2 (`Unsupported`).
    ///
    /// # Cancel safety
    /// Dropping the future ends the client.
    pub async fn connect(config: RedisConfig) -> Result<Self, Fault> {
        Ok(Self { client: unconstrained(thread::connect(config)).await? })
    }

    /// The server that this client is connected to, without user and password.
    #[must_use]
    pub fn url(&self) -> &str {
        self.client.dial.place()
    }

    /// What the server is and what it lets this client do, for people to read.
    ///
    /// # Errors
    /// The server does not answer, or the client was closed.
    pub async fn diagnose(&self) -> Result<RedisReport, Fault> {
        RedisReport::ask(&self.client).await
    }

    /// How many requests went out for callers in a runtime, and how many over the connection of the
    /// client's thread.
    #[doc(hidden)]
    #[must_use]
    pub fn requests(&self) -> (u64, u64) {
        self.client.fleet.requests()
    }

    /// Ends the client as a killed process ends: connections and thread are gone without a goodbye.
    #[doc(hidden)]
    pub fn killer(&self) -> impl Fn() + Send + Sync + use<> {
        let client = Arc::downgrade(&self.client);
        move || {
            if let Some(client) = client.upgrade() {
                client.desk.end(Ending::Vanish);
            }
        }
    }

    async fn renew_all(client: Arc<Client>, leases: Vec<Renewal>) -> Result<Vec<Renewed>, Fault> {
        let requests: Vec<_> = leases
            .iter()
            .map(|lease| script::renew(&client.keys(&lease.lock), &lease.token))
            .collect();
        let deadline = client.command_deadline();
        let answers = send_all(&client, From::Here, deadline, &requests).await;
        let mut renewed = Vec::with_capacity(answers.len());
        for (lease, answer) in leases.iter().zip(answers) {
            renewed.push(match answer {
                Ok(held @ Renewed::Held { .. }) => held,
                Ok(Renewed::Unknown) => {
                    client.book.take(&Name::new(&lease.lock, &lease.token));
                    Renewed::Unknown
                }
                // Somebody has put something else in the lock's place: the grant is gone, and that
                // is no reason to doubt the others.
                Err(fault) if matches!(fault.kind(), FaultKind::Corrupt | FaultKind::Layout) => {
                    tracing::error!(%fault, lock = %lease.lock, "a lease cannot be renewed");
                    Renewed::Unknown
                }
                Err(fault) => return Err(fault),
            });
        }
        Ok(renewed)
    }
}

impl Backend for RedisBackend {
    fn store(&self) -> &'static str {
        "redis"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { proves_death: false, cross_process: true, inline: false }
    }

    fn client(&self) -> ClientId {
        self.client.id
    }

    fn clock(&self) -> &Arc<dyn Clock> {
        &self.client.dial.clock
    }

    fn store_time(&self, local: LocalTime) -> StoreTime {
        self.client.site.offset.store_time(local)
    }

    fn acquire(&self, request: &Acquire) -> Call<Acquired> {
        if request.binding == Binding::Token && request.ttl.is_none() {
            return Call::ready(Err(needs_ttl()));
        }
        let request = request.clone();
        self.client.call(move |client| client.acquire(request))
    }

    fn confirm(&self, lock: &Arc<LockId>, token: &Token) -> Call<Confirmed> {
        let name = Name::new(lock, token);
        self.client.call(move |client| client.confirm(name))
    }

    fn part(&self, lock: &LockId) -> u64 {
        self.client.part(lock)
    }

    fn renew(&self, leases: Vec<Renewal>) -> Call<Vec<Renewed>> {
        self.client.call(move |client| Self::renew_all(client, leases))
    }

    fn extend(&self, lock: &Arc<LockId>, token: &Token, ttl: Option<Ttl>) -> Call<Extended> {
        let name = Name::new(lock, token);
        self.client.call(move |client| async move {
            let keys = client.keys(&name.lock);
            let request = script::extend(&keys, &name.token, ttl);
            let trip = Trip::from_here(&client, &keys, client.command_deadline());
            let mut trip = trip.replicated();
            let answer = trip.send(&request).await?;
            if answer == Extended::Gone {
                client.book.take(&name);
                return Ok(answer);
            }
            // It stays held for as long as it was before.
            trip.is_replicated(&name.lock)?;
            Ok(answer)
        })
    }

    fn rebind(
        &self,
        lock: &Arc<LockId>,
        token: &Token,
        binding: Binding,
        ttl: Option<Ttl>,
    ) -> Call<Option<Grant>> {
        let name = Name::new(lock, token);
        self.client.call(move |client| async move {
            let keys = client.keys(&name.lock);
            let to = Extension { binding, client: client.id, ttl };
            match client.send(&keys, script::rebind(&keys, &name.token, to)).await? {
                RebindReply::Bound(grant) => {
                    match binding {
                        Binding::Client => client.book.adopted(&name, &keys),
                        Binding::Token => drop(client.book.take(&name)),
                    }
                    Ok(Some(grant))
                }
                RebindReply::Gone => {
                    client.book.take(&name);
                    Ok(None)
                }
                RebindReply::NeedsTtl => Err(needs_ttl()),
            }
        })
    }

    fn release(&self, lock: &Arc<LockId>, token: &Token) -> Call<Released> {
        let name = Name::new(lock, token);
        self.client.call(move |client| client.release(name))
    }

    fn abandon(&self, lock: &Arc<LockId>, token: &Token) {
        self.client.abandon(&Name::new(lock, token));
    }

    fn remaining(&self, lock: &Arc<LockId>, token: &Token) -> Call<Remaining> {
        let name = Name::new(lock, token);
        self.client.call(move |client| async move {
            let keys = client.keys(&name.lock);
            client.send(&keys, script::remaining(&keys, &name.token)).await
        })
    }

    fn watch(
        &self,
        lock: &Arc<LockId>,
        generation: Option<Generation>,
        id: &Token,
        what: WatchFor,
    ) -> Call<Watched> {
        let name = Name::new(lock, id);
        self.client.call(move |client| client.watch(name, generation, what))
    }

    fn unwatch(&self, lock: &Arc<LockId>, id: &Token) {
        self.client.unwatch(&Name::new(lock, id));
    }

    fn cancel_all(&self, lock: &Arc<LockId>, reason: &str) -> Call<u64> {
        let (lock, reason) = (Arc::clone(lock), reason.to_owned());
        self.client.call(move |client| async move {
            let keys = client.keys(&lock);
            client.send(&keys, script::cancel_all(&keys, &reason)).await
        })
    }

    fn destroy(
        &self,
        lock: &Arc<LockId>,
        generation: Option<Generation>,
        reason: &str,
    ) -> Call<Destroyed> {
        let (lock, reason) = (Arc::clone(lock), reason.to_owned());
        self.client.call(move |client| async move {
            let keys = client.keys(&lock);
            client.send(&keys, script::destroy(&keys, generation, &reason)).await
        })
    }

    fn counts(&self, lock: &Arc<LockId>) -> Call<Option<LockCounts>> {
        let lock = Arc::clone(lock);
        self.client.call(move |client| async move {
            let keys = client.keys(&lock);
            client.send(&keys, script::counts(&keys)).await
        })
    }

    fn inspect(&self, lock: &Arc<LockId>) -> Call<Option<LockState>> {
        let lock = Arc::clone(lock);
        self.client.call(move |client| async move {
            let keys = client.keys(&lock);
            let found = client.send(&keys, script::inspect(&keys)).await?;
            Ok(found.map(|found| found.of(LockId::clone(&lock))))
        })
    }

    fn survey(&self, namespace: Option<&Namespace>) -> Call<Vec<LockState>> {
        let namespace = namespace.cloned();
        self.client.call(move |client| survey::survey(client, namespace))
    }

    fn close(&self) -> Call<()> {
        let (reply, answer) = oneshot::channel();
        if !self.client.desk.end(Ending::Close(reply)) {
            // It has ended before.
            return Call::ready(Ok(()));
        }
        Call::pending(async move { unconstrained(answer).await.unwrap_or(Ok(())) })
    }
}

impl Drop for RedisBackend {
    fn drop(&mut self) {
        let by = self.client.now().after(defaults::FLUSH);
        self.client.desk.end(Ending::Quit(by));
    }
}

impl fmt::Debug for RedisBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisBackend")
            .field("url", &self.url())
            .field("client", &self.client.id)
            .finish_non_exhaustive()
    }
}
