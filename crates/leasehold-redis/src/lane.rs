//! The way to the server from one runtime: a connection that is there when it is needed, and made
//! anew when it was lost.

use std::{
    fmt, mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use leasehold_core::{Fault, FaultKind, LocalTime};
use tokio::{
    runtime::{Handle, Id},
    sync::oneshot,
};

use crate::{
    dial::{Dial, Pushes},
    link::Link,
    site::Site,
    time::{BackOff, until},
};

/// How long a lane pauses after a connection that could not be had.
const PAUSE_MIN: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// How many runtimes of a process have a connection of their own; the others use the thread's.
const LANES_MAX: usize = 8;

/// The connection of one runtime.
pub(crate) struct Lane {
    home: Handle,
    dial: Arc<Dial>,
    site: Arc<Site>,
    pushes: Option<Pushes>,
    /// How much longer than others its connections may be silent.
    patience: Duration,
    state: Mutex<State>,
}

struct State {
    link: Option<Arc<Link>>,
    /// Since when it connects, if it does.
    connects: Option<LocalTime>,
    waiting: Vec<oneshot::Sender<Answer>>,
    back_off: BackOff,
    not_before: LocalTime,
    /// The runtime has ended, or cannot do it.
    gone: bool,
    /// Requests over connections that are over.
    requests: u64,
}

type Answer = Result<Arc<Link>, Fault>;

/// Why a lane has no connection.
#[derive(Debug)]
pub(crate) enum NoLink {
    /// Its runtime is of no use: take another lane.
    Gone,
    /// The server.
    Fault(Fault),
}

impl Lane {
    pub(crate) fn new(
        home: Handle,
        dial: Arc<Dial>,
        site: Arc<Site>,
        pushes: Option<Pushes>,
    ) -> Self {
        let state = State {
            link: None,
            connects: None,
            waiting: Vec::new(),
            back_off: BackOff::new(PAUSE_MIN, PAUSE_MAX),
            not_before: LocalTime(0),
            gone: false,
            requests: 0,
        };
        Self { home, dial, site, pushes, patience: Duration::ZERO, state: Mutex::new(state) }
    }

    /// A way for requests that wait for replicas: what is behind them waits, too.
    pub(crate) fn patient(self) -> Self {
        let patience = self.dial.config.wait_replicas_timeout;
        Self { patience, ..self }
    }

    /// A connection, made if there is none. Failed tries keep a distance, whoever asks.
    pub(crate) async fn link(self: &Arc<Self>) -> Result<Arc<Link>, NoLink> {
        let (wait, begins) = {
            let mut state = self.state();
            if let Some(link) = &state.link {
                if !link.is_over() {
                    return Ok(Arc::clone(link));
                }
                state.requests += link.requests();
                state.link = None;
            }
            if state.gone {
                return Err(NoLink::Gone);
            }
            let (send, wait) = oneshot::channel();
            // Those that have given up meanwhile shall not pile up.
            state.waiting.retain(|waiting| !waiting.is_closed());
            state.waiting.push(send);
            let begins = state.connects.is_none();
            state.connects.get_or_insert_with(|| self.dial.clock.now());
            (wait, begins)
        };
        if begins {
            let attempt = Attempt { lane: Arc::clone(self), done: false };
            self.home.spawn(attempt.run());
        }
        match wait.await {
            Ok(Ok(link)) => Ok(link),
            Ok(Err(fault)) => Err(NoLink::Fault(fault)),
            Err(_) => Err(NoLink::Gone),
        }
    }

    async fn open(&self) -> Answer {
        self.dial.open(&self.site, self.pushes.as_ref(), self.patience).await
    }

    /// The connection, if there is one.
    pub(crate) fn open_link(&self) -> Option<Arc<Link>> {
        self.state().link.clone().filter(|link| !link.is_over())
    }

    /// Since when it tries to connect, and has not come to an end.
    pub(crate) fn connects_since(&self) -> Option<LocalTime> {
        self.state().connects
    }

    /// Whether nothing is lost with it: its runtime has ended, or would have to connect anew.
    fn is_idle(&self) -> bool {
        let state = self.state();
        state.gone || state.link.as_ref().is_some_and(|link| link.is_over())
    }

    /// How many requests went out here.
    pub(crate) fn requests(&self) -> u64 {
        let state = self.state();
        state.requests + state.link.as_ref().map_or(0, |link| link.requests())
    }

    pub(crate) fn site(&self) -> &Arc<Site> {
        &self.site
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lane").field("link", &self.state().link).finish_non_exhaustive()
    }
}

/// One try to connect, in the lane's runtime. When it is dropped before its end, the runtime has
/// ended, or has no network.
struct Attempt {
    lane: Arc<Lane>,
    done: bool,
}

impl Attempt {
    async fn run(mut self) {
        let not_before = self.lane.state().not_before;
        until(&self.lane.dial.clock, not_before).await;
        let opened = self.lane.open().await;
        self.done = true;
        let waiting = {
            let mut state = self.lane.state();
            state.connects = None;
            match &opened {
                Ok(link) => {
                    state.link = Some(Arc::clone(link));
                    state.back_off = BackOff::new(PAUSE_MIN, PAUSE_MAX);
                    state.not_before = LocalTime(0);
                }
                Err(_) => {
                    let pause = state.back_off.pause();
                    state.not_before = self.lane.dial.clock.now().after(pause);
                }
            }
            mem::take(&mut state.waiting)
        };
        for waiting in waiting {
            // Who has given up needs no answer.
            let _ = waiting.send(opened.clone());
        }
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if !self.done {
            let waiting = {
                let mut state = self.lane.state();
                state.gone = true;
                state.connects = None;
                mem::take(&mut state.waiting)
            };
            drop(waiting);
        }
    }
}

/// The lanes of a client to one server: one for its own thread, and one for each runtime that calls.
#[derive(Debug)]
pub(crate) struct Lanes {
    dial: Arc<Dial>,
    site: Arc<Site>,
    own: Arc<Lane>,
    callers: Mutex<Callers>,
}

#[derive(Debug, Default)]
struct Callers {
    lanes: Vec<(Id, Arc<Lane>)>,
    /// Requests over lanes that are gone.
    requests: u64,
}

impl Lanes {
    pub(crate) fn new(own: Arc<Lane>) -> Self {
        let (dial, site) = (Arc::clone(&own.dial), Arc::clone(&own.site));
        Self { dial, site, own, callers: Mutex::default() }
    }

    /// The lane of the client's own thread.
    pub(crate) const fn own(&self) -> &Arc<Lane> {
        &self.own
    }

    /// The lane of the runtime that this is called in; in none, that of the client's thread.
    pub(crate) fn here(&self) -> Arc<Lane> {
        let Ok(home) = Handle::try_current() else { return Arc::clone(&self.own) };
        let id = home.id();
        let mut callers = self.callers();
        if let Some((_, lane)) = callers.lanes.iter().find(|(known, _)| *known == id) {
            return Arc::clone(lane);
        }
        if callers.lanes.len() >= LANES_MAX {
            let idle: Vec<_> = callers.lanes.extract_if(.., |(_, lane)| lane.is_idle()).collect();
            callers.requests += idle.iter().map(|(_, lane)| lane.requests()).sum::<u64>();
            if idle.is_empty() {
                return Arc::clone(&self.own);
            }
        }
        let (dial, site) = (Arc::clone(&self.dial), Arc::clone(&self.site));
        let lane = Lane { patience: self.own.patience, ..Lane::new(home, dial, site, None) };
        let lane = Arc::new(lane);
        callers.lanes.push((id, Arc::clone(&lane)));
        lane
    }

    /// Requests that went out for callers in a runtime, and over the thread's connection.
    pub(crate) fn requests(&self) -> (u64, u64) {
        let callers = self.callers();
        let lanes = callers.lanes.iter().map(|(_, lane)| lane.requests()).sum::<u64>();
        (callers.requests + lanes, self.own.requests())
    }

    fn callers(&self) -> MutexGuard<'_, Callers> {
        self.callers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a client without a thread answers.
pub(crate) fn ended() -> Fault {
    Fault::new(FaultKind::Closed, "the client was closed")
}
