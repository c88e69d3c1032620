//! `run` and `acquire` until the lock is granted: the request, and what is said meanwhile.

use std::{
    convert::Infallible,
    env,
    fmt::{self, Write as _},
    future::pending,
    time::Duration,
};

use leasehold::{
    Acquire, HolderInfo, LockId, LockKind, LockManager, LockName, LockState, NamedMutex,
    NamedRwLock, NamedSemaphore, Obstacle, Ticket, Token, Weight,
};
use leasehold_core::Share;
use rustix::process::Signal;
use tokio::{
    sync::mpsc::{UnboundedReceiver, unbounded_channel},
    time::{MissedTickBehavior, interval},
};

use crate::{
    args::{RequestArgs, ShareArgs},
    duration,
    exit::{Exit, Failure},
    settings,
    signals::Signals,
    talk,
};

/// How often a terminal is told how the wait goes.
pub(crate) const REFRESH: Duration = Duration::from_secs(1);

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
    pub(crate) fn open(
        locks: &LockManager,
        name: &LockName,
        share: &ShareArgs,
    ) -> Result<Self, Failure> {
        let name = name.clone();
        Ok(match *share {
            ShareArgs { permits: Some(permits), weight, .. } => {
                let weight = weight.map_or(1, Weight::get);
                Self::Semaphore(locks.semaphore(name, permits.get())?, weight)
            }
            ShareArgs { shared: true, .. } => Self::Read(locks.rw_lock(name)?),
            ShareArgs { exclusive: true, .. } => Self::Write(locks.rw_lock(name)?),
            ShareArgs { .. } => Self::Mutex(locks.mutex(name)?),
        })
    }

    fn id(&self) -> &LockId {
        match self {
            Self::Mutex(lock) => lock.lock_id(),
            Self::Semaphore(lock, _) => lock.lock_id(),
            Self::Read(lock) | Self::Write(lock) => lock.lock_id(),
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
        let kind = self.id().kind();
        let name = || self.id().name().clone();
        for other in LockKind::ALL.into_iter().filter(|other| *other != kind) {
            let state = inspect(locks, other, name(), 1).await?;
            if state.is_some() {
                let name = name();
                talk::warning(format_args!(
                    "\"{name}\" is also in use as a {other}, which does not exclude this {kind}"
                ));
            }
        }
        Ok(())
    }
}

/// Who uses a lock of this kind and name.
pub(crate) async fn inspect(
    locks: &LockManager,
    kind: LockKind,
    name: LockName,
    capacity: u32,
) -> leasehold::Result<Option<LockState>> {
    match kind {
        LockKind::Mutex => locks.mutex(name)?.inspect().await,
        LockKind::Semaphore => locks.semaphore(name, capacity)?.inspect().await,
        LockKind::RwLock => locks.rw_lock(name)?.inspect().await,
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.id().fmt(f)
    }
}

/// Who asks.
pub(crate) fn holder_info(args: &RequestArgs) -> Result<HolderInfo, Failure> {
    let info = HolderInfo::here();
    match &args.label {
        None => Ok(info),
        Some(label) => {
            info.labelled(label).map_err(|error| Failure::new(Exit::Usage, error.to_string()))
        }
    }
}

/// What can be refused without the store is refused before the store is touched (rule W6).
pub(crate) fn check(share: &ShareArgs, name: &LockName) -> Result<(), Failure> {
    match (share.permits, share.weight) {
        (Some(permits), Some(weight)) if weight.get() > permits.get() => Err(Failure::new(
            Exit::Usage,
            format!(
                "semaphore \"{name}\": a weight of {weight} is above the capacity of {permits}"
            ),
        )),
        _ => Ok(()),
    }
}

/// A place in line: says on stderr how the wait goes, on a terminal in one line that changes,
/// elsewhere once and only with `-v`.
pub(crate) struct Line<'a> {
    wanted: &'a [Wanted],
    short_ids: Vec<String>,
    queued: UnboundedReceiver<(usize, Obstacle)>,
    shown: talk::Changing,
}

