//! What a third party implements to add an adapter (rule S8).
//!
//! Three small traits: [`Adapter`] reads settings and makes instances, [`Instance`] starts, asks for
//! grants and closes, [`Grant`] gives back. All that is hard about locks (cancellation, late grants,
//! shared releases, shutdown) is done around them, by the [`kit`](crate::kit).

use std::{fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

use leasehold::{Clock, Error, FencingToken, InvalidArgument, LockId, Namespace, Result, Ttl};
/// What a failure of a store is made of: `Error::from_fault(Fault::new(kind, message), operation)`.
pub use leasehold::{Fault, FaultKind};

use crate::{config::Settings, kit::Interrupt};

/// A future in a box.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A kind of store that entries can name.
pub trait Adapter: Send + Sync + 'static {
    /// What an entry's `connection` says, checked.
    type Connection: Send + 'static;

    /// What entries call it.
    fn name(&self) -> &str;

    /// Who can compete for its locks. Default: other processes too.
    fn reach(&self) -> Reach {
        Reach::Shared
    }

    /// Reads `connection`, without I/O. Mistakes are told to `settings`, which also tells of fields
    /// that were not asked for. `None`: there was a mistake. An adapter that lives in this process is
    /// given an empty table.
    fn connection(&self, settings: &mut Settings<'_>) -> Option<Self::Connection>;

    /// Makes an instance, at boot: synchronous and without I/O (acceptance N38).
    ///
    /// # Errors
    /// Told as a mistake of the entry.
    fn create(
        &self,
        setup: Setup<Self::Connection>,
    ) -> std::result::Result<Arc<dyn Instance>, InvalidArgument>;
}

/// Who can compete for the locks of an adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// This process alone; such an entry has no `connection`, and a namespace of its own.
    InProcess,
    /// Whoever reaches the store.
    Shared,
}

/// What an instance is made from.
#[derive(Debug)]
#[non_exhaustive]
pub struct Setup<C> {
    /// The entry's name.
    pub entry: String,
    /// The entry's namespace.
    pub namespace: Namespace,
    /// The clock that decides expiry, where the adapter decides it.
    pub clock: Arc<dyn Clock>,
    /// The entry's `connection`, checked.
    pub connection: C,
}

/// The adapter at work for one entry. It is made at boot and kept until the service has ended,
/// whatever becomes of `start`.
pub trait Instance: fmt::Debug + Send + Sync + 'static {
    /// Opens what is needed. Called when the entry is first used; called again after a failure. It
    /// may be dropped half-way by a shutdown, which then calls [`close`](Self::close).
    fn start(&self) -> BoxFuture<'_, Result<()>>;

    /// Asks for a grant. `Ok(None)`: busy, and only that (rule S4); a wait that was interrupted is
    /// an error. The future does nothing before it is polled, is polled until it is ready, and is
    /// not dropped before unless it takes longer than the service's patience at shutdown.
    fn request(&self, request: Request) -> BoxFuture<'static, Result<Option<Box<dyn Grant>>>>;

    /// Closes what `start` opened, also what a failed or dropped `start` left. Called once all
    /// requests have settled and all leases were released; called again after a failure.
    fn close(&self) -> BoxFuture<'_, Result<()>>;
}

/// What is asked of an instance.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Request {
    /// The resource, with the namespace: [`LockId::key`] is injective and printable (acceptance
    /// N39).
    pub lock: LockId,
    /// The resource's TTL, else the entry's; `None`: nobody has said one.
    pub ttl: Option<Ttl>,
    /// How long to wait.
    pub wait: Wait,
    /// Completes when nobody wants the grant any more: the wait may end. A grant that comes all the
    /// same is released at once.
    pub interrupt: Interrupt,
}

impl Request {
    /// Puts a request together; for tests of adapters.
    #[must_use]
    pub const fn new(lock: LockId, ttl: Option<Ttl>, wait: Wait, interrupt: Interrupt) -> Self {
        Self { lock, ttl, wait, interrupt }
    }
}

/// How long a request may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Without a deadline.
    Forever,
    /// That long; zero is one attempt.
    AtMost(Duration),
}

/// A grant that an instance gave.
pub trait Grant: Send + Sync + 'static {
    /// Gives it back and says whether it was still alive. Called once; called again only after a
    /// failure, and never after the service was shut down (acceptance N29). Dropping a grant without
    /// a successful release gives it back as well as the adapter can.
    fn release(&self) -> BoxFuture<'_, Result<bool>>;

    /// Completes when the grant is lost. Default: never.
    fn lost(&self) -> BoxFuture<'_, Error> {
        Box::pin(std::future::pending())
    }

    /// Whether it is alive, as well as it is known here without asking. Default: yes.
    fn is_held(&self) -> bool {
        true
    }

    /// Grows with every grant of the resource, where the store has such a number. Default: none.
    fn fencing_token(&self) -> Option<FencingToken> {
        None
    }
}

/// Makes an instance of an entry whose connection is checked.
pub(crate) type Create =
    Box<dyn FnOnce(Setup<()>) -> std::result::Result<Arc<dyn Instance>, InvalidArgument> + Send>;

/// An [`Adapter`] whose connection's type is its own affair.
pub(crate) trait AnyAdapter: Send + Sync {
    fn name(&self) -> &str;
    fn reach(&self) -> Reach;
    fn prepare(&self, settings: &mut Settings<'_>) -> Option<Create>;
}

pub(crate) struct Erased<A>(pub(crate) Arc<A>);

impl<A: Adapter> AnyAdapter for Erased<A> {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn reach(&self) -> Reach {
        self.0.reach()
    }

    fn prepare(&self, settings: &mut Settings<'_>) -> Option<Create> {
        let connection = self.0.connection(settings)?;
        let adapter = Arc::clone(&self.0);
        Some(Box::new(move |setup| {
            let Setup { entry, namespace, clock, connection: () } = setup;
            adapter.create(Setup { entry, namespace, clock, connection })
        }))
    }
}
