//! `run` and `acquire` until the lock is granted: the request, and what is said meanwhile.

use std::{
    cell::Cell,
    convert::Infallible,
    fmt::{self, Write as _},
    future::pending,
    io::{self, IsTerminal, Write as _},
    time::Duration,
};

use leasehold::{
    Acquire, FencingToken, HolderInfo, LockKind, LockManager, LockName, LockState, NamedMutex,
    NamedRwLock, NamedSemaphore, Obstacle, Token,
};
use rustix::process::Signal;
use tokio::{
    sync::oneshot,
    time::{MissedTickBehavior, interval},
};

use crate::{
    args::{LockArgs, ShareArgs, WaitArgs},
    duration,
    exit::{Exit, Failure},
    report,
    signals::Signals,
};

/// How often a terminal is told how the wait goes.
const REFRESH: Duration = Duration::from_secs(1);

/// The lock that is asked for, as a handle of its kind.
#[derive(Debug)]
pub(crate) enum Wanted {
    Mutex(NamedMutex),
    Semaphore(NamedSemaphore, u32),
    Read(NamedRwLock),
    Write(NamedRwLock),
}

/// How a wait ended, unless it failed.
#[derive(Debug)]
pub(crate) enum Waited<G> {
    Granted(G),
    Signalled(Signal),
}

impl Wanted {
    /// The handle of the kind that the arguments ask for.
    pub(crate) fn open(locks: &LockManager, args: &LockArgs) -> Result<Self, Failure> {
        let name = args.name.clone();
        Ok(match args.share {
            ShareArgs { permits: Some(permits), weight, .. } => {
                let weight = weight.map_or(1, leasehold::Weight::get);
                Self::Semaphore(locks.semaphore(name, permits.get())?, weight)
            }
            ShareArgs { shared: true, .. } => Self::Read(locks.rw_lock(name)?),
            ShareArgs { exclusive: true, .. } => Self::Write(locks.rw_lock(name)?),
            ShareArgs { .. } => Self::Mutex(locks.mutex(name)?),
        })
    }

    fn name(&self) -> &LockName {
        match self {
            Self::Mutex(lock) => lock.name(),
            Self::Semaphore(lock, _) => lock.name(),
            Self::Read(lock) | Self::Write(lock) => lock.name(),
        }
    }

    fn kind(&self) -> LockKind {
        match self {
            Self::Mutex(_) => LockKind::Mutex,
            Self::Semaphore(..) => LockKind::Semaphore,
            Self::Read(_) | Self::Write(_) => LockKind::RwLock,
        }
    }

    fn request(&self) -> Acquire {
        match self {
            Self::Mutex(lock) => lock.lock(),
            Self::Semaphore(lock, weight) => lock.acquire_many(*weight),
            Self::Read(lock) => lock.read(),
            Self::Write(lock) => lock.write(),
        }
    }

    async fn inspect(&self) -> leasehold::Result<Option<LockState>> {
        match self {
            Self::Mutex(lock) => lock.inspect().await,
            Self::Semaphore(lock, _) => lock.inspect().await,
            Self::Read(lock) | Self::Write(lock) => lock.inspect().await,
        }
    }

    /// One name may be in use as several kinds, which do not exclude each other (rule N1): most
    /// likely a mistake.
    pub(crate) async fn warn_of_other_kinds(&self, locks: &LockManager) -> Result<(), Failure> {
        let kind = self.kind();
        let name = || self.name().clone();
        for other in LockKind::ALL.into_iter().filter(|other| *other != kind) {
            let state = match other {
                LockKind::Mutex => locks.mutex(name())?.inspect().await?,
                LockKind::Semaphore => locks.semaphore(name(), 1)?.inspect().await?,
                LockKind::RwLock => locks.rw_lock(name())?.inspect().await?,
            };
            if state.is_some() {
                let name = self.name();
                report::say(format_args!(
                    "warning: \"{name}\" is also in use as a {other}, which does not exclude this {kind}"
                ));
            }
        }
        Ok(())
    }

