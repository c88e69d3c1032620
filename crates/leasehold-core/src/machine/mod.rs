//! One lock as a value: what a store does to a lock in one step, without the store around it.
//!
//! [`LockMachine`] is the state machine of the [`Backend`](crate::Backend) contract for a store
//! that can keep its locks as values in memory. It holds no mutex, no map and no timer, and it
//! knows of no other lock. A store adds those: see [`LockMachine`] for what is left to do. The
//! memory store is made of it, and so is the toy in `docs/writing-a-backend.md`. A store that
//! cannot keep a value, because its state lies in rows or on a server, takes the rules of
//! `leasehold-queue` instead.
//!
//! ```text
//! LockMachine     mod.rs        one operation: drop what is overdue, work, complete watchers
//!   Lock          lock.rs       acquire, confirm, release (rules Q, L7, L10)
//!                 leases.rs     renew, extend, rebind, remaining (rules T4, T8, L2)
//!                 endings.rs    cancel_all, destroy, the end of a client, watch (rules W5, N5, N7)
//!                 report.rs     counts, inspect, obstacles (rules N4, E2)
//!     Grants      grants.rs     holders by token, by expiry, in order
//!     Waiter      waiters.rs    who is queued, who was rejected
//!     Watchers    watchers.rs   who only watches (rules U)
//! Step, Timeline  step.rs       the time of a step, and whom to wake after it
//! ```
//!
//! The queue itself is [`leasehold_queue::PermitQueue`].

mod endings;
mod grants;
mod leases;
mod lock;
mod report;
mod step;
mod waiters;
mod watchers;

use std::{fmt, sync::Arc};

pub use step::{Step, Timeline};

use crate::{
    Acquire, Acquired, Binding, ClientId, Confirmed, Destroyed, Extended, Fault, FencingToken,
    Generation, Grant, LocalTime, LockCounts, LockId, LockState, Released, Remaining, Renewed,
    Token, Ttl, WatchFor, Watched,
};

use lock::Lock;

/// The state of one lock, with an operation for each method of [`Backend`](crate::Backend) that is
/// about one lock. Each drops what is overdue, does what was asked, grants on and completes
/// watchers, so each is a whole step; whom to wake is left in the [`Step`].
///
/// What the store does:
/// - It calls under a mutex of its own and runs [`Step::finish`] after it was unlocked.
/// - It sees to it that [`tick`](Self::tick) comes at [`next_expiry`](Self::next_expiry) while
///   the lock [is awaited](Self::is_awaited) (rule T3).
/// - It drops locks that are [idle](Self::is_idle), as it likes, and makes them anew when they are
///   asked for, with a fencing token that is not below their last one (rule L8).
/// - It refuses the requests of a closed client, and ends what the client had with
///   [`forget_client`](Self::forget_client).
///
/// # Examples
/// ```
/// use std::sync::{Arc, Mutex};
/// use leasehold_core::machine::{LockMachine, Step, Timeline};
/// use leasehold_core::{
///     ClientId, FencingToken, LockId, LockKind, LockName, ManualClock, Namespace, Released, Token,
/// };
///
/// let name = LockName::new("job")?;
/// let id = Arc::new(LockId::new(Namespace::default(), LockKind::Mutex, name));
/// let timeline = Timeline::starting_now(Arc::new(ManualClock::new()));
/// let lock = Mutex::new(LockMachine::new(id, FencingToken(0)));
///
/// let mut step = Step::new(&timeline);
/// let released = lock.lock().unwrap().release(&Token::random(), &mut step);
/// step.finish();
/// assert_eq!(released, Released::Unknown);
/// # Ok::<(), leasehold_core::InvalidArgument>(())
/// ```
pub struct LockMachine(Lock);

impl LockMachine {
    /// A lock that nobody uses. Its fencing tokens come after `last` and after the store's time.
    #[must_use]
    pub fn new(id: Arc<LockId>, last: FencingToken) -> Self {
        Self(Lock::new(id, last.0))
    }

    /// See [`Backend::acquire`](crate::Backend::acquire).
    ///
    /// # Errors
    /// `Unsupported`: bound to its token without a TTL (rule T8).
    #[inline]
    pub fn acquire(
        &mut self,
        request: &Acquire,
        client: ClientId,
        step: &mut Step<'_>,
    ) -> Result<Acquired, Fault> {
        self.0.tick(step);
        // It frees nothing, so it completes no watcher.
        self.0.acquire(request, client, step)
    }

    /// See [`Backend::confirm`](crate::Backend::confirm).
    pub fn confirm(&mut self, token: &Token, step: &mut Step<'_>) -> Confirmed {
        self.run(step, |lock, step| lock.confirm(token, step))
    }

    /// See [`Backend::renew`](crate::Backend::renew); for one lease.
    pub fn renew(&mut self, token: &Token, step: &mut Step<'_>) -> Renewed {
        self.run(step, |lock, step| lock.renew(token, step))
    }

    /// See [`Backend::extend`](crate::Backend::extend).
    pub fn extend(&mut self, token: &Token, ttl: Option<Ttl>, step: &mut Step<'_>) -> Extended {
        self.run(step, |lock, step| lock.extend(token, ttl, step))
    }

