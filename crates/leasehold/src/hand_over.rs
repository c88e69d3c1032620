//! Grants that outlive who acquired them (rules T8, T9).

use std::{
    fmt,
    future::{Future, IntoFuture},
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use leasehold_core::{
    Binding, Error, ErrorKind, Extended, FencingToken, InvalidArgument, LockId, Operation,
    Released, Remaining, Renewal, Renewed, Result, Ticket, Token, Ttl,
};

use crate::{core::Core, entry::Entry, lease::Lease};

pub(crate) const NEEDS_TTL: &str = "a grant that is bound to its token needs a TTL";

/// A grant that was acquired for whoever has its ticket.
#[derive(Clone, Debug)]
pub struct Detached {
    ticket: Ticket,
    fencing: FencingToken,
}

impl Detached {
    pub(crate) const fn new(ticket: Ticket, fencing: FencingToken) -> Self {
        Self { ticket, fencing }
    }

    /// The ticket.
    #[must_use]
    pub const fn ticket(&self) -> &Ticket {
        &self.ticket
    }

    /// The ticket, to keep.
    #[must_use]
    pub fn into_ticket(self) -> Ticket {
        self.ticket
    }

    /// The grant's fencing token.
    #[must_use]
    pub const fn fencing_token(&self) -> FencingToken {
        self.fencing
    }
}

/// A hand-over that failed: why, and the lease, which is as it was.
#[derive(Debug)]
pub struct NotHandedOver {
    lease: Lease,
    error: Error,
}

impl NotHandedOver {
    pub(crate) const fn new(lease: Lease, error: Error) -> Self {
        Self { lease, error }
    }

    /// Why.
    #[must_use]
    pub const fn error(&self) -> &Error {
        &self.error
    }

    /// The lease, to go on with.
    pub fn into_lease(self) -> Lease {
        self.lease
    }
}

impl fmt::Display for NotHandedOver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for NotHandedOver {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        std::error::Error::source(&self.error)
    }
}

impl From<NotHandedOver> for Error {
    fn from(failed: NotHandedOver) -> Self {
        failed.error
    }
}

/// A grant by its token: neither renewed nor released on drop, and not checked until it is used.
///
/// Made by `restore`. A token that the store does not know gives a reference that holds nothing; a
/// token that is still queued holds once it is granted (rule T9).
#[derive(Clone)]
#[must_use = "a reference does nothing unless used"]
pub struct LeaseRef {
    core: Arc<Core>,
    lock: Arc<LockId>,
    token: Token,
}

impl LeaseRef {
    pub(crate) const fn new(core: Arc<Core>, lock: Arc<LockId>, token: Token) -> Self {
        Self { core, lock, token }
    }

    /// The lock.
    #[must_use]
    pub fn lock(&self) -> &LockId {
        &self.lock
    }

    /// The token.
    #[must_use]
    pub const fn token(&self) -> &Token {
        &self.token
    }

    /// Asks the store whether the grant is alive.
    ///
    /// # Errors
    /// `Backend`, `ShutDown`.
    pub async fn is_held(&self) -> Result<bool> {
        Ok(self.remaining().await? != Remaining::Gone)
    }

    /// Asks the store what is left of the TTL.
    ///
    /// # Errors
    /// `Backend`, `ShutDown`.
    pub async fn remaining(&self) -> Result<Remaining> {
        let answer = self.core.backend.remaining(&self.lock, &self.token).await;
        answer.map_err(|fault| Error::from_fault(fault, Operation::Hold).on(&self.lock))
    }

    /// As [`Lease::extend`].
    ///
    /// # Errors
    /// As [`Lease::extend`].
    pub async fn extend(&self, ttl: impl Into<Option<Duration>>) -> Result<bool> {
        let invalid = |invalid: InvalidArgument| {
            let kind = ErrorKind::InvalidArgument { message: invalid.to_string() };
            Error::new(kind, Operation::Extend).on(&self.lock)
        };
        let ttl = ttl.into().map(Ttl::new).transpose().map_err(invalid)?;
        match self.core.backend.extend(&self.lock, &self.token, ttl).await {
            Ok(Extended::Held) => Ok(true),
            Ok(Extended::Gone) => Ok(false),
            Ok(Extended::NeedsTtl) => Err(invalid(InvalidArgument::new(NEEDS_TTL))),
            Err(fault) => Err(Error::from_fault(fault, Operation::Extend).on(&self.lock)),
        }
    }

