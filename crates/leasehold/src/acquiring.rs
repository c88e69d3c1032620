//! One acquisition on its way: request, wait, confirmation, and leaving the queue.
//!
//! The request carries a token and an attempt that are made before it is sent (rule L7). A queued
//! request waits for a hint, then asks the store what became of it (rule L5); a grant after a wait
//! is confirmed before it is delivered (rule L10). Who gives up tells the store, which answers in
//! the same step whether a waiter left or a grant was passed on (rule Q4). Dropping the future does
//! the same without waiting for the answer.

use std::{
    fmt,
    future::Future,
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use leasehold_core::{
    Acquire as Request, Acquired, Binding, Call, Confirmed, Error, ErrorKind, Fault, FaultKind,
    Grant, LocalTime, LockId, Obstacle, Operation, Place, Refusal, Rejection, Released, Result,
    Sleep, Ticket, Token, defaults,
};

use crate::{
    core::Wait, entry::Entry, hand_over::Detached, lease::Lease, observe, options::Options,
};

/// More requests in a row that come too late are a store whose clock runs wild.
const STALE_MAX: u8 = 4;

/// The future of an [`Acquire`](crate::Acquire).
///
/// # Cancel safety
/// Dropping it takes the request back: a waiter leaves the queue, a grant that was on its way is
/// passed on (rules Q4, W7). It needs no runtime for that.
#[must_use = "futures do nothing unless polled"]
pub struct Acquiring(Attempt);

/// The future of a [`TryAcquire`](crate::TryAcquire).
///
/// # Cancel safety
/// As [`Acquiring`].
#[must_use = "futures do nothing unless polled"]
pub struct TryAcquiring(Attempt);

/// The future of an acquisition that is bound to its token; see
/// [`Acquire::detached`](crate::Acquire::detached).
///
/// # Cancel safety
/// As [`Acquiring`]: what was not handed out yet is taken back.
#[must_use = "futures do nothing unless polled"]
pub struct Detaching(Attempt);

impl Acquiring {
    pub(crate) const fn new(entry: Arc<Entry>, options: Options) -> Self {
        Self(Attempt::new(entry, options))
    }
}

impl TryAcquiring {
    pub(crate) const fn new(entry: Arc<Entry>, options: Options) -> Self {
        Self(Attempt::new(entry, options))
    }
}

impl Detaching {
    pub(crate) const fn new(entry: Arc<Entry>, mut options: Options) -> Self {
        options.binding = Binding::Token;
        Self(Attempt::new(entry, options))
    }
}

impl Future for Acquiring {
    type Output = Result<Lease>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.poll(cx).map(|outcome| match outcome {
            Outcome::Held(held) => Ok(self.0.lease(held)),
            Outcome::Busy(error) | Outcome::Failed(error) => Err(error),
        })
    }
}

impl Future for TryAcquiring {
    type Output = Result<Option<Lease>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.poll(cx).map(|outcome| match outcome {
            Outcome::Held(held) => Ok(Some(self.0.lease(held))),
            Outcome::Busy(_) => Ok(None),
            Outcome::Failed(error) => Err(error),
        })
    }
}

impl Future for Detaching {
    type Output = Result<Detached>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.poll(cx).map(|outcome| match outcome {
            Outcome::Held(Held { token, grant, .. }) => {
                // What is bound to its token is nothing that a drain waits for.
                self.0.entry.core.life.lease_ends();
                let ticket = Ticket::new(LockId::clone(&self.0.entry.id), token);
                Ok(Detached::new(ticket, grant.fencing))
            }
            Outcome::Busy(error) | Outcome::Failed(error) => Err(error),
        })
    }
}

impl fmt::Debug for Acquiring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Acquiring").field(&self.0.entry.id).finish()
    }
}

impl fmt::Debug for TryAcquiring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TryAcquiring").field(&self.0.entry.id).finish()
    }
}

impl fmt::Debug for Detaching {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Detaching").field(&self.0.entry.id).finish()
    }
}

/// A grant that the caller is about to get.
struct Held {
    token: Token,
    grant: Grant,
    sent: LocalTime,
}

