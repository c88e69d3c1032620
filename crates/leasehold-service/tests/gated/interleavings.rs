//! Start, first use, acquisition, cancellation, release and shutdown in every order, with every
//! await point of the adapter ok, failing, slow or never done (acceptance N28, N33 to N37).

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use leasehold_service::{Error, ErrorKind, Result};

use super::{
    adapter::{Event, MODES, Mode, STEPS, Step},
    stage::{Stage, Task},
};

/// What the world does, in an order that is explored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    /// A asks for the manager, locks, and holds until it is told to release.
    BeginA,
    /// B asks for the manager and runs work under the same resource.
    BeginB,
    ReleaseA,
    CancelB,
    DropB,
    Shutdown,
    Open(Step),
}

/// What makes one story.
#[derive(Debug)]
struct Plan {
    modes: [Mode; 4],
    acts: Vec<Act>,
    deaf: bool,
}

#[test]
fn n28_n33_n35_n36_every_interleaving_ends_with_nothing_held() {
    play_all(false);
}

#[test]
fn n28_n33_n36_every_interleaving_with_requests_that_cannot_be_interrupted() {
    play_all(true);
}

fn play_all(deaf: bool) {
    let mut stories = 0_u32;
    for modes in all_modes().filter(is_reached) {
        for acts in orders(&modes) {
            let plan = Plan { modes, acts, deaf };
            let told = std::panic::catch_unwind(|| play(&plan));
            assert!(told.is_ok(), "in {plan:?}");
            stories += 1;
        }
    }
    assert!(stories > 5_000, "only {stories} stories");
}

/// Where a step is never passed, what would come after it makes no difference.
fn is_reached([start, request, release, _]: &[Mode; 4]) -> bool {
    let passes = |mode: &Mode| matches!(mode, Mode::Ok | Mode::Slow);
    let asked = passes(start) || *request == Mode::Ok;
    let granted = (passes(start) && passes(request)) || *release == Mode::Ok;
    asked && granted
}

fn all_modes() -> impl Iterator<Item = [Mode; 4]> {
    let of = |number: usize| MODES[number % 4];
    (0..256).map(move |number| [of(number), of(number / 4), of(number / 16), of(number / 64)])
}

/// A's story with the end, B's leaving and the opening of each slow gate put in everywhere.
fn orders(modes: &[Mode; 4]) -> Vec<Vec<Act>> {
    let mut orders = Vec::new();
    for leave in [Act::CancelB, Act::DropB] {
        for begin in [[Act::BeginA, Act::BeginB], [Act::BeginB, Act::BeginA]] {
            let base = vec![begin[0], begin[1], leave, Act::ReleaseA];
            orders.extend((0..=base.len()).map(|at| with(&base, at, Act::Shutdown)));
        }
    }
    for (step, mode) in STEPS.into_iter().zip(modes) {
        if *mode == Mode::Slow {
            let before = std::mem::take(&mut orders);
            for order in before {
                // Where nobody can tell the difference, one place stands for all.
                let middle = (step == Step::Request).then_some(order.len() / 2 + 1);
                let places = [1, order.len()].into_iter().chain(middle);
                orders.extend(places.map(|at| with(&order, at, Act::Open(step))));
            }
        }
    }
    orders
}

fn with(acts: &[Act], at: usize, act: Act) -> Vec<Act> {
    let mut acts = acts.to_vec();
    acts.insert(at, act);
    acts
}

struct World {
    stage: Stage,
    a: Option<Task<Result<()>>>,
    b: Option<Task<Result<u32>>>,
    shutdown: Option<Task<Result<()>>>,
    release: Option<futures_channel::oneshot::Sender<()>>,
    cancel: Option<futures_channel::oneshot::Sender<()>>,
    worked: Arc<AtomicBool>,
    cancelled_before_work: bool,
    b_dropped: bool,
}

fn play(plan: &Plan) {
    let mut world = World::new(plan);
    for act in &plan.acts {
        world.act(*act);
        world.settle();
        world.check_always();
    }
    world.end(plan);
}

impl World {
    fn new(plan: &Plan) -> Self {
        let stage = Stage::started();
        for (step, mode) in STEPS.into_iter().zip(plan.modes) {
            stage.gated.set(step, mode);
        }
        if plan.deaf {
            stage.gated.make_deaf();
        }
        Self {
            stage,
            a: None,
            b: None,
            shutdown: None,
            release: None,
            cancel: None,
            worked: Arc::default(),
            cancelled_before_work: false,
            b_dropped: false,
        }
    }