    /// Starts the grant's own TTL anew, once, unless more than that is left, and says whether the
    /// grant was still alive. One without a TTL stays so (rule L2).
    ///
    /// # Errors
    /// `Backend`, `ShutDown`.
    pub async fn renew(&self) -> Result<bool> {
        let renewal = Renewal { lock: Arc::clone(&self.lock), token: self.token.clone() };
        let answers = self.core.backend.renew(vec![renewal]).await;
        let answers =
            answers.map_err(|fault| Error::from_fault(fault, Operation::Extend).on(&self.lock))?;
        Ok(matches!(answers[..], [Renewed::Held { .. }]))
    }

    /// Gives the grant back and says whether it was alive. A waiter with this token stays queued: so
    /// the store is asked twice, whether it is a grant, and then for its release.
    ///
    /// # Cancel safety
    /// Dropping the future before its end leaves open whether the grant was given back; it can be
    /// asked for again (rule T6).
    ///
    /// # Errors
    /// `Backend`, `ShutDown`.
    pub async fn release(&self) -> Result<bool> {
        // SL5: a reference to a queued token frees nothing; releasing would take the waiter out.
        if !self.is_held().await? {
            return Ok(false);
        }
        let answer = self.core.backend.release(&self.lock, &self.token).await;
        answer
            .map(|released| released == Released::Holder)
            .map_err(|fault| Error::from_fault(fault, Operation::Release).on(&self.lock))
    }

    /// Checks the grant, binds it to this manager's client and makes a guard of it. Await it, or
    /// add [`renew`](Adopt::renew) first. `None`: the grant is gone.
    ///
    /// # Fairness
    /// It waits for nobody and nothing: the grant is there, or it is not.
    ///
    /// # Cancel safety
    /// Dropping the future before its end may leave the grant bound to this client: it ends with its
    /// TTL or with the client then, unless it is adopted again.
    pub fn adopt(&self) -> Adopt {
        Adopt { of: self.clone(), renew: false }
    }
}

impl fmt::Debug for LeaseRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaseRef")
            .field("lock", &self.lock)
            .field("token", &self.token)
            .finish_non_exhaustive()
    }
}

/// An adoption to be awaited; see [`LeaseRef::adopt`].
#[derive(Debug)]
#[must_use = "an adoption does nothing unless awaited"]
pub struct Adopt {
    of: LeaseRef,
    renew: bool,
}

impl Adopt {
    /// Renews the lease from then on while it is held.
    pub const fn renew(mut self) -> Self {
        self.renew = true;
        self
    }

    async fn run(self) -> Result<Option<Lease>> {
        let LeaseRef { core, lock, token } = self.of;
        if core.life.refuses() {
            return Err(Error::new(ErrorKind::ShutDown, Operation::HandOver).on(&lock));
        }
        let sent = core.clock.now();
        match core.backend.rebind(&lock, &token, Binding::Client, None).await {
            Ok(Some(_)) if !core.life.lease_begins() => {
                // Bound to this client now, it ends with the client.
                Err(Error::new(ErrorKind::ShutDown, Operation::HandOver).on(&lock))
            }
            Ok(Some(grant)) => {
                let entry = Entry::adopt(&core, &lock, grant.capacity);
                entry.note(grant.generation, grant.capacity);
                Ok(Some(Lease::adopted(entry, token, grant, sent, self.renew)))
            }
            Ok(None) => Ok(None),
            Err(fault) => Err(Error::from_fault(fault, Operation::HandOver).on(&lock)),
        }
    }
}

impl IntoFuture for Adopt {
    type Output = Result<Option<Lease>>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}
