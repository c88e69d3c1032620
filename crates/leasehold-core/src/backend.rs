//! The one seam between the handles and a store.

use std::{fmt, sync::Arc};

use crate::{
    Acquire, Acquired, Binding, Call, ClientId, Clock, Confirmed, Destroyed, Extended, Generation,
    Grant, LocalTime, LockCounts, LockId, LockState, Namespace, Released, Remaining, Renewal,
    Renewed, StoreTime, Token, Ttl, WatchFor, Watched,
};

/// One client of a store.
///
/// A value of this trait is one *client*: it has an id, and while it lives the store counts it as
/// alive. Several clients, of one process or of many, share a store and compete in it.
///
/// # Contract
/// - **Atomic.** Every method that changes a lock is one atomic step in the store. The step first
///   drops what is overdue by the store's clock (rule L1), and a step that frees permits or removes
///   a waiter also grants to the head of the queue, by the rules of `leasehold-queue` (rules Q2,
///   Q3).
/// - **Pushed.** A waiter that is granted or rejected has its [`Wake`](crate::Wake) set, promptly,
///   also when the cause is an expiry or the death of a client that nobody reports. How (a timer, a
///   pipe, a channel, a heartbeat beneath them) is the backend's affair; a lost push delays, it
///   never strands (rule L5).
/// - **Never blocks for long.** A method may be called from an async task: it answers inline only
///   what takes microseconds.
/// - **Needs no runtime.** [`abandon`](Self::abandon) and dropping the client work anywhere.
/// - **Wakers run outside** of the backend's own locks.
/// - **A fault means no effect.** A backend that cannot know sees to it itself that the request has
///   none.
/// - **Retries are safe** where the method says so; the handles never repeat a request, a backend
///   may, with the same token and attempt, until the request's `not_after`.
pub trait Backend: fmt::Debug + Send + Sync + 'static {
    /// What kind of store this is, for lists and messages: `memory`, `sqlite`.
    fn store(&self) -> &'static str;

    /// What this store can and cannot do.
    fn capabilities(&self) -> Capabilities;

    /// This client's id.
    fn client(&self) -> ClientId;

    /// The clock by which the holder of a lease judges it here (rule L3), and on which waits are
    /// timed.
    fn clock(&self) -> &Arc<dyn Clock>;

    /// The store's time at a local time, as well as it is known here, without I/O. It is used for
    /// `not_after` only; the store's clock alone decides expiry.
    fn store_time(&self, local: LocalTime) -> StoreTime;

    /// Grants, queues or refuses, in this order: `not_after` has passed → `Stale`; the token and
    /// attempt are known → the existing grant or place (a replay); the token is known with another
    /// attempt → `TokenInUse`; the generation is over → `Destroyed`; in use with another capacity →
    /// `ConfigMismatch`; heavier than the capacity → `TooHeavy`; bound to its token without a TTL
    /// → a fault of kind `Unsupported` (rule T8), which may also come before the others; nobody is queued and it fits →
    /// `Granted` with its full TTL and the next fencing token; `wait` is false → `Busy`; the queue
    /// is full → `QueueFull`; else `Queued` at the tail.
    ///
    /// A lock that nobody holds, waits for or watches takes the capacity of whoever asks next.
    ///
    /// Idempotent for one token and attempt. A replay that finds a claim confirms it: whoever gets
    /// this answer does not ask again.
    fn acquire(&self, request: &Acquire) -> Call<Acquired>;

    /// Tells a waiter of this client what became of it, and turns its claim into a grant with the
    /// full TTL from now on (rule L10).
    ///
    /// Idempotent for a holder: it sets expiry = max(expiry, now + TTL). A rejection is told once.
    fn confirm(&self, lock: &Arc<LockId>, token: &Token) -> Call<Confirmed>;

    /// Renews each: expiry = max(expiry, now + the grant's TTL), answered in order. One atomic step
    /// per lease is enough. A grant without a TTL stays so. Idempotent.
    fn renew(&self, leases: Vec<Renewal>) -> Call<Vec<Renewed>>;

    /// Which part of the store has a lock, where it is made of parts that fail one by one: servers of
    /// a cluster. Leases in different parts are renewed by requests of their own, so that a part that
    /// does not answer costs no lease elsewhere. It may be another number at another time. Most
    /// stores are one.
    fn part(&self, lock: &LockId) -> u64 {
        let _ = lock;
        0
    }

    /// Sets expiry = now + `ttl`, or none, and makes it the TTL of later renewals (rules T4, L2).
    /// A claim counts as a grant. A repeat counts from its own now.
    fn extend(&self, lock: &Arc<LockId>, token: &Token, ttl: Option<Ttl>) -> Call<Extended>;

    /// Binds a grant to this client or to its token and, with a TTL, starts that TTL now
    /// (rule T8); without one, the expiry stays. `None`: the grant is gone. Binding to the token
    /// needs a TTL, given here or set before, else the answer is a fault of kind `Unsupported`.
    /// Idempotent but for the start of the TTL.
    fn rebind(
        &self,
        lock: &Arc<LockId>,
        token: &Token,
        binding: Binding,
        ttl: Option<Ttl>,
    ) -> Call<Option<Grant>>;

    /// Gives a grant back or takes a waiter out, whoever's it is, and says which (rules Q4, T6).
    /// Idempotent: the second time it finds nothing.
    fn release(&self, lock: &Arc<LockId>, token: &Token) -> Call<Released>;

    /// The same without an answer and without waiting for one: for drops. It may be called before
    /// the answer to the token's `acquire` has arrived; then whatever that acquisition brings about
    /// is undone as well. Failures are retried by the client while it lives.
    fn abandon(&self, lock: &Arc<LockId>, token: &Token);

    /// What is left of a grant. A waiter's is `Gone`. Reads only.
    fn remaining(&self, lock: &Arc<LockId>, token: &Token) -> Call<Remaining>;

    /// Registers a watcher under `id` or, when `id` is known, asks what became of it. A watcher
    /// that was told `Done` is forgotten. One whose condition became true stays `Done` even when it
    /// is false again by now. A hand-off makes no permit free (rule U1).
    fn watch(
        &self,
        lock: &Arc<LockId>,
        generation: Option<Generation>,
        id: &Token,
        what: WatchFor,
    ) -> Call<Watched>;

    /// Forgets a watcher, without an answer.
    fn unwatch(&self, lock: &Arc<LockId>, id: &Token);

    /// Rejects every waiter that is queued now, from every client, in queue order, with
    /// `Cancelled { reason }`, and says how many (rule W5). Holders and watchers stay.
    fn cancel_all(&self, lock: &Arc<LockId>, reason: &str) -> Call<u64>;

    /// Ends a generation (the current one when none is named): waiters are rejected with
    /// `Destroyed { reason }`, watchers are done, grants are gone, the next generation begins with
    /// no capacity registered and goes on with the fencing tokens (rule N5). The end is remembered
    /// for a while for old handles. Idempotent for a named generation.
    fn destroy(
        &self,
        lock: &Arc<LockId>,
        generation: Option<Generation>,
        reason: &str,
    ) -> Call<Destroyed>;

    /// The counts of a lock; `None`: nobody uses it.
    fn counts(&self, lock: &Arc<LockId>) -> Call<Option<LockCounts>>;

    /// The whole state of a lock; `None`: nobody uses it.
    fn inspect(&self, lock: &Arc<LockId>) -> Call<Option<LockState>>;

    /// Every lock in use in the store, of one namespace or of all, by namespace, name and kind.
    fn survey(&self, namespace: Option<&Namespace>) -> Call<Vec<LockState>>;

    /// Ends the client in good order: its client-bound grants and its waiters are gone when the
    /// call is answered, token-bound grants and those of others stay (rule N6). Later requests are
    /// answered with a fault of kind `Closed`. Idempotent; may be called again after a failure.
    /// Dropping the client without it has the same effect a little later. Either wakes the client's
    /// own waiters and watchers, so that who still polls asks, and finds it closed.
    fn close(&self) -> Call<()>;
}

/// What a store can and cannot do; the test kit asks for it case by case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The death of a client is proven at once, so grants without a TTL cannot be orphaned.
    pub proves_death: bool,
    /// Other processes can reach the store.
    pub cross_process: bool,
    /// Every call is answered at once, in this process and by its clock: no request is late, and
    /// every grant says [`at`](Grant::at) which time it was made.
    pub inline: bool,
}