    /// See [`Backend::rebind`](crate::Backend::rebind); `client` is the one that asks.
    ///
    /// # Errors
    /// `Unsupported`: to be bound to its token without a TTL (rule T8).
    pub fn rebind(
        &mut self,
        token: &Token,
        binding: Binding,
        ttl: Option<Ttl>,
        client: ClientId,
        step: &mut Step<'_>,
    ) -> Result<Option<Grant>, Fault> {
        self.run(step, |lock, step| lock.rebind(token, binding, ttl, client, step))
    }

    /// See [`Backend::release`](crate::Backend::release).
    #[inline]
    pub fn release(&mut self, token: &Token, step: &mut Step<'_>) -> Released {
        self.0.tick(step);
        if self.0.end(token, step) {
            self.0.fire_watchers(step);
            return Released::Holder;
        }
        self.leave(token, step)
    }

    /// See [`Backend::abandon`](crate::Backend::abandon).
    pub fn abandon(&mut self, token: &Token, step: &mut Step<'_>) {
        self.run(step, |lock, step| lock.abandon(token, step));
    }

    /// See [`Backend::remaining`](crate::Backend::remaining).
    pub fn remaining(&mut self, token: &Token, step: &mut Step<'_>) -> Remaining {
        self.run(step, |lock, step| lock.remaining(token, step))
    }

    /// See [`Backend::watch`](crate::Backend::watch).
    pub fn watch(
        &mut self,
        generation: Option<Generation>,
        id: &Token,
        what: WatchFor,
        client: ClientId,
        step: &mut Step<'_>,
    ) -> Watched {
        self.run(step, |lock, _| lock.watch(generation, id, what, client))
    }

    /// See [`Backend::unwatch`](crate::Backend::unwatch).
    pub fn unwatch(&mut self, id: &Token, step: &mut Step<'_>) {
        self.run(step, |lock, step| lock.unwatch(id, step));
    }

    /// See [`Backend::cancel_all`](crate::Backend::cancel_all).
    pub fn cancel_all(&mut self, reason: &str, step: &mut Step<'_>) -> u64 {
        self.run(step, |lock, step| lock.cancel_all(reason, step))
    }

    /// See [`Backend::destroy`](crate::Backend::destroy).
    pub fn destroy(
        &mut self,
        generation: Option<Generation>,
        reason: &str,
        step: &mut Step<'_>,
    ) -> Destroyed {
        self.run(step, |lock, step| lock.destroy(generation, reason, step))
    }

    /// See [`Backend::counts`](crate::Backend::counts).
    pub fn counts(&mut self, step: &mut Step<'_>) -> Option<LockCounts> {
        self.run(step, |lock, _| lock.counts())
    }

    /// See [`Backend::inspect`](crate::Backend::inspect).
    pub fn inspect(&mut self, step: &mut Step<'_>) -> Option<LockState> {
        self.run(step, |lock, step| lock.inspect(step))
    }

    /// Ends what is bound to a client that is closed or dead (rules N6, N7, T8): its grants, its
    /// waiters and its watchers. Grants that are bound to their token stay.
    pub fn forget_client(&mut self, client: ClientId, step: &mut Step<'_>) {
        self.run(step, |lock, step| lock.forget_client(client, step));
    }

    /// Drops what is overdue, and nothing else: what a timer does (rule T3).
    pub fn tick(&mut self, step: &mut Step<'_>) {
        self.0.tick(step);
    }

    /// Which lock this is.
    #[must_use]
    pub const fn id(&self) -> &Arc<LockId> {
        &self.0.id
    }

    /// When the next grant is over by itself, unless it is renewed.
    #[inline]
    #[must_use]
    pub fn next_expiry(&self) -> Option<LocalTime> {
        self.0.book.grants.next_expiry()
    }

    /// Whether somebody waits for what an expiry may bring. Nobody misses a timer otherwise.
    #[inline]
    #[must_use]
    pub fn is_awaited(&self) -> bool {
        self.0.is_awaited()
    }

    /// Whether nothing but the last fencing token would be lost with this value.
    #[inline]
    pub fn is_idle(&self, step: &mut Step<'_>) -> bool {
        self.0.is_idle(step)
    }

    /// The greatest fencing token given so far.
    #[must_use]
    pub const fn last_fencing(&self) -> FencingToken {
        FencingToken(self.0.book.last_fence)
    }

    /// Whether somebody holds, and nobody stopped waiting in this step without a grant.
    pub(crate) const fn is_handed_on(&self, step: &Step<'_>) -> bool {
        !step.left && !self.0.queue.is_idle()
    }

    /// The release of who does not hold.
    #[inline(never)]
    fn leave(&mut self, token: &Token, step: &mut Step<'_>) -> Released {
        self.run(step, |lock, step| lock.leave(token, step))
    }

    /// The frame of an operation. Those that are called most do without: an answer that is kept
    /// while watchers are looked for is moved once more.
    #[inline]
    fn run<'t, R>(
        &mut self,
        step: &mut Step<'t>,
        work: impl FnOnce(&mut Lock, &mut Step<'t>) -> R,
    ) -> R {
        self.0.tick(step);
        let answer = work(&mut self.0, step);
        self.0.fire_watchers(step);
        answer
    }
}

impl fmt::Debug for LockMachine {
    /// Without whom it knows: their tokens are secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockMachine")
            .field("id", &self.0.id)
            .field("generation", &self.0.generation)
            .field("used", &self.0.queue.used())
            .field("queued", &self.0.queue.queued())
            .finish_non_exhaustive()
    }
}
