//! One lock: its queue, its grants, and the steps that acquiring and releasing are made of.

use std::{collections::HashMap, sync::Arc};

use leasehold_queue::{Enqueued, PermitQueue, WaiterKey};

use super::{
    grants::{Grants, Holder},
    leases,
    step::Step,
    waiters::{Rejections, Waiter},
    watchers::Watchers,
};
use crate::{
    Acquire, Acquired, Binding, Capacity, ClientId, Confirmed, Fault, FencingToken, Generation,
    Grant, LocalTime, LockId, Place, Refusal, Released, Token, Wake, WatchFor, defaults::CLAIM,
};

/// Places of waiters that an index with nobody in it may keep.
const INDEX_KEPT: usize = 64;

/// One lock. Every operation comes between [`tick`](Self::tick) and
/// [`fire_watchers`](Self::fire_watchers); see [`LockMachine`](super::LockMachine).
pub(super) struct Lock {
    pub(super) id: Arc<LockId>,
    pub(super) generation: Generation,
    /// What counts while the lock is in use; the next to ask may change it otherwise.
    pub(super) registered: Option<Capacity>,
    pub(super) queue: PermitQueue<Waiter>,
    pub(super) book: Book,
    pub(super) rejections: Rejections,
    /// Boxed: most locks are never watched.
    pub(super) watchers: Option<Box<Watchers>>,
    /// Until when a destroy is remembered for old handles (rule N5).
    pub(super) remembered_until: Option<LocalTime>,
}

/// Who holds and where who waits; apart from the queue, whose grants are written down here.
pub(super) struct Book {
    pub(super) grants: Grants,
    pub(super) queued: HashMap<Token, WaiterKey>,
    pub(super) last_fence: u64,
    /// How many waiters were ever granted.
    pub(super) claims: u64,
}

impl Lock {
    /// A lock that nobody uses. Its fencing tokens go on after `fence_floor`.
    pub(super) fn new(id: Arc<LockId>, fence_floor: u64) -> Self {
        Self {
            id,
            generation: Generation::default(),
            registered: None,
            queue: queue_of(Capacity::ONE),
            book: Book {
                grants: Grants::new(),
                queued: HashMap::new(),
                last_fence: fence_floor,
                claims: 0,
            },
            rejections: Rejections::default(),
            watchers: None,
            remembered_until: None,
        }
    }

    /// Drops what is overdue by the clock and lets the queue grant on (rules L1, T3).
    #[inline]
    pub(super) fn tick(&mut self, step: &mut Step<'_>) {
        if let Some(next) = self.book.grants.next_expiry()
            && next <= step.now()
        {
            while let Some(overdue) = self.book.grants.pop_overdue(step.now()) {
                self.give_back(overdue, step);
            }
            // Before anything else happens in this step: an expiry may be what they wait for.
            self.fire_watchers(step);
        }
    }

    /// See [`Backend::acquire`](crate::Backend::acquire), whose order of checks this is.
    pub(super) fn acquire(
        &mut self,
        request: &Acquire,
        client: ClientId,
        step: &mut Step<'_>,
    ) -> Result<Acquired, Fault> {
        if request.binding == Binding::Token && request.ttl.is_none() {
            return Err(leases::needs_ttl());
        }
        if request.not_after.is_some_and(|not_after| not_after <= step.store_time()) {
            return Ok(Acquired::Refused(Refusal::Stale));
        }
        // Nobody is known by any token on most locks, most of the time.
        if !self.is_unknown()
            && let Some(known) = self.replay(request, step)
        {
            return Ok(known);
        }
        if request.generation.is_some_and(|generation| generation < self.generation) {
            return Ok(Acquired::Refused(Refusal::Destroyed));
        }
        let capacity = match self.agree(request) {
            Ok(capacity) => capacity,
            Err(registered) => {
                return Ok(Acquired::Refused(Refusal::ConfigMismatch { registered }));
            }
        };
        let weight = request.share.weight(capacity);
        match self.queue.acquire_now(weight) {
            Err(_) => Ok(Acquired::Refused(Refusal::TooHeavy { capacity })),
            Ok(true) => Ok(Acquired::Granted(self.grant(request, client, weight, capacity, step))),
            Ok(false) if !request.wait => Ok(Acquired::Busy(self.obstacle(self.queued(), step))),
            Ok(false) => Ok(self.wait(request, client, weight, capacity, step)),
        }
    }

    #[inline]
    fn is_unknown(&self) -> bool {
        self.queue.is_idle() && self.rejections.is_empty()
    }

