//! A grant in the caller's hands: the guard of a lease lock.

use std::{
    fmt,
    future::{Future, poll_fn},
    pin::pin,
    sync::Arc,
    task::Poll,
    time::Duration,
};

use leasehold_core::{
    Binding, Error, ErrorKind, Extended, FencingToken, Grant, InvalidArgument, LocalTime, LockId,
    Operation, Released, Remaining, Result, Sleep, Ticket, Token, Ttl, Wake, WatchFor, Watched,
    defaults,
};

use crate::{
    entry::Entry,
    hand_over::{NEEDS_TTL, NotHandedOver},
    lease_state::{LeaseState, Tracked, UNKNOWN_TO_THE_STORE},
    observe,
    options::Options,
};

/// Proof of holding a lease lock. Dropping it gives the grant back.
///
/// A lease can be lost: its TTL can run out when it is not renewed in time, and somebody can
/// destroy the lock. Work that must not go on then watches [`lost`](Self::lost), and storage that
/// must not be written by a stale holder checks [`fencing_token`](Self::fencing_token).
///
/// # Cancel safety
/// Dropping a lease at any point is safe and needs no runtime: the store is told by the manager's
/// own means. [`release`](Self::release) waits for the store's answer.
#[must_use = "dropping a lease gives the grant back"]
pub struct Lease {
    tracked: Arc<Tracked>,
}

impl Lease {
    /// The grant was counted by [`Life::lease_begins`](crate::core::Life::lease_begins).
    pub(crate) fn new(
        entry: Arc<Entry>,
        token: Token,
        grant: Grant,
        sent: LocalTime,
        options: &Options,
    ) -> Self {
        let max_hold = options.rare.as_ref().and_then(|rare| rare.max_hold);
        let renewed = options.renewed_ttl();
        Self::of(Tracked::new(entry, token, grant, sent, options.ttl, max_hold), sent, renewed)
    }

    /// A grant that another client had, or that was bound to its token; counted like a new one.
    pub(crate) fn adopted(
        entry: Arc<Entry>,
        token: Token,
        grant: Grant,
        sent: LocalTime,
        renew: bool,
    ) -> Self {
        // The first renewal comes in time for what is left.
        let left = grant.remaining.and_then(|left| Ttl::new(left).ok()).filter(|_| renew);
        Self::of(Tracked::new(entry, token, grant, sent, grant.ttl, None), sent, left)
    }

    fn of(tracked: Tracked, sent: LocalTime, renewed: Option<Ttl>) -> Self {
        let tracked = Arc::new(tracked);
        if let Some(ttl) = renewed {
            tracked.core().renewer.track(&tracked, sent, ttl);
        }
        Self { tracked }
    }

    /// The lock.
    #[must_use]
    pub fn lock(&self) -> &LockId {
        &self.tracked.entry.id
    }

    /// Names the grant: a secret, who has it can extend and release the grant (rule T5).
    #[must_use]
    pub fn token(&self) -> &Token {
        &self.tracked.token
    }

    /// Grows with every grant of this lock: pass it along with every write, and let the storage
    /// reject one that is smaller than the largest it has seen (rule L8).
    #[must_use]
    pub fn fencing_token(&self) -> FencingToken {
        self.tracked.fencing
    }

