//! What registries share with their service: the clock, who drives what is left behind, and to whom
//! failures are told.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context as Task, Poll, Waker},
    time::Duration,
};

use futures_util::future::{Either, select};
use leasehold::{Clock, Sleep, SystemClock};

use crate::{adapter::BoxFuture, diagnostics::Diagnostic};

/// Runs a future to its end, without its caller.
pub type Spawn = Arc<dyn Fn(BoxFuture<'static, ()>) + Send + Sync>;

type Sink = Arc<dyn Fn(&Diagnostic) + Send + Sync>;

/// What the registries of a service share. The default: the machine's clock, the Tokio runtime it is
/// made on (else a thread for each future that is left behind), 5 s of patience, no sink.
#[derive(Clone)]
pub struct Context {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) spawn: Spawn,
    pub(crate) patience: Duration,
    pub(crate) sink: Option<Sink>,
}

/// How long a shutdown waits for what does not settle by itself.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

impl Context {
    /// The default.
    #[must_use]
    pub fn new() -> Self {
        Self {
            clock: Arc::new(SystemClock::new()),
            spawn: spawner_here(),
            patience: PATIENCE,
            sink: None,
        }
    }

    /// Times waits and lifetimes by this clock.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Drives what is left behind with `spawn`.
    #[must_use]
    pub fn spawn(mut self, spawn: impl Fn(BoxFuture<'static, ()>) + Send + Sync + 'static) -> Self {
        self.spawn = Arc::new(spawn);
        self
    }

    /// Waits this long at shutdown for requests, releases and the close, each.
    #[must_use]
    pub const fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Tells failures that no caller is told.
    #[must_use]
    pub fn diagnostics(mut self, sink: impl Fn(&Diagnostic) + Send + Sync + 'static) -> Self {
        self.sink = Some(Arc::new(sink));
        self
    }

    pub(crate) fn report(&self, diagnostic: Diagnostic) {
        diagnostic.observe();
        if let Some(sink) = &self.sink {
            sink(&diagnostic);
        }
    }
}

impl Default for Context {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("patience", &self.patience).finish_non_exhaustive()
    }
}

/// The Tokio runtime of the caller, or threads.
pub(crate) fn spawner_here() -> Spawn {
    #[cfg(feature = "tokio")]
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        return Arc::new(move |future| drop(runtime.spawn(future)));
    }
    Arc::new(|future| {
        let thread = std::thread::Builder::new().name("leasehold-settle".into());
        // Without a thread to spare it is driven here: late, but not lost.
        let task = Arc::new(std::sync::Mutex::new(Some(future)));
        let take = |task: &std::sync::Mutex<Option<BoxFuture<'static, ()>>>| {
            task.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take()
        };
        let there = Arc::clone(&task);
        let spawned = thread.spawn(move || take(&there).map(pollster::block_on));
        if spawned.is_err()
            && let Some(future) = take(&task)
        {
            pollster::block_on(future);
        }
    })
}

/// Drives a future that nobody waits for: here as far as it goes at once, then by `spawn`.
pub(crate) fn drive<F>(context: &Context, mut future: F)
where
    F: Future + Unpin + Send + 'static,
{
    // While a panic unwinds, another one would abort; whoever is spawned may have it.
    let is_done = !std::thread::panicking()
        && Pin::new(&mut future).poll(&mut Task::from_waker(Waker::noop())).is_ready();
    if !is_done {
        (context.spawn)(Box::pin(async move {
            future.await;
        }));
    }
}

/// The future's output, unless it takes longer than the service's patience.
pub(crate) async fn within<F: Future>(context: &Context, future: F) -> Option<F::Output> {
    let mut future = std::pin::pin!(future);
    // Most of it is there at once, and then no timer is set.
    let now = std::future::poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await;
    if let Poll::Ready(output) = now {
        return Some(output);
    }
    let end = context.clock.now().after(context.patience);
    match select(future, Sleep::until(Arc::clone(&context.clock), end)).await {
        Either::Left((output, _)) => Some(output),
        Either::Right(_) => None,
    }
}
