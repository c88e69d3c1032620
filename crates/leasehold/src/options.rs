//! What can be said about one acquisition.

use std::{
    fmt,
    future::{Future, IntoFuture},
    panic::Location,
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use leasehold_core::{
    Binding, Error, ErrorKind, HolderInfo, InvalidArgument, LockKind, Obstacle, Operation, Result,
    Share, Token, Ttl, Weight,
};
use leasehold_sync::CancelReason;

use crate::{
    acquiring::{Acquiring, Detaching, TryAcquiring},
    entry::Entry,
    hand_over::NEEDS_TTL,
    lease::Lease,
    run::{self, RunError},
};

/// An acquisition that waits in line: set what is special about it, then await it.
///
/// Made by `lock`, `read`, `write`, `acquire` and `acquire_many` of the named locks.
///
/// # Examples
/// ```
/// # pollster::block_on(async {
/// use std::time::Duration;
/// # let locks = leasehold::LockManager::in_memory();
/// let report = locks.mutex("nightly-report")?;
/// let lease = report.lock().timeout(Duration::from_secs(1)).label("night shift").await?;
/// # drop(lease);
/// # Ok::<(), leasehold::Error>(()) }).unwrap();
/// ```
#[must_use = "an acquisition does nothing unless awaited"]
pub struct Acquire {
    pub(crate) entry: Arc<Entry>,
    pub(crate) options: Options,
}

/// An acquisition that takes "busy" for an answer: set what is special about it, then await it.
///
/// Made by `try_lock`, `try_read`, `try_write` and `try_acquire` of the named locks. It does not
/// wait unless it is given a `timeout`, and gives `Ok(None)` for busy and only for busy (rule W3).
///
/// # Examples
/// ```
/// # pollster::block_on(async {
/// # let locks = leasehold::LockManager::in_memory();
/// let exports = locks.semaphore("exports", 3)?;
/// match exports.try_acquire().weight(2).await? {
///     Some(slots) => drop(slots),
///     None => println!("busy"),
/// }
/// # Ok::<(), leasehold::Error>(()) }).unwrap();
/// ```
#[must_use = "an acquisition does nothing unless awaited"]
pub struct TryAcquire {
    pub(crate) entry: Arc<Entry>,
    pub(crate) options: Options,
}

/// A caller's cancellation: its output is the reason.
pub(crate) type Cancel = Pin<Box<dyn Future<Output = String> + Send>>;

/// What a caller wants to do once it is queued.
pub(crate) type OnQueued = Box<dyn FnOnce(&Obstacle) + Send>;

pub(crate) struct Options {
    pub(crate) share: Share,
    pub(crate) timeout: Option<Duration>,
    pub(crate) ttl: Option<Ttl>,
    /// Said by the caller: renew, and a TTL of its own.
    renew: bool,
    own_ttl: bool,
    pub(crate) binding: Binding,
    /// What few acquisitions say, kept out of the way of those that do not.
    pub(crate) rare: Option<Box<Rare>>,
}

#[derive(Default)]
pub(crate) struct Rare {
    pub(crate) max_hold: Option<Duration>,
    pub(crate) cancel: Option<Cancel>,
    pub(crate) token: Option<Token>,
    pub(crate) info: Option<Arc<HolderInfo>>,
    pub(crate) on_queued: Option<OnQueued>,
    pub(crate) invalid: Option<InvalidArgument>,
}

impl Options {
    fn new(entry: &Entry, share: Share, timeout: Option<Duration>) -> Self {
        Self {
            share,
            timeout,
            ttl: entry.core.ttl,
            renew: false,
            own_ttl: false,
            binding: Binding::Client,
            rare: None,
        }
    }

    pub(crate) fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// Keeps the first thing that is wrong; it is told before anything else happens (rule W6).
    pub(crate) fn invalid(&mut self, argument: InvalidArgument) {
        self.rare().invalid.get_or_insert(argument);
    }

    /// The TTL that is renewed: the default one, or the caller's own when it says so (rule L2).
    pub(crate) fn renewed_ttl(&self) -> Option<Ttl> {
        self.ttl.filter(|_| self.renew || !self.own_ttl)
    }

    /// What is wrong with the arguments, told before anything else (rule W6).
    pub(crate) fn check(&mut self, entry: &Entry) -> Result<()> {
        let capacity = entry.capacity();
        if let Share::Permits(weight) = self.share
            && weight.get() > capacity.get()
        {
            self.invalid(InvalidArgument::new(format!(
                "a weight of {weight} is above the capacity of {capacity}"
            )));
        }
        if self.binding == Binding::Token && self.ttl.is_none() {
            self.invalid(InvalidArgument::new(NEEDS_TTL));
        }
        match self.rare.as_ref().and_then(|rare| rare.invalid.as_ref()) {
            None => Ok(()),
            Some(invalid) => {
                let kind = ErrorKind::InvalidArgument { message: invalid.to_string() };
                Err(Error::new(kind, Operation::Acquire).on(&entry.id))
            }
        }
    }

    fn set_ttl(&mut self, ttl: Option<Duration>) {
        self.own_ttl = true;
        match ttl.map(Ttl::new).transpose() {
            Ok(ttl) => self.ttl = ttl,
            Err(invalid) => self.invalid(invalid),
        }
    }

    fn set_weight(&mut self, entry: &Entry, permits: u32) {
        match Weight::new(permits) {
            // Q1: a read weighs 1 and a write weighs all.
            Ok(_) if entry.id.kind() == LockKind::RwLock => self.invalid(InvalidArgument::new(
                "a read or a write of a read-write lock has no weight of its own",
            )),
            Ok(weight) => self.share = Share::Permits(weight),
            Err(invalid) => self.invalid(invalid),
        }
    }

    fn set_label(&mut self, entry: &Entry, label: &str) {
        match entry.core.info.labelled(label) {
            Ok(info) => self.rare().info = Some(Arc::new(info)),
            Err(invalid) => self.invalid(invalid),
        }
    }
}

impl Acquire {
    pub(crate) fn new(entry: &Arc<Entry>, share: Share) -> Self {
        let options = Options::new(entry, share, entry.core.timeout);
        Self { entry: Arc::clone(entry), options }
    }
}

impl TryAcquire {
    pub(crate) fn new(entry: &Arc<Entry>, share: Share) -> Self {
        let options = Options::new(entry, share, Some(Duration::ZERO));
        Self { entry: Arc::clone(entry), options }
    }
}

macro_rules! options {
    ($builder:ident) => {
        impl $builder {
            /// How long to wait; `None`: for ever; zero: one attempt that never queues (rule W2).
            /// Default: the manager's (60 s) for an acquisition that waits, zero for one that tries.
            pub fn timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
                self.options.timeout = timeout.into();
                self
            }

            /// How long the grant lives unless extended, counted from the grant; `None`: until it
            /// is released, destroyed, or its client is proven dead. 1 ms ..= 2^31−1 ms. Such a
            /// lease is not renewed unless [`renew`](Self::renew) says so. Default: the manager's
            /// (60 s), renewed.
            pub fn ttl(mut self, ttl: impl Into<Option<Duration>>) -> Self {
                self.options.set_ttl(ttl.into());
                self
            }

            /// Renews the lease every third of its TTL while it is held.
            pub fn renew(mut self) -> Self {
                self.options.renew = true;
                self
            }

            /// Ends the renewal this long after the grant, so that work which never ends does not
            /// keep the lock for ever: the lease then runs out with its TTL.
            pub fn max_hold(mut self, limit: Duration) -> Self {
                self.options.rare().max_hold = Some(limit);
                self
            }

            /// Gives up when `cancelled` is ready; its output becomes the reason. One that is ready
            /// already counts as cancelled, even when the lock is free; after the grant it has no
            /// effect (rule W4). The future is kept until then, so it borrows nothing:
            /// `cancel_on(token.clone().cancelled_owned())` for a `CancellationToken`,
            /// `cancel_on(tokio::signal::ctrl_c())` for Ctrl-C, and for any other
            /// `cancel_on(async { other.await; "the reason" })`.
            pub fn cancel_on<F>(mut self, cancelled: F) -> Self
            where
                F: Future + Send + 'static,
                F::Output: CancelReason,
            {
                self.options.rare().cancel =
                    Some(Box::pin(async move { cancelled.await.into_reason() }));
                self
            }

            /// How many permits to take. Default: 1.
            pub fn weight(mut self, permits: u32) -> Self {
                self.options.set_weight(&self.entry, permits);
                self
            }

            /// The token of the grant, instead of a random one. One that is held or queued is
            /// refused with `TokenInUse` (rule T5).
            pub fn token(mut self, token: Token) -> Self {
                self.options.rare().token = Some(token);
                self
            }

            /// Says what the work is, for others to read: 1 to 256 bytes without control
            /// characters.
            pub fn label(mut self, label: &str) -> Self {
                self.options.set_label(&self.entry, label);
                self
            }

            /// Calls `hook` once if the request is queued, with what stands in its way.
            pub fn on_queued(mut self, hook: impl FnOnce(&Obstacle) + Send + 'static) -> Self {
                self.options.rare().on_queued = Some(Box::new(hook));
                self
            }
        }

        impl fmt::Debug for $builder {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($builder))
                    .field("lock", &self.entry.id)
                    .field("share", &self.options.share)
                    .field("timeout", &self.options.timeout)
                    .field("ttl", &self.options.ttl)
                    .finish_non_exhaustive()
            }
        }
    };
}

