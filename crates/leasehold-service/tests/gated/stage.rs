//! A deterministic executor: tasks are polled when they were woken, and only then.

use std::{
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use leasehold_service::{
    Diagnostic, EntryConfig, LockService, ManualClock, ServiceConfig, adapter::BoxFuture,
};

use super::adapter::Gated;

#[derive(Default)]
pub(crate) struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// A future on the stage, and its output once it is there.
pub(crate) struct Task<T> {
    future: Option<BoxFuture<'static, T>>,
    woken: Arc<Woken>,
    output: Option<T>,
}

impl<T> Task<T> {
    pub(crate) fn new(future: impl Future<Output = T> + Send + 'static) -> Self {
        let woken = Arc::new(Woken(AtomicBool::new(true)));
        Self { future: Some(Box::pin(future)), woken, output: None }
    }

    /// Polls it if it was woken, and says whether it was.
    pub(crate) fn step(&mut self) -> bool {
        let Some(future) = &mut self.future else { return false };
        if !self.woken.0.swap(false, Ordering::SeqCst) {
            return false;
        }
        let waker = Waker::from(Arc::clone(&self.woken));
        if let Poll::Ready(output) = Pin::new(future).poll(&mut Context::from_waker(&waker)) {
            (self.output, self.future) = (Some(output), None);
        }
        true
    }

    pub(crate) fn drop_it(&mut self) {
        self.future = None;
    }

    pub(crate) fn output(&self) -> Option<&T> {
        self.output.as_ref()
    }

    pub(crate) fn is_done(&self) -> bool {
        self.future.is_none()
    }
}

/// A service with the gated adapter in its entry `jobs`, and what it has left behind.
pub(crate) struct Stage {
    pub(crate) gated: Gated,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) service: LockService,
    spawned: Arc<Mutex<Vec<BoxFuture<'static, ()>>>>,
    left: Vec<Task<()>>,
    told: Arc<Mutex<Vec<Diagnostic>>>,
}

impl Stage {
    /// Booted, not started. The default entry is the built-in one.
    pub(crate) fn new() -> Self {
        Self::with(|config| config)
    }

    pub(crate) fn with(change: impl FnOnce(ServiceConfig) -> ServiceConfig) -> Self {
        let gated = Gated::default();
        let clock = Arc::new(ManualClock::new());
        let spawned = Arc::<Mutex<Vec<_>>>::default();
        let told = Arc::<Mutex<Vec<_>>>::default();
        let config = ServiceConfig::new().entry("jobs", EntryConfig::new("gated"));
        let (spawn, tell) = (Arc::clone(&spawned), Arc::clone(&told));
        let service = LockService::builder("shop")
            .config(change(config))
            .adapter(gated.clone())
            .clock(Arc::clone(&clock) as _)
            .spawn_with(move |future| spawn.lock().unwrap().push(future))
            .diagnostics(move |diagnostic| tell.lock().unwrap().push(diagnostic.clone()))
            .boot()
            .unwrap();
        Self { gated, clock, service, spawned, left: Vec::new(), told }
    }

    /// The same with the default entry started.
    pub(crate) fn started() -> Self {
        let mut stage = Self::new();
        let service = stage.service.clone();
        let mut start = Task::new(async move { service.start().await.map(drop) });
        stage.settle(&mut [&mut start]);
        assert_eq!(start.output(), Some(&Ok(())));
        stage
    }

    /// Polls all that was woken until nothing is.
    pub(crate) fn settle(&mut self, tasks: &mut [&mut dyn Step]) {
        for _ in 0..1_000 {
            let spawned: Vec<_> = self.spawned.lock().unwrap().drain(..).collect();
            self.left.extend(spawned.into_iter().map(Task::new));
            let mut moved = false;
            for task in tasks.iter_mut() {
                moved |= task.step();
            }
            for task in &mut self.left {
                moved |= task.step();
            }
            self.left.retain(|task| !task.is_done());
            if !moved && self.spawned.lock().unwrap().is_empty() {
                return;
            }
        }
        panic!("the tasks wake one another for ever");
    }

    /// What was left behind and is not over.
    pub(crate) fn left(&self) -> usize {
        self.left.len()
    }

    pub(crate) fn told(&self) -> Vec<Diagnostic> {
        self.told.lock().unwrap().clone()
    }

    /// Runs one future to its end.
    pub(crate) fn run<T: Send + 'static>(
        &mut self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> T {
        let mut task = Task::new(future);
        self.settle(&mut [&mut task]);
        task.output.expect("it ends without help")
    }
}

/// A task whatever its output.
pub(crate) trait Step {
    fn step(&mut self) -> bool;
}

impl<T> Step for Task<T> {
    fn step(&mut self) -> bool {
        Self::step(self)
    }
}