impl<'a> Line<'a> {
    /// The requests for what is wanted, to be awaited with [`wait`](Self::wait).
    pub(crate) fn of(wanted: &'a [Wanted]) -> (Vec<Acquire>, Self) {
        let (tell, queued) = unbounded_channel();
        let mut short_ids = Vec::new();
        let request = |(place, wanted): (usize, &Wanted)| {
            let (token, tell) = (Token::random(), tell.clone());
            short_ids.push(token.short_id());
            wanted.request().token(token).on_queued(move |obstacle| {
                // Nobody listens when the wait has ended.
                let _ = tell.send((place, obstacle.clone()));
            })
        };
        let requests = wanted.iter().enumerate().map(request).collect();
        (requests, Self { wanted, short_ids, queued, shown: talk::Changing::default() })
    }

    /// Waits for the grant. A signal that ends takes the request back (rule Q4).
    pub(crate) async fn wait<G>(
        mut self,
        grant: impl Future<Output = leasehold::Result<G>>,
        signals: &mut Signals,
    ) -> Result<Waited<G>, Failure> {
        let outcome = tokio::select! {
            biased;
            signal = signals.next_ending() => Ok(Waited::Signalled(signal)),
            outcome = grant => outcome.map(Waited::Granted),
            never = self.tell() => match never {},
        };
        Ok(outcome?)
    }

    /// Begins once a request is queued.
    async fn tell(&mut self) -> Infallible {
        let mut ticks = interval(REFRESH);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut current = None;
        let (draws, mut all_told) = (talk::may_draw(), false);
        loop {
            tokio::select! {
                biased;
                queued = self.queued.recv(), if !all_told => {
                    let Some((place, obstacle)) = queued else {
                        all_told = true;
                        continue;
                    };
                    current = Some(place);
                    self.warn_of_itself(place).await;
                    let text = self.text(place, &obstacle);
                    if draws { self.shown.show(text) } else { talk::detail(text) }
                    ticks.reset();
                }
                _ = ticks.tick(), if draws && current.is_some() => {
                    let place = current.expect("looked at just now");
                    // A store that does not answer now is the request's affair, not that of this
                    // line.
                    if let Ok(Some(state)) = self.wanted[place].inspect().await {
                        self.show_state(place, &state);
                    }
                }
                else => return pending().await,
            }
        }
    }

    /// A `run` inside of another one's command that waits for the same lock waits for itself.
    async fn warn_of_itself(&self, place: usize) {
        let lock = self.wanted[place].id();
        let held = env::var(settings::HELD).or_else(|_| env::var(settings::TICKET));
        let tickets = held.unwrap_or_default();
        let tickets = tickets.split_whitespace().filter_map(|text| text.parse::<Ticket>().ok());
        let own: Vec<_> = tickets
            .filter(|ticket| ticket.lock() == lock)
            .map(|ticket| ticket.token().short_id())
            .collect();
        if own.is_empty() {
            return;
        }
        // The same name on another store is another lock, and only this store can tell.
        let Ok(Some(state)) = self.wanted[place].inspect().await else { return };
        let weight = |share: Share| share.weight(state.capacity);
        let held = state.holders.iter().filter(|holder| own.contains(&holder.short_id));
        let held: u32 = held.map(|holder| weight(holder.share)).sum();
        let is_for_ever = match &self.wanted[place] {
            // Of several permits there may be enough left for both.
            Wanted::Semaphore(_, weight) => held + weight > state.capacity.get(),
            _ => true,
        };
        if held > 0 && is_for_ever {
            talk::warning(format_args!(
                "{lock}: this waits inside of a `leasehold run` that holds the lock itself and ends \
                 only after it"
            ));
        }
    }

    fn show_state(&self, place: usize, state: &LockState) {
        let short_id = &self.short_ids[place];
        let ahead = state.waiters.iter().position(|waiter| waiter.short_id == *short_id);
        let holder = state.holders.first().map(|holder| (holder.info.clone(), holder.held_for));
        let ahead = ahead.and_then(|ahead| u64::try_from(ahead).ok());
        self.shown.show(self.text(place, &Obstacle { holder, ahead }));
    }

    fn text(&self, place: usize, obstacle: &Obstacle) -> String {
        let mut text = "waiting".to_owned();
        match obstacle.ahead {
            Some(0) => text.push_str(", next in line"),
            Some(ahead) => {
                let _ = write!(text, ", {ahead} ahead");
            }
            None => {}
        }
        if let Some((holder, held_for)) = &obstacle.holder {
            let _ = write!(text, "; held by {holder} for {}", duration::format(*held_for));
        }
        format!("{}: {text}", self.wanted[place])
    }
}
