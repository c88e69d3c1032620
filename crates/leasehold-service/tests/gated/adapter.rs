//! A double of an adapter: every await point of it is a gate, and what it was asked is written down.
//! What is real is its exclusion: it grants a resource to one at a time and says so if it is asked
//! for something that a sound adapter never is.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
    task::{Poll, Waker},
    time::Duration,
};

use leasehold::{Error, Fault, FaultKind, InvalidArgument, Operation, Result};
use leasehold_service::{
    Settings,
    adapter::{Adapter, BoxFuture, Grant, Instance, Request, Setup, Wait},
};

/// The await points of an adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    Start,
    Request,
    Release,
    Close,
}

pub(crate) const STEPS: [Step; 4] = [Step::Start, Step::Request, Step::Release, Step::Close];

/// What a call of a step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Ok,
    Error,
    /// Not before the step is opened; then as `Ok`. It does not look at interrupts.
    Slow,
    Never,
    /// The adapter has a bug.
    Panic,
}

/// Those that an adapter without a bug may take.
pub(crate) const MODES: [Mode; 4] = [Mode::Ok, Mode::Error, Mode::Slow, Mode::Never];

/// What happened, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Created,
    Begun(Step),
    Ended(Step),
    Failed(Step),
    /// The caller dropped the call.
    Dropped(Step),
}

#[derive(Default)]
struct State {
    modes: BTreeMap<Step, Mode>,
    opened: Vec<Step>,
    events: Vec<Event>,
    /// By resource: the serial number of the grant.
    held: BTreeMap<String, u64>,
    serial: u64,
    last: Option<Request>,
    wakers: Vec<Waker>,
    /// Whether a request looks at its interrupt while the resource is held.
    deaf: bool,
    /// The resource whose releases fail, by key.
    stuck: Option<String>,
    /// Every grant there is was lost.
    lost: bool,
}

/// The double's controls. As an adapter it is called `gated`.
#[derive(Clone, Default)]
pub(crate) struct Gated(Arc<Mutex<State>>);

impl Gated {
    pub(crate) fn set(&self, step: Step, mode: Mode) {
        self.lock().modes.insert(step, mode);
        self.wake();
    }

    /// Lets all calls of a slow step go on, now and later.
    pub(crate) fn open(&self, step: Step) {
        self.lock().opened.push(step);
        self.wake();
    }

    /// Requests do not look at interrupts while they wait for a resource.
    pub(crate) fn make_deaf(&self) {
        self.lock().deaf = true;
    }

    /// Releases of this resource fail, those of others do not.
    pub(crate) fn fail_release_of(&self, key: &str) {
        self.lock().stuck = Some(key.into());
    }

    /// Takes every grant away.
    pub(crate) fn lose(&self) {
        self.lock().lost = true;
        self.wake();
    }

    pub(crate) fn events(&self) -> Vec<Event> {
        self.lock().events.clone()
    }

    pub(crate) fn count(&self, event: Event) -> usize {
        self.lock().events.iter().filter(|seen| **seen == event).count()
    }

    /// Calls that have neither ended nor failed nor been dropped.
    pub(crate) fn under_way(&self, step: Step) -> usize {
        let over = [Event::Ended(step), Event::Failed(step), Event::Dropped(step)];
        let over: usize = over.into_iter().map(|event| self.count(event)).sum();
        self.count(Event::Begun(step)) - over
    }

    pub(crate) fn held(&self) -> usize {
        self.lock().held.len()
    }