/// How an attempt ended. Busy is told apart from every other failure (rule W3).
enum Outcome {
    Held(Held),
    Busy(Error),
    Failed(Error),
}

struct Attempt {
    entry: Arc<Entry>,
    options: Options,
    /// The token and times of the request, once it was sent.
    sent: Option<Sent>,
    state: State,
}

#[derive(Clone)]
struct Sent {
    token: Token,
    /// When the request, or the last confirmation, was sent: the lease is judged from here. `None`
    /// while a store that answers inline has not made it wait: its grant says the time itself, and
    /// the clock is not read before it is needed (rule W2).
    at: Option<LocalTime>,
    first_at: Option<LocalTime>,
    deadline: Option<LocalTime>,
    /// How many requests before it came too late.
    stale: u8,
}

enum State {
    Start,
    /// Boxed, like all that follows: an acquisition that is answered at once moves less.
    Requested(Box<Requested>),
    Queued(Box<Queued>),
    Confirming(Call<Confirmed>, Box<Queued>),
    Leaving(Box<Leaving>),
    Done,
}

struct Requested {
    call: Call<Acquired>,
    /// Set when the answer does not come at once.
    limit: Option<Sleep>,
}

struct Leaving {
    call: Call<Released>,
    why: ErrorKind,
}

struct Queued {
    place: Place,
    /// Set when the wait is first polled; `None` waits for ever.
    timer: Option<Sleep>,
    wait: Wait,
}