    /// What is known of the token already (rule L7).
    #[inline(never)]
    fn replay(&mut self, request: &Acquire, step: &mut Step<'_>) -> Option<Acquired> {
        let token = &request.token;
        let in_use = Some(Acquired::Refused(Refusal::TokenInUse));
        if let Some(holder) = self.book.grants.get(token) {
            if holder.attempt != request.attempt {
                return in_use;
            }
            if holder.claimed {
                // Whoever asks again lives, and takes the answer for the grant: so it confirms.
                let now = step.now();
                self.book.grants.change(token, |holder| holder.confirm(now));
            }
            return self.grant_of(token, step).map(Acquired::Granted);
        }
        if let Some(key) = self.book.queued.get(token) {
            let waiter = self.queue.get(*key).expect("who is in the index is queued");
            if waiter.attempt != request.attempt {
                return in_use;
            }
            let (wake, ahead) = (waiter.wake.clone(), self.ahead_of(*key));
            return Some(Acquired::Queued(self.place(wake, ahead, step)));
        }
        let rejected = self.rejections.get(token)?;
        if rejected.attempt != request.attempt {
            return in_use;
        }
        // Its flag is set, so it will ask and be told.
        let wake = rejected.wake.clone();
        Some(Acquired::Queued(self.place(wake, 0, step)))
    }

    /// The capacity in effect, which is the caller's when nobody uses the lock; `Err`: another
    /// one is in effect (rule N2).
    #[inline]
    fn agree(&mut self, request: &Acquire) -> Result<Capacity, Capacity> {
        let claim = request.capacity;
        match self.registered {
            Some(registered) if self.in_use() => {
                if claim.accepts(registered) {
                    Ok(registered)
                } else {
                    Err(registered)
                }
            }
            _ => {
                let capacity = claim.initial();
                self.registered = Some(capacity);
                if self.queue.capacity() != capacity.get() {
                    self.queue = queue_of(capacity);
                }
                // A handle may know of a destroy that was forgotten here meanwhile.
                self.generation = self.generation.max(request.generation.unwrap_or_default());
                Ok(capacity)
            }
        }
    }

    #[inline]
    fn grant(
        &mut self,
        request: &Acquire,
        client: ClientId,
        weight: u32,
        capacity: Capacity,
        step: &mut Step<'_>,
    ) -> Grant {
        let now = step.now();
        let fencing = self.book.next_fence(step);
        self.book.grants.push(Holder {
            token: request.token.clone(),
            attempt: request.attempt,
            client,
            binding: request.binding,
            share: request.share,
            weight,
            fencing,
            since: now,
            expiry: request.ttl.map(|ttl| now.after(ttl.get())),
            ttl: request.ttl,
            claimed: false,
            info: Arc::clone(&request.info),
        });
        let remaining = request.ttl.map(crate::Ttl::get);
        Grant {
            fencing,
            remaining,
            ttl: request.ttl,
            at: Some(now),
            generation: self.generation,
            capacity,
        }
    }

    #[inline(never)]
    fn wait(
        &mut self,
        request: &Acquire,
        client: ClientId,
        weight: u32,
        capacity: Capacity,
        step: &mut Step<'_>,
    ) -> Acquired {
        let ahead = self.queued();
        if ahead >= request.queue_limit {
            return Acquired::Refused(Refusal::QueueFull { limit: request.queue_limit });
        }
        let wake = Wake::new();
        let waiter = Waiter {
            token: request.token.clone(),
            attempt: request.attempt,
            client,
            binding: request.binding,
            share: request.share,
            ttl: request.ttl,
            info: Arc::clone(&request.info),
            wake: wake.clone(),
            since: step.now(),
            ahead,
            claims_before: self.book.claims,
        };
        match self.queue.enqueue(weight, waiter) {
            Ok(Enqueued::Queued(key)) => {
                self.book.queued.insert(request.token.clone(), key);
                Acquired::Queued(self.place(wake, ahead, step))
            }
            Ok(Enqueued::Granted(_)) => unreachable!("it did not fit a moment ago"),
            Err((_, waiter)) => {
                debug_assert!(weight <= capacity.get(), "the weight was checked before");
                drop(waiter);
                Acquired::Refused(Refusal::QueueFull { limit: ahead })
            }
        }
    }

    /// See [`Backend::confirm`](crate::Backend::confirm).
    pub(super) fn confirm(&mut self, token: &Token, step: &mut Step<'_>) -> Confirmed {
        let now = step.now();
        if self.book.grants.change(token, |holder| holder.confirm(now)).is_some() {
            return self.grant_of(token, step).map_or(Confirmed::Unknown, Confirmed::Granted);
        }
        if self.book.queued.contains_key(token) {
            return Confirmed::Waiting;
        }
        match self.rejections.take(token) {
            Some(rejected) => Confirmed::Rejected((&rejected.why).into()),
            None => Confirmed::Unknown,
        }
    }

    /// The release of a holder; false: it holds nothing.
    #[inline]
    pub(super) fn end(&mut self, token: &Token, step: &mut Step<'_>) -> bool {
        let Some(weight) = self.book.grants.remove(token) else { return false };
        self.give_back(weight, step);
        true
    }

    /// The release of who does not hold.
    pub(super) fn leave(&mut self, token: &Token, step: &mut Step<'_>) -> Released {
        if let Some(key) = self.book.queued.get(token).copied() {
            let obstacle = self.obstacle(self.ahead_of(key), step);
            // Somebody else may have released it by its token; then it does not know yet.
            let waiter = self.take_out(key, step);
            step.wake(waiter.wake);
            return Released::Waiter(Some(obstacle));
        }
        self.rejections.take(token);
        Released::Unknown
    }