options!(Acquire);
options!(TryAcquire);

impl Acquire {
    /// The same for a thread: blocks until granted.
    ///
    /// # Errors
    /// As the acquisition itself.
    pub fn blocking(self) -> Result<Lease> {
        pollster::block_on(self.into_future())
    }

    /// Acquires, runs `work` and releases, also when `work` panics.
    ///
    /// # Fairness
    /// First come, first served, as the acquisition itself.
    ///
    /// # Cancel safety
    /// Dropping the future takes the request back, or drops the work first and then the grant (rule
    /// W7).
    ///
    /// # Errors
    /// [`RunError::Acquire`] when the lock was not granted, with `Reentrant` when an enclosing
    /// frame holds it (rule R2b); [`RunError::Lost`], with what the work gave, when the lease was
    /// lost while it ran.
    #[track_caller]
    pub fn run<T>(
        self,
        work: impl AsyncFnOnce(&Lease) -> T,
    ) -> impl Future<Output = Result<T, RunError<T>>> {
        let ask = run::ask(&self.entry, self.options.share, Location::caller());
        async move {
            let Self { entry, mut options } = self;
            options.check(&entry)?;
            match run::nested(&entry, ask.as_ref())? {
                Some(nested) => nested.run(work).await,
                None => run::under(ask, Acquiring::new(entry, options).await?, work).await,
            }
        }
    }
}