    /// Waits for the grant, of a request that `finish` completes. A signal that ends takes the
    /// request back (rule Q4).
    pub(crate) async fn wait<G, F>(
        &self,
        args: &WaitArgs,
        signals: &mut Signals,
        verbose: bool,
        finish: impl FnOnce(Acquire) -> F,
    ) -> Result<Waited<G>, Failure>
    where
        F: Future<Output = leasehold::Result<G>>,
    {
        let token = Token::random();
        let progress = Progress::new(self, token.short_id(), verbose);
        let (tell, queued) = oneshot::channel();
        let timeout = if args.no_wait { Some(Duration::ZERO) } else { args.wait };
        let request = self.request().timeout(timeout).token(token).on_queued(move |obstacle| {
            // Nobody listens when the wait has ended.
            let _ = tell.send(obstacle.clone());
        });
        let outcome = tokio::select! {
            biased;
            signal = signals.next_ending() => Ok(Waited::Signalled(signal)),
            outcome = finish(request) => outcome.map(Waited::Granted),
            never = progress.tell(queued) => match never {},
        };
        Ok(outcome?)
    }

    /// Says on stderr that it was granted.
    pub(crate) fn say_granted(&self, fencing: FencingToken) {
        report::say(format_args!("{self}: granted, fencing token {fencing}"));
    }
}

/// Who asks.
pub(crate) fn holder_info(args: &LockArgs) -> Result<HolderInfo, Failure> {
    let info = HolderInfo::here();
    match &args.label {
        None => Ok(info),
        Some(label) => {
            info.labelled(label).map_err(|error| Failure::new(Exit::Usage, error.to_string()))
        }
    }
}

/// What can be refused without the store is refused before the store is touched (rule W6).
pub(crate) fn check(args: &LockArgs) -> Result<(), Failure> {
    match (args.share.permits, args.share.weight) {
        (Some(permits), Some(weight)) if weight.get() > permits.get() => Err(Failure::new(
            Exit::Usage,
            format!(
                "semaphore \"{}\": a weight of {weight} is above the capacity of {permits}",
                args.name
            ),
        )),
        _ => Ok(()),
    }
}

/// Says on stderr how the wait goes: on a terminal in one line that changes, elsewhere once and
/// only when asked (`-v`).
struct Progress<'a> {
    lock: &'a Wanted,
    short_id: String,
    terminal: bool,
    verbose: bool,
    line_shown: Cell<bool>,
}

impl<'a> Progress<'a> {
    fn new(lock: &'a Wanted, short_id: String, verbose: bool) -> Self {
        Self {
            lock,
            short_id,
            terminal: io::stderr().is_terminal(),
            verbose,
            line_shown: Cell::new(false),
        }
    }

    /// Begins once the request is queued.
    async fn tell(&self, queued: oneshot::Receiver<Obstacle>) -> Infallible {
        let Ok(obstacle) = queued.await else { return pending().await };
        let text = self.text(obstacle.ahead, &obstacle);
        if !self.terminal {
            if self.verbose {
                report::say(text);
            }
            return pending().await;
        }
        self.show(&text);
        let mut ticks = interval(REFRESH);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks.tick().await;
        loop {
            ticks.tick().await;
            // A store that does not answer now is the request's affair, not that of this line.
            if let Ok(Some(state)) = self.lock.inspect().await {
                self.show_state(&state);
            }
        }
    }

    fn show_state(&self, state: &LockState) {
        let ahead = state.waiters.iter().position(|waiter| waiter.short_id == self.short_id);
        let holder = state.holders.first().map(|holder| (holder.info.clone(), holder.held_for));
        let ahead = ahead.and_then(|ahead| u64::try_from(ahead).ok());
        self.show(&self.text(ahead, &Obstacle { holder, ahead }));
    }

    fn text(&self, ahead: Option<u64>, obstacle: &Obstacle) -> String {
        let mut text = "waiting".to_owned();
        match ahead {
            Some(0) => text.push_str(", next in line"),
            Some(ahead) => {
                let _ = write!(text, ", {ahead} ahead");
            }
            None => {}
        }
        if let Some((holder, held_for)) = &obstacle.holder {
            let _ = write!(text, "; held by {holder} for {}", duration::format(*held_for));
        }
        format!("{}: {text}", self.lock)
    }

    fn show(&self, text: &str) {
        self.line_shown.set(true);
        let _ = write!(io::stderr().lock(), "\r\x1b[Kleasehold: {text}");
    }
}

impl Drop for Progress<'_> {
    fn drop(&mut self) {
        if self.line_shown.get() {
            let _ = write!(io::stderr().lock(), "\r\x1b[K");
        }
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} \"{}\"", self.kind(), self.name())
    }
}