    /// The release of whoever it is, where nobody asks what stood in the way.
    pub(super) fn abandon(&mut self, token: &Token, step: &mut Step<'_>) {
        if let Some(key) = self.book.queued.get(token).copied() {
            self.take_out(key, step);
        } else if !self.end(token, step) {
            self.rejections.take(token);
        }
    }

    /// Gives permits back and hands them to the head of the queue in the same step (rule Q3).
    #[inline]
    pub(super) fn give_back(&mut self, weight: u32, step: &mut Step<'_>) {
        let book = &mut self.book;
        self.queue
            .release(weight, |_, weight, waiter| book.claim(weight, waiter, step))
            .expect("what a grant has is held");
    }

    /// Takes a waiter out and lets in those it blocked (rule Q4).
    pub(super) fn take_out(&mut self, key: WaiterKey, step: &mut Step<'_>) -> Waiter {
        step.left = true;
        let book = &mut self.book;
        let waiter = self
            .queue
            .cancel(key, |_, weight, waiter| book.claim(weight, waiter, step))
            .expect("who is in the index is queued");
        self.book.unlist(&waiter.token);
        waiter
    }

    /// Completes the watchers whose condition holds at the end of a step. A hand-off is within a
    /// step, so it makes nothing free (rule U1).
    #[inline]
    pub(super) fn fire_watchers(&mut self, step: &mut Step<'_>) {
        if self.watchers.is_some() {
            self.fire_some(step);
        }
    }

    #[inline(never)]
    fn fire_some(&mut self, step: &mut Step<'_>) {
        if let Some(mut watchers) = self.watchers.take() {
            watchers.fire(|what| self.holds(what), |wake| step.wake(wake));
            self.watchers = (!watchers.is_empty()).then_some(watchers);
        }
    }

    /// Whether what a watcher waits for is true now.
    pub(super) const fn holds(&self, what: WatchFor) -> bool {
        match what {
            WatchFor::Unlocked => self.queue.used() == 0,
            WatchFor::AnyPermit => self.queue.free() > 0,
            WatchFor::Readable => self.queue.free() > 0 && self.queue.queued() == 0,
            WatchFor::Destroyed => false,
        }
    }

    /// Whether somebody holds, waits or watches.
    #[inline]
    pub(super) fn in_use(&self) -> bool {
        !self.queue.is_idle() || self.watchers.as_ref().is_some_and(|all| all.waiting() > 0)
    }

    /// Whether somebody waits for what an expiry may bring.
    #[inline]
    pub(super) fn is_awaited(&self) -> bool {
        self.queue.queued() > 0 || self.watchers.as_ref().is_some_and(|all| all.wait_for_permits())
    }

    /// Whether nothing would be lost with this entry.
    #[inline]
    pub(super) fn is_idle(&self, step: &mut Step<'_>) -> bool {
        self.queue.is_idle()
            && self.watchers.is_none()
            && self.rejections.is_empty()
            && self.remembered_until.is_none_or(|until| until <= step.now())
    }

    pub(super) const fn queued(&self) -> u64 {
        self.queue.queued() as u64
    }

    fn place(&self, wake: Wake, ahead: u64, step: &mut Step<'_>) -> Place {
        let obstacle = self.obstacle(ahead, step);
        let capacity = self.registered.unwrap_or(Capacity::ONE);
        Place { wake, obstacle, generation: self.generation, capacity }
    }
}

impl Book {
    /// The sink of every hand-off: the waiter gets a claim, which its confirmation turns into the
    /// full TTL (rule L10).
    #[inline(never)]
    fn claim(&mut self, weight: u32, waiter: Waiter, step: &mut Step<'_>) {
        self.unlist(&waiter.token);
        self.claims += 1;
        let now = step.now();
        let claim = waiter.ttl.map_or(CLAIM, |ttl| ttl.get().min(CLAIM));
        let fencing = self.next_fence(step);
        step.wake(waiter.wake);
        self.grants.push(Holder {
            token: waiter.token,
            attempt: waiter.attempt,
            client: waiter.client,
            binding: waiter.binding,
            share: waiter.share,
            weight,
            fencing,
            since: now,
            expiry: Some(now.after(claim)),
            ttl: waiter.ttl,
            claimed: true,
            info: waiter.info,
        });
    }

    /// Grows with every grant, and with the store's time (rule L8).
    #[inline]
    fn next_fence(&mut self, step: &mut Step<'_>) -> FencingToken {
        self.last_fence = step.store_time().0.max(self.last_fence + 1);
        FencingToken(self.last_fence)
    }

    fn unlist(&mut self, token: &Token) {
        self.queued.remove(token);
        if self.queued.is_empty() && self.queued.capacity() > 4 * INDEX_KEPT {
            // A crowd that has left leaves no memory behind.
            self.queued.shrink_to(INDEX_KEPT);
        }
    }
}

fn queue_of(capacity: Capacity) -> PermitQueue<Waiter> {
    PermitQueue::new(capacity.get()).expect("a capacity is checked when it is built")
}