impl Acquire {
    /// Acquires for whoever has the ticket: the grant is bound to its token and ends only by its
    /// TTL, by a release with the ticket, or with the lock. It is not renewed (rule T8).
    ///
    /// # Errors
    /// Those of the acquisition, and `InvalidArgument` without a TTL.
    ///
    /// # Examples
    /// ```
    /// # pollster::block_on(async {
    /// # use std::time::Duration;
    /// # let locks = leasehold::LockManager::in_memory();
    /// let slot = locks.semaphore("exports", 3)?.acquire().ttl(Duration::from_secs(600));
    /// let ticket = slot.detached().await?.into_ticket().to_string();
    /// // … in another process:
    /// let Some(lease) = locks.restore(&ticket)?.adopt().renew().await? else { return Ok(()) };
    /// lease.release().await?;
    /// # Ok::<(), leasehold::Error>(()) }).unwrap();
    /// ```
    pub fn detached(self) -> Detaching {
        Detaching::new(self.entry, self.options)
    }
}

impl TryAcquire {
    /// The same for a thread: blocks for as long as `timeout` allows.
    ///
    /// # Errors
    /// As the acquisition itself.
    pub fn blocking(self) -> Result<Option<Lease>> {
        pollster::block_on(self.into_future())
    }

    /// As [`Acquire::run`], with `None` for busy.
    ///
    /// # Fairness
    /// It never goes before who waits.
    ///
    /// # Cancel safety
    /// As [`Acquire::run`].
    ///
    /// # Errors
    /// As [`Acquire::run`].
    #[track_caller]
    pub fn run<T>(
        self,
        work: impl AsyncFnOnce(&Lease) -> T,
    ) -> impl Future<Output = Result<Option<T>, RunError<T>>> {
        let ask = run::ask(&self.entry, self.options.share, Location::caller());
        async move {
            let Self { entry, mut options } = self;
            options.check(&entry)?;
            if let Some(nested) = run::nested(&entry, ask.as_ref())? {
                return nested.run(work).await.map(Some);
            }
            match TryAcquiring::new(entry, options).await? {
                Some(lease) => run::under(ask, lease, work).await.map(Some),
                None => Ok(None),
            }
        }
    }
}

impl IntoFuture for Acquire {
    type Output = Result<Lease>;
    type IntoFuture = Acquiring;

    fn into_future(self) -> Acquiring {
        Acquiring::new(self.entry, self.options)
    }
}

impl IntoFuture for TryAcquire {
    type Output = Result<Option<Lease>>;
    type IntoFuture = TryAcquiring;

    fn into_future(self) -> TryAcquiring {
        TryAcquiring::new(self.entry, self.options)
    }
}