    /// Whether the grant is still alive, as well as it is known here without asking the store: a
    /// lease whose deadline has passed by the local clock is not (rule L3).
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.tracked.release.done().is_none() && self.tracked.loss().is_none()
    }

    /// For how long from now the grant is certain to be held if the store is not heard from again;
    /// `None`: it has no TTL. Zero once it is lost. Renewals and extensions move it on; work that
    /// takes time to stop is told to stop when this gets as short as that (rule L3).
    #[must_use]
    pub fn certain_for(&self) -> Option<Duration> {
        if !self.is_held() {
            return Some(Duration::ZERO);
        }
        let deadline = self.tracked.deadline();
        (deadline != LocalTime::MAX).then(|| deadline.since(self.tracked.core().clock.now()))
    }

    /// Held, lost, or not known because a renewal failed (rule L3).
    #[must_use]
    pub fn state(&self) -> LeaseState {
        self.tracked.state()
    }

    /// Asks the store what is left of the TTL.
    ///
    /// # Errors
    /// `Backend`, `ShutDown`.
    pub async fn remaining(&self) -> Result<Remaining> {
        if self.tracked.release.done().is_some() {
            return Ok(Remaining::Gone);
        }
        let answer = self.tracked.core().backend.remaining(self.id(), self.token()).await;
        answer.map_err(|fault| Error::from_fault(fault, Operation::Hold).on(self.lock()))
    }

    /// Sets the end of the grant to now + `ttl` (it may be sooner than before), or removes it
    /// (`None`), and says whether the grant was still alive. A grant that is gone is never revived.
    /// Later renewals use the new TTL (rules T4, L2).
    ///
    /// # Errors
    /// `InvalidArgument` for a TTL outside of 1 ms ..= 2^31−1 ms, or none where one is needed;
    /// `Backend`, `ShutDown`.
    pub async fn extend(&self, ttl: impl Into<Option<Duration>>) -> Result<bool> {
        let invalid = |invalid: InvalidArgument| {
            let kind = ErrorKind::InvalidArgument { message: invalid.to_string() };
            Error::new(kind, Operation::Extend).on(self.lock())
        };
        let ttl = ttl.into().map(Ttl::new).transpose().map_err(invalid)?;
        // What is lost here stays lost, also in the moment that the store gives it longer (T4).
        if self.tracked.release.done().is_some() || self.tracked.loss().is_some() {
            return Ok(false);
        }
        let core = self.tracked.core();
        let sent = core.clock.now();
        let answer = core.backend.extend(self.id(), self.token(), ttl).await;
        match answer {
            Ok(Extended::Held) => {
                self.tracked.set_deadline(sent, ttl.map(Ttl::get));
                self.tracked.set_ttl(ttl);
                core.renewer.retime(&self.tracked, sent, ttl);
                Ok(true)
            }
            Ok(Extended::Gone) => {
                self.tracked.mark_lost(UNKNOWN_TO_THE_STORE);
                Ok(false)
            }
            Ok(Extended::NeedsTtl) => Err(invalid(InvalidArgument::new(NEEDS_TTL))),
            Err(fault) => Err(Error::from_fault(fault, Operation::Extend).on(self.lock())),
        }
    }

    /// Completes when the lease is lost, with the reason: its TTL ran out, the store does not know
    /// it any more, the lock was destroyed, or the manager was shut down. It does not complete for
    /// a lease that was released in good order.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing; it can be asked for again, and several may wait.
    pub async fn lost(&self) -> Error {
        let tracked = &*self.tracked;
        let core = tracked.core();
        let wake = Wake::new();
        let _shutdown = core.ends.join(wake.clone());
        let _loss = tracked.losses.join(wake.clone());
        let mut destroyed = pin!(self.destroyed());
        let mut timer: Option<Sleep> = None;
        poll_fn(|cx| {
            loop {
                if let Some(why) = tracked.loss() {
                    return Poll::Ready(tracked.lost_error(why));
                }
                if wake.poll_notified(cx).is_ready() {
                    continue;
                }
                if destroyed.as_mut().poll(cx).is_ready() {
                    tracked.mark_lost("the lock was destroyed");
                    continue;
                }
                let deadline = tracked.deadline();
                if deadline == LocalTime::MAX {
                    timer = None;
                    return Poll::Pending;
                }
                // The deadline moves with every renewal; the timer follows when it fires.
                let timer =
                    timer.get_or_insert_with(|| Sleep::until(Arc::clone(&core.clock), deadline));
                match pin!(&mut *timer).poll(cx) {
                    Poll::Pending if timer.deadline() <= deadline => return Poll::Pending,
                    _ => *timer = Sleep::until(Arc::clone(&core.clock), deadline),
                }
            }
        })
        .await
    }

    /// Gives the grant back and says whether it was still alive. Concurrent calls share one
    /// result, repeated calls repeat it, and after a failure it can be called again (rule T6). A
    /// lease that is known to be lost is not asked about.
    ///
    /// # Cancel safety
    /// Dropping the future may or may not have given the grant back; dropping the lease does.
    ///
    /// # Errors
    /// `Backend`.
    pub async fn release(&self) -> Result<bool> {
        let tracked = &*self.tracked;
        tracked
            .release
            .run(async || {
                let core = tracked.core();
                core.renewer.forget(tracked);
                if tracked.known_lost() {
                    // By the store's clock it may have a moment left.
                    core.backend.abandon(self.id(), self.token());
                    tracked.end(false);
                    return Ok(false);
                }
                match core.backend.release(self.id(), self.token()).await {
                    Ok(released) => {
                        let held = released == Released::Holder;
                        if !held {
                            tracked.mark_lost(UNKNOWN_TO_THE_STORE);
                        }
                        tracked.end(held);
                        Ok(held)
                    }
                    Err(fault) => {
                        observe::release_failed(self.lock(), self.token(), &fault);
                        Err(Error::from_fault(fault, Operation::Release).on(self.lock()))
                    }
                }
            })
            .await
    }

    /// The same for a thread: blocks until the store has answered.
    ///
    /// # Errors
    /// As [`release`](Self::release).
    pub fn release_blocking(&self) -> Result<bool> {
        pollster::block_on(self.release())
    }

    /// Hands the grant over: binds it to its token in the store, starts its full TTL, and then gives
    /// the ticket. From then on neither the end of this process nor a shutdown ends the grant; the
    /// TTL, a release with the ticket and a destroy do (rule T8).
    ///
    /// # Cancel safety
    /// Dropping the future before it is ready gives the grant back.
    ///
    /// # Errors
    /// [`NotHandedOver`], with the lease in it: `InvalidArgument` without a TTL, `Lost`, `Backend`.
    ///
    /// # Examples
    /// ```
    /// # pollster::block_on(async {
    /// # let locks = leasehold::LockManager::in_memory();
    /// let ticket = locks.mutex("orders")?.lock().await?.into_ticket().await?;
    /// assert!(locks.restore(&ticket)?.is_held().await?);
    /// assert!(locks.restore(&ticket)?.release().await?);
    /// # Ok::<(), leasehold::Error>(()) }).unwrap();
    /// ```
    pub async fn into_ticket(self) -> Result<Ticket, NotHandedOver> {
        let Some(ttl) = self.tracked.ttl() else {
            let kind = ErrorKind::InvalidArgument { message: NEEDS_TTL.into() };
            let error = Error::new(kind, Operation::HandOver).on(self.lock());
            return Err(NotHandedOver::new(self, error));
        };
        let core = self.tracked.core();
        let answer = core.backend.rebind(self.id(), self.token(), Binding::Token, Some(ttl)).await;
        match answer {
            Ok(Some(_)) => {
                core.renewer.forget(&self.tracked);
                self.tracked.end(true);
                Ok(Ticket::new(self.lock().clone(), self.token().clone()))
            }
            Ok(None) => {
                self.tracked.mark_lost(UNKNOWN_TO_THE_STORE);
                let error = self.loss();
                Err(NotHandedOver::new(self, error))
            }
            Err(fault) => {
                let error = Error::from_fault(fault, Operation::HandOver).on(self.lock());
                Err(NotHandedOver::new(self, error))
            }
        }
    }

    /// Why the lease is lost, as an error; for work that ended under a lost lease.
    pub(crate) fn loss(&self) -> Error {
        let why = self.tracked.loss().unwrap_or(UNKNOWN_TO_THE_STORE);
        self.tracked.lost_error(why)
    }

    /// Ready when the lock was destroyed. A watcher that is told nothing but that.
    async fn destroyed(&self) {
        let tracked = &*self.tracked;
        let watch = DestroyWatch { lease: self, id: Token::random() };
        loop {
            let backend = &tracked.core().backend;
            let what = WatchFor::Destroyed;
            match backend.watch(self.id(), Some(tracked.generation), &watch.id, what).await {
                Ok(Watched::Waiting(wake)) => wake.notified().await,
                Ok(Watched::Done | Watched::Destroyed) => return,
                // A store that cannot watch now is asked again; until then the deadline and the
                // renewals tell.
                Err(_) => {
                    let clock = &tracked.core().clock;
                    let again = clock.now().after(defaults::BEAT);
                    Sleep::until(Arc::clone(clock), again).await;
                }
            }
        }
    }

    fn id(&self) -> &Arc<LockId> {
        &self.tracked.entry.id
    }
}

struct DestroyWatch<'a> {
    lease: &'a Lease,
    id: Token,
}

impl Drop for DestroyWatch<'_> {
    fn drop(&mut self) {
        self.lease.tracked.core().backend.unwatch(self.lease.id(), &self.id);
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.tracked.has_ended() {
            return;
        }
        let core = self.tracked.core();
        core.renewer.forget(&self.tracked);
        core.backend.abandon(self.id(), self.token());
        self.tracked.end(true);
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("lock", self.id())
            .field("token", self.token())
            .field("fencing", &self.tracked.fencing.get())
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}
