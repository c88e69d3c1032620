//! What a case works with.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, Waker},
    time::Duration,
};

use leasehold::{Clock, Sleep, SystemClock};

use crate::{
    Diagnostic, EntryConfig, LockService, ServiceBuilder, ServiceConfig, ServiceManager,
    adapter::Reach,
};

/// The adapter that is put to the proof.
pub trait Subject: Send + Sync {
    /// An entry on the store of this name: one name is one store, another name is another one, and
    /// a name that was not used before is an empty one.
    fn entry(&self, store: &str) -> EntryConfig;

    /// Adds the adapter. Default: it is built in.
    fn install(&self, builder: ServiceBuilder) -> ServiceBuilder {
        builder
    }

    /// Who competes for its locks. Default: all services on one store.
    fn reach(&self) -> Reach {
        Reach::Shared
    }

    /// Whether waiters are granted in the order in which they came. Default: yes.
    fn is_fair(&self) -> bool {
        true
    }
}

/// A fresh store of the subject, and the services that a case boots on it.
#[derive(Clone)]
pub struct Bench {
    subject: &'static dyn Subject,
    store: &'static str,
    told: Arc<Mutex<Vec<Diagnostic>>>,
}

/// The name of the only entry.
pub(super) const ENTRY: &str = "subject";

impl Bench {
    pub(super) fn new(subject: &'static dyn Subject, store: &'static str) -> Self {
        Self { subject, store, told: Arc::default() }
    }

    /// A service on the store, started, with one entry that `change` has changed.
    pub(super) async fn service_with(
        &self,
        change: impl FnOnce(EntryConfig) -> EntryConfig,
    ) -> LockService {
        let entry = change(self.subject.entry(self.store));
        let config = ServiceConfig::new().with_default(ENTRY).entry(ENTRY, entry);
        let told = Arc::clone(&self.told);
        let builder = LockService::builder("suite").config(config).diagnostics(move |diagnostic| {
            told.lock().unwrap_or_else(PoisonError::into_inner).push(diagnostic.clone());
        });
        let service = self.subject.install(builder).boot().expect("a good configuration");
        service.start().await.expect("the adapter starts")
    }

    pub(super) async fn service(&self) -> (LockService, ServiceManager) {
        let service = self.service_with(|entry| entry).await;
        let manager = service.default_manager().expect("started");
        (service, manager)
    }

    pub(super) fn told(&self) -> Vec<Diagnostic> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn is_fair(&self) -> bool {
        self.subject.is_fair()
    }
}

impl std::fmt::Debug for Bench {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bench").field("store", &self.store).finish_non_exhaustive()
    }
}

pub(super) const NOW: Duration = Duration::ZERO;
/// Longer than anything takes that is not to wait.
pub(super) const LONG: Duration = Duration::from_secs(30);

pub(super) const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Polls once, as a sign that something has begun and is not done.
pub(super) fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// Real time passes: TTLs of stores run by it.
pub(super) async fn pass(time: Duration) {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let end = clock.now().after(time);
    Sleep::until(clock, end).await;
}

/// Lets other futures of this task run.
pub(super) async fn breathe() {
    let mut again = true;
    std::future::poll_fn(|cx| {
        if std::mem::take(&mut again) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(())
    })
    .await;
}