    pub(crate) fn last_request(&self) -> Request {
        self.lock().last.clone().expect("a request was made")
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    fn wake(&self) {
        let wakers = std::mem::take(&mut self.lock().wakers);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Passes the gate of a step.
    async fn pass(&self, step: Step) -> Result<()> {
        self.lock().events.push(Event::Begun(step));
        let mut call = Call { gated: self, step, over: false };
        let passed = std::future::poll_fn(|cx| {
            let mut state = self.lock();
            match state.modes.get(&step).copied().unwrap_or(Mode::Ok) {
                Mode::Ok => Poll::Ready(Ok(())),
                Mode::Error => Poll::Ready(Err(failure())),
                Mode::Slow if state.opened.contains(&step) => Poll::Ready(Ok(())),
                Mode::Panic => {
                    drop(state);
                    panic!("a bug in the gated adapter")
                }
                Mode::Slow | Mode::Never => {
                    state.wakers.push(cx.waker().clone());
                    Poll::Pending
                }
            }
        });
        let passed = passed.await;
        // A request goes on to wait for its resource.
        if step != Step::Request || passed.is_err() {
            call.end(passed.is_ok());
        }
        call.over = true;
        passed
    }

    fn end(&self, event: Event) {
        self.lock().events.push(event);
        self.wake();
    }

    async fn grant(&self, request: Request) -> Result<Option<Box<dyn Grant>>> {
        self.pass(Step::Request).await?;
        let mut call = Call { gated: self, step: Step::Request, over: false };
        let key = request.lock.key().to_owned();
        let mut interrupt = request.interrupt.clone();
        let serial = std::future::poll_fn(|cx| {
            let mut state = self.lock();
            if !state.held.contains_key(&key) {
                state.serial += 1;
                let serial = state.serial;
                state.held.insert(key.clone(), serial);
                return Poll::Ready(Ok(Some(serial)));
            }
            if request.wait == Wait::AtMost(Duration::ZERO) {
                return Poll::Ready(Ok(None));
            }
            if !state.deaf && std::pin::Pin::new(&mut interrupt).poll(cx).is_ready() {
                return Poll::Ready(Err(failure()));
            }
            state.wakers.push(cx.waker().clone());
            Poll::Pending
        });
        let answer = serial.await;
        call.end(answer.is_ok());
        let granted = |serial| Granted { gated: self.clone(), key, serial };
        Ok(answer?.map(|serial| Box::new(granted(serial)) as Box<dyn Grant>))
    }
}

pub(crate) fn failure() -> Error {
    let fault = Fault::new(FaultKind::Unavailable, "the gated store says no");
    Error::from_fault(fault, Operation::Acquire)
}

/// Tells of a call that is dropped before it is over.
struct Call<'a> {
    gated: &'a Gated,
    step: Step,
    over: bool,
}

impl Call<'_> {
    fn end(&mut self, well: bool) {
        self.over = true;
        self.gated.end(if well { Event::Ended(self.step) } else { Event::Failed(self.step) });
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        if !self.over {
            self.gated.end(Event::Dropped(self.step));
        }
    }
}

struct Granted {
    gated: Gated,
    key: String,
    serial: u64,
}

impl Grant for Granted {
    fn release(&self) -> BoxFuture<'_, Result<bool>> {
        Box::pin(async {
            assert_eq!(self.gated.under_way(Step::Close), 0, "a release after the close had begun");
            self.gated.pass(Step::Release).await?;
            if self.gated.lock().stuck.as_ref() == Some(&self.key) {
                return Err(failure());
            }
            let held = {
                let mut state = self.gated.lock();
                let ours = state.held.get(&self.key) == Some(&self.serial);
                if ours {
                    state.held.remove(&self.key);
                }
                ours
            };
            self.gated.wake();
            assert!(held, "released twice");
            Ok(held && !self.gated.lock().lost)
        })
    }

    fn lost(&self) -> BoxFuture<'_, Error> {
        Box::pin(std::future::poll_fn(|cx| {
            let mut state = self.gated.lock();
            if state.lost {
                return Poll::Ready(failure());
            }
            state.wakers.push(cx.waker().clone());
            Poll::Pending
        }))
    }
}

#[derive(Debug)]
struct Gate(Gated);

impl std::fmt::Debug for Gated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Gated {:?}", self.events())
    }
}

impl Instance for Gate {
    fn start(&self) -> BoxFuture<'_, Result<()>> {
        assert_eq!(self.0.count(Event::Begun(Step::Close)), 0, "a start after the close");
        Box::pin(self.0.pass(Step::Start))
    }

    fn request(&self, request: Request) -> BoxFuture<'static, Result<Option<Box<dyn Grant>>>> {
        let gated = self.0.clone();
        Box::pin(async move {
            assert_eq!(gated.count(Event::Begun(Step::Close)), 0, "a request after the close");
            gated.lock().last = Some(request.clone());
            gated.grant(request).await
        })
    }

    fn close(&self) -> BoxFuture<'_, Result<()>> {
        assert_eq!(self.0.count(Event::Ended(Step::Close)), 0, "closed twice");
        Box::pin(self.0.pass(Step::Close))
    }
}

impl Adapter for Gated {
    type Connection = ();

    fn name(&self) -> &str {
        "gated"
    }

    fn connection(&self, settings: &mut Settings<'_>) -> Option<()> {
        settings.text("note");
        Some(())
    }

    fn create(&self, _: Setup<()>) -> std::result::Result<Arc<dyn Instance>, InvalidArgument> {
        self.end(Event::Created);
        Ok(Arc::new(Gate(self.clone())))
    }
}