    fn act(&mut self, act: Act) {
        let service = self.stage.service.clone();
        match act {
            Act::BeginA => {
                let (release, released) = futures_channel::oneshot::channel();
                self.release = Some(release);
                self.a = Some(Task::new(async move {
                    let lock = service.manager("jobs").await?.lock("orders")?;
                    let lease = lock.lock().await?;
                    let _ = released.await;
                    lease.release().await.map(drop)
                }));
            }
            Act::BeginB => {
                let (cancel, cancelled) = futures_channel::oneshot::channel::<()>();
                self.cancel = Some(cancel);
                let worked = Arc::clone(&self.worked);
                self.b = Some(Task::new(async move {
                    let executor = service.manager("jobs").await?.executor("orders")?;
                    let work = async move {
                        worked.store(true, Ordering::SeqCst);
                        42
                    };
                    let run = executor.run(work);
                    run.cancel_on(async move { cancelled.await.map_or("gone", |()| "cancelled") })
                        .await
                }));
            }
            Act::ReleaseA => drop(self.release.take()),
            Act::CancelB => {
                self.cancelled_before_work = !self.worked.load(Ordering::SeqCst);
                if let Some(cancel) = self.cancel.take() {
                    let _ = cancel.send(());
                }
            }
            Act::DropB => {
                self.cancelled_before_work = !self.worked.load(Ordering::SeqCst);
                self.b_dropped = true;
                self.b.as_mut().expect("B has begun").drop_it();
            }
            Act::Shutdown => {
                self.shutdown = Some(Task::new(async move { service.shutdown().await }));
            }
            Act::Open(step) => self.stage.gated.open(step),
        }
    }

    fn settle(&mut self) {
        let mut tasks: Vec<&mut dyn super::stage::Step> = Vec::new();
        tasks.extend(self.a.as_mut().map(|task| task as _));
        tasks.extend(self.b.as_mut().map(|task| task as _));
        tasks.extend(self.shutdown.as_mut().map(|task| task as _));
        self.stage.settle(&mut tasks);
    }

    fn check_always(&self) {
        let gated = &self.stage.gated;
        assert!(gated.held() <= 1, "two holders");
        assert!(gated.under_way(Step::Start) <= 1, "two starts at once");
        if gated.count(Event::Begun(Step::Close)) > 0 {
            assert_eq!(gated.under_way(Step::Start), 0, "closed over a start");
        }
        if self.cancelled_before_work {
            assert!(!self.worked.load(Ordering::SeqCst), "the work ran after its caller had left");
        }
    }

    /// Every caller gets an answer, the shutdown too, and nothing is left.
    fn end(&mut self, plan: &Plan) {
        let [start, request, release, close] = plan.modes;
        // Patience for requests, releases and the close, one after the other.
        for _ in 0..5 {
            // A deaf request may wait for a lease that is given back after it was waited for.
            let takes_patience = [request, release, close].contains(&Mode::Never) || plan.deaf;
            if !takes_patience {
                let shutdown = self.shutdown.as_ref().expect("it was begun");
                assert!(shutdown.is_done(), "nothing is left that could hold up the shutdown");
            }
            self.stage.clock.advance(Duration::from_secs(5));
            self.settle();
        }
        self.check_always();
        let gated = &self.stage.gated;
        let started = gated.count(Event::Begun(Step::Start)) > 0;
        let closes = gated.count(Event::Begun(Step::Close));
        assert_eq!(closes, usize::from(started), "closed once if and only if it was touched");
        let fails = started && matches!(close, Mode::Error | Mode::Never);
        let shutdown = self.shutdown.as_ref().and_then(Task::output).expect("the shutdown ended");
        assert_eq!(shutdown.is_err(), fails, "{shutdown:?}");
        let releases_work = matches!(release, Mode::Ok | Mode::Slow);
        // A deaf request waits for ever for a lease that cannot be given back.
        if request != Mode::Never && (releases_work || !plan.deaf) {
            assert_eq!(gated.under_way(Step::Request), 0, "a request was left");
        }
        if releases_work && request != Mode::Never {
            assert_eq!(gated.held(), 0, "a grant was left");
            assert_eq!(self.stage.left(), 0, "something goes on");
        }
        self.check_callers(start, release);
        if fails {
            // N34: after a failed close an explicit retry works, and closes alone.
            let requests = gated.count(Event::Begun(Step::Request));
            let releases = gated.count(Event::Begun(Step::Release));
            gated.set(Step::Close, Mode::Ok);
            let service = self.stage.service.clone();
            self.stage.run(async move { service.shutdown().await }).unwrap();
            let gated = &self.stage.gated;
            assert_eq!(gated.count(Event::Begun(Step::Request)), requests);
            assert_eq!(gated.count(Event::Begun(Step::Release)), releases, "N29: no retry");
        }
    }

    fn check_callers(&self, start: Mode, release: Mode) {
        let worked = self.worked.load(Ordering::SeqCst);
        if let Some(b) = &self.b
            && !self.b_dropped
        {
            match b.output() {
                Some(Ok(42)) => assert!(worked),
                Some(Ok(other)) => panic!("work never gave {other}"),
                Some(Err(error)) => {
                    assert!(!worked, "N30: what ended the lease replaced the work's value");
                    self.check_error(error, start);
                }
                // Its release never comes back: the executor waits for it, in good faith.
                None => assert!(worked && release == Mode::Never, "B got no answer"),
            }
        }
        if let Some(a) = &self.a {
            match a.output() {
                Some(Ok(())) => {}
                Some(Err(error)) => self.check_error(error, start),
                None => assert!(release == Mode::Never, "A got no answer"),
            }
        }
    }

    fn check_error(&self, error: &Error, start: Mode) {
        match error.kind() {
            ErrorKind::ShutDown | ErrorKind::Cancelled { .. } | ErrorKind::Backend => {}
            kind => panic!("{kind:?} with start {start:?}"),
        }
    }
}