impl Attempt {
    const fn new(entry: Arc<Entry>, options: Options) -> Self {
        Self { entry, options, sent: None, state: State::Start }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Outcome> {
        loop {
            match &mut self.state {
                State::Start => {
                    if let Err(error) = self.check(cx) {
                        return self.finish(Outcome::Failed(error));
                    }
                    if let Some(outcome) = self.send() {
                        return self.finish(outcome);
                    }
                }
                State::Requested(requested) => {
                    let Poll::Ready(answer) = Pin::new(&mut requested.call).poll(cx) else {
                        if let Some(error) = self.gave_up_before_the_answer(cx) {
                            self.abandon();
                            return self.finish(Outcome::Failed(error));
                        }
                        return Poll::Pending;
                    };
                    if let Some(outcome) = self.requested(answer) {
                        return self.finish(outcome);
                    }
                }
                State::Queued(queued) => {
                    let verdict = queued.wait.verdict();
                    if verdict.is_none() && queued.place.wake.poll_notified(cx).is_ready() {
                        self.confirm();
                        continue;
                    }
                    let kind = match verdict {
                        Some(kind) => kind,
                        None => ready!(self.gave_up(cx)),
                    };
                    self.leave(kind);
                }
                State::Confirming(call, _) => {
                    let answer = ready!(Pin::new(call).poll(cx));
                    if let Some(outcome) = self.confirmed(answer) {
                        return self.finish(outcome);
                    }
                }
                State::Leaving(leaving) => {
                    let answer = ready!(Pin::new(&mut leaving.call).poll(cx));
                    let outcome = self.left(answer);
                    return self.finish(outcome);
                }
                State::Done => panic!("an acquisition was polled after it had ended"),
            }
        }
    }

    /// Everything that can be refused without asking the store (rules W6, W4).
    fn check(&mut self, cx: &mut Context<'_>) -> Result<()> {
        self.options.check(&self.entry)?;
        if self.entry.core.life.refuses() {
            return Err(self.error(ErrorKind::ShutDown, None));
        }
        if self.entry.is_destroyed() {
            return Err(self.error(ErrorKind::Destroyed, None));
        }
        match self.poll_cancel(cx) {
            Poll::Ready(reason) => Err(self.error(ErrorKind::Cancelled { reason }, None)),
            Poll::Pending => Ok(()),
        }
    }

    /// Sends the request, and gives the outcome when the answer comes at once and is final.
    fn send(&mut self) -> Option<Outcome> {
        let core = &self.entry.core;
        let previous = self.sent.take();
        let at = (!core.inline).then(|| core.clock.now());
        let stale = previous.as_ref().map_or(0, |sent| sent.stale);
        let first_at = previous.map_or(at, |sent| sent.first_at);
        let rare = self.options.rare.as_deref();
        let drawn = Token::and_attempt();
        let token = rare.and_then(|rare| rare.token.clone()).unwrap_or(drawn.0);
        let timeout = self.options.timeout;
        let deadline = deadline(first_at, timeout);
        // A free lock is granted whatever the timeout (rule W2), so a short one does not make the
        // request stale on its way.
        let not_after = deadline.zip(at).map(|(deadline, at)| {
            core.backend.store_time(deadline.max(at.after(defaults::COMMAND_TIMEOUT)))
        });
        let info = rare.and_then(|rare| rare.info.as_ref()).unwrap_or(&core.info);
        let call = core.backend.acquire(&Request {
            lock: Arc::clone(&self.entry.id),
            generation: self.entry.generation(),
            capacity: self.entry.claim(),
            share: self.options.share,
            token: token.clone(),
            attempt: drawn.1,
            ttl: self.options.ttl,
            binding: self.options.binding,
            wait: timeout != Some(Duration::ZERO),
            not_after,
            queue_limit: defaults::QUEUE_LIMIT,
            info: Arc::clone(info),
        });
        self.sent = Some(Sent { token, at, first_at, deadline, stale });
        match call.into_ready() {
            Ok(answer) => self.requested(answer),
            Err(call) => {
                self.state = State::Requested(Box::new(Requested { call, limit: None }));
                None
            }
        }
    }

    fn requested(&mut self, answer: Result<Acquired, Fault>) -> Option<Outcome> {
        match answer {
            Ok(Acquired::Granted(grant)) => Some(self.deliver(grant, false)),
            Ok(Acquired::Queued(place)) => {
                self.queue(place);
                None
            }
            Ok(Acquired::Busy(obstacle)) => {
                observe::refused(&self.entry.id, "busy");
                Some(Outcome::Busy(self.error(ErrorKind::Timeout, Some(obstacle))))
            }
            Ok(Acquired::Refused(Refusal::Stale)) if self.may_ask_anew() => self.send(),
            Ok(Acquired::Refused(refusal)) => Some(Outcome::Failed(self.refused(refusal))),
            Err(fault) => {
                observe::refused(&self.entry.id, "backend");
                Some(Outcome::Failed(self.fault(fault)))
            }
        }
    }

    /// Whether a request that came too late, or whose grant ran out before the answer was seen (this
    /// process stood still), is asked for once more: nothing of it is in the store (rule L7), and its
    /// caller has time left.
    fn may_ask_anew(&mut self) -> bool {
        let sent = self.sent.as_mut().expect("a refused request was sent");
        sent.stale += 1;
        sent.stale < STALE_MAX
            && sent.deadline.is_none_or(|deadline| self.entry.core.clock.now() < deadline)
    }

    fn queue(&mut self, place: Place) {
        self.entry.note(place.generation, place.capacity);
        let sent = self.sent.as_mut().expect("a queued request was sent");
        if sent.first_at.is_none() {
            sent.first_at = Some(self.entry.core.clock.now());
            sent.deadline = deadline(sent.first_at, self.options.timeout);
        }
        observe::queued(&self.entry.id, &sent.token, &place.obstacle);
        if let Some(rare) = &mut self.options.rare
            && let Some(hook) = rare.on_queued.take()
        {
            hook(&place.obstacle);
        }
        let clock = &self.entry.core.clock;
        let timer = sent.deadline.map(|deadline| Sleep::until(Arc::clone(clock), deadline));
        let wait = self.entry.core.waits.join(place.wake.clone());
        // A shutdown that began before the wait was registered has not seen it.
        if self.entry.core.life.refuses() {
            self.leave(ErrorKind::ShutDown);
            return;
        }
        self.state = State::Queued(Box::new(Queued { place, timer, wait }));
    }

    fn confirm(&mut self) {
        let State::Queued(queued) = mem::replace(&mut self.state, State::Done) else {
            unreachable!("only a queued request is confirmed");
        };
        let core = &self.entry.core;
        let sent = self.sent.as_mut().expect("a queued request was sent");
        sent.at = Some(core.clock.now());
        let call = core.backend.confirm(&self.entry.id, &sent.token);
        self.state = State::Confirming(call, queued);
    }

    fn confirmed(&mut self, answer: Result<Confirmed, Fault>) -> Option<Outcome> {
        let State::Confirming(_, queued) = mem::replace(&mut self.state, State::Done) else {
            unreachable!("only a confirmation is answered");
        };
        match answer {
            Ok(Confirmed::Granted(grant)) => Some(self.deliver(grant, true)),
            Ok(Confirmed::Waiting) => {
                self.state = State::Queued(queued);
                None
            }
            Ok(Confirmed::Rejected(rejection)) => Some(Outcome::Failed(self.rejected(rejection))),
            Ok(Confirmed::Unknown) => {
                // The store had skipped this waiter as silent, or its grant ran out before it was
                // seen. The wait goes on from the tail, within its deadline.
                let sent = self.sent.as_ref().expect("a queued request was sent");
                observe::requeued(&self.entry.id, &sent.token);
                if sent.deadline.is_some_and(|deadline| self.entry.core.clock.now() >= deadline) {
                    return Some(Outcome::Busy(self.error(ErrorKind::Timeout, None)));
                }
                self.send()
            }
            Err(fault) => {
                self.abandon();
                Some(Outcome::Failed(self.fault(fault)))
            }
        }
    }

    fn leave(&mut self, kind: ErrorKind) {
        let sent = self.sent.as_ref().expect("a queued request was sent");
        let call = self.entry.core.backend.release(&self.entry.id, &sent.token);
        self.state = State::Leaving(Box::new(Leaving { call, why: kind }));
    }

    fn left(&mut self, answer: Result<Released, Fault>) -> Outcome {
        let State::Leaving(leaving) = mem::replace(&mut self.state, State::Done) else {
            unreachable!("only a leaving request is answered");
        };
        let kind = leaving.why;
        let sent = self.sent.as_ref().expect("a queued request was sent");
        let obstacle = match answer {
            Ok(Released::Waiter(obstacle)) => obstacle,
            Ok(Released::Holder) => {
                observe::late_grant(&self.entry.id, &sent.token);
                None
            }
            Ok(Released::Unknown) => None,
            Err(_) => {
                self.abandon();
                None
            }
        };
        let timed_out = kind == ErrorKind::Timeout;
        observe::refused(&self.entry.id, if timed_out { "timeout" } else { "cancelled" });
        let error = self.error(kind, obstacle);
        if timed_out { Outcome::Busy(error) } else { Outcome::Failed(error) }
    }

    fn deliver(&mut self, grant: Grant, after_wait: bool) -> Outcome {
        self.entry.note(grant.generation, grant.capacity);
        if !self.entry.core.life.lease_begins() {
            self.abandon();
            return Outcome::Failed(self.error(ErrorKind::ShutDown, None));
        }
        let sent = self.sent.take().expect("a granted request was sent");
        // The store's own word is the more exact one, where it is by this clock.
        let at = grant.at.or(sent.at).unwrap_or_else(|| self.entry.core.clock.now());
        let waited = sent.first_at.filter(|_| after_wait).map(|first| at.since(first));
        observe::granted(&self.entry.id, &sent.token, grant.fencing.get(), waited);
        Outcome::Held(Held { token: sent.token, grant, sent: at })
    }

    fn lease(&self, held: Held) -> Lease {
        let Held { token, grant, sent } = held;
        Lease::new(Arc::clone(&self.entry), token, grant, sent, &self.options)
    }

    fn rejected(&mut self, rejection: Rejection) -> Error {
        let reason = match rejection {
            Rejection::Destroyed { reason } => {
                self.entry.mark_destroyed();
                reason
            }
            Rejection::Cancelled { reason } => reason,
            _ => "by the store".into(),
        };
        observe::refused(&self.entry.id, "cancelled");
        self.error(ErrorKind::Cancelled { reason }, None)
    }

    fn refused(&self, refusal: Refusal) -> Error {
        observe::refused(&self.entry.id, "refused");
        let kind = match refusal {
            Refusal::TokenInUse => ErrorKind::TokenInUse,
            Refusal::ConfigMismatch { registered } => {
                ErrorKind::ConfigMismatch { registered, requested: self.entry.claim().initial() }
            }
            Refusal::TooHeavy { capacity } => ErrorKind::InvalidArgument {
                message: format!("the weight is above the capacity of {capacity}"),
            },
            Refusal::Destroyed => {
                self.entry.mark_destroyed();
                ErrorKind::Destroyed
            }
            Refusal::QueueFull { limit } => ErrorKind::QueueFull { limit },
            // `Stale`, and whatever a newer store may add.
            _ => ErrorKind::Stale,
        };
        self.error(kind, None)
    }

    /// Whether to give up while the store has not answered. The timeout alone is no reason as long
    /// as the answer may still say that the lock was free (rule W2); a store that does not answer
    /// at all is a failure of the store, never "busy" (rule W3).
    fn gave_up_before_the_answer(&mut self, cx: &mut Context<'_>) -> Option<Error> {
        if let Poll::Ready(reason) = self.poll_cancel(cx) {
            return Some(self.error(ErrorKind::Cancelled { reason }, None));
        }
        let sent = self.sent.as_ref()?;
        let limit = sent.deadline?.max(sent.at?.after(defaults::COMMAND_TIMEOUT));
        let State::Requested(requested) = &mut self.state else { return None };
        let clock = &self.entry.core.clock;
        let timer = requested.limit.get_or_insert_with(|| Sleep::until(Arc::clone(clock), limit));
        if Pin::new(timer).poll(cx).is_pending() {
            return None;
        }
        observe::refused(&self.entry.id, "backend");
        Some(self.fault(Fault::new(FaultKind::Unavailable, "the store did not answer in time")))
    }

    fn gave_up(&mut self, cx: &mut Context<'_>) -> Poll<ErrorKind> {
        if let Poll::Ready(reason) = self.poll_cancel(cx) {
            return Poll::Ready(ErrorKind::Cancelled { reason });
        }
        let State::Queued(queued) = &mut self.state else { return Poll::Pending };
        let Some(timer) = &mut queued.timer else { return Poll::Pending };
        Pin::new(timer).poll(cx).map(|()| ErrorKind::Timeout)
    }

    fn poll_cancel(&mut self, cx: &mut Context<'_>) -> Poll<String> {
        let Some(rare) = &mut self.options.rare else { return Poll::Pending };
        let Some(cancel) = &mut rare.cancel else { return Poll::Pending };
        let reason = ready!(cancel.as_mut().poll(cx));
        rare.cancel = None;
        Poll::Ready(reason)
    }

    fn error(&self, kind: ErrorKind, obstacle: Option<Obstacle>) -> Error {
        let error = Error::new(kind, Operation::Acquire)
            .on(&self.entry.id)
            .asking(self.options.share)
            .behind(obstacle);
        match self.options.timeout {
            Some(timeout) if error.is_timeout() => error.after(timeout),
            _ => error,
        }
    }

    fn fault(&self, fault: Fault) -> Error {
        Error::from_fault(fault, Operation::Acquire).on(&self.entry.id)
    }

    fn abandon(&self) {
        if let Some(sent) = &self.sent {
            self.entry.core.backend.abandon(&self.entry.id, &sent.token);
        }
    }

    fn finish(&mut self, outcome: Outcome) -> Poll<Outcome> {
        self.state = State::Done;
        Poll::Ready(outcome)
    }
}

fn deadline(from: Option<LocalTime>, timeout: Option<Duration>) -> Option<LocalTime> {
    from.zip(timeout).map(|(from, timeout)| from.after(timeout))
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if !matches!(self.state, State::Start | State::Done) {
            self.abandon();
        }
    }
}
