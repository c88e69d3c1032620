//! Keeping an eye on the lease of `run` and `adopt`, and telling early enough that it will be lost.
//!
//! The library renews a lease that has a TTL. As long as the store answers, the lease is certain
//! for a while; when it does not, the command has to be gone *before* that while is over, because
//! the lock passes on then (rule L3). So the loss is told while there is still time for TERM and
//! KILL. The command has a ticket of the grant and may extend it, so the TTL is not taken for what
//! it was, but read off what the renewals brought.

use std::{cell::Cell, future::poll_fn, pin::pin, sync::Arc, task::Poll, time::Duration};

use leasehold::{Clock, Error, ErrorKind, Lease, LeaseState, Remaining, SystemClock};
use leasehold_core::{LocalTime, Sleep, defaults};

use crate::{duration, talk};

/// How often a lease is looked at, or more often where its TTL is short. For one without a TTL the
/// store is asked: nothing else would tell that somebody with the ticket gave it back.
const LOOK: Duration = Duration::from_secs(5);

/// How often in the time that a lease is certain it is looked at: twice per renewal.
const LOOKS: u32 = 2 * defaults::RENEWALS_PER_TTL;

/// Deadlines that are as close as that are one, read twice.
const SAME: Duration = Duration::from_millis(1);

/// A lease that is lost, or will be before long, or has been held for long enough.
#[derive(Debug)]
pub(crate) struct Loss {
    /// What to tell, and of which lock.
    pub(crate) why: String,
    /// How long the command may take between TERM and KILL.
    pub(crate) grace: Duration,
}

/// Keeps an eye on all leases that a command runs under.
#[derive(Debug)]
pub(crate) struct Keepers<'a> {
    keepers: Vec<Keeper<'a>>,
    /// The longest that the command may run.
    max_hold: Option<(LocalTime, Duration)>,
}

impl<'a> Keepers<'a> {
    /// Keeps an eye on leases that were just granted.
    pub(crate) fn new(leases: &'a [Lease], grace: Duration, max_hold: Option<Duration>) -> Self {
        assert!(!leases.is_empty(), "a command runs under a lock");
        let keepers: Vec<_> = leases.iter().map(|lease| Keeper::new(lease, grace)).collect();
        let now = keepers[0].clock.now();
        Self { keepers, max_hold: max_hold.map(|longest| (now.after(longest), longest)) }
    }

    /// Returns when the first of the leases is lost or soon will be, or when the command has run
    /// for as long as it may.
    pub(crate) async fn until_over(self) -> Loss {
        let (clock, grace) = (Arc::clone(&self.keepers[0].clock), self.keepers[0].grace);
        let lock = self.keepers[0].lease.lock().to_string();
        let mut losses: Vec<_> =
            self.keepers.into_iter().map(|keeper| Box::pin(keeper.until_lost())).collect();
        let mut enough = pin!(async {
            match self.max_hold {
                None => std::future::pending().await,
                Some((end, longest)) => {
                    Sleep::until(clock, end).await;
                    longest
                }
            }
        });
        poll_fn(|cx| {
            for loss in &mut losses {
                if let Poll::Ready(loss) = loss.as_mut().poll(cx) {
                    return Poll::Ready(loss);
                }
            }
            enough.as_mut().poll(cx).map(|longest| {
                let longest = duration::format(longest);
                let why = format!("{lock}: held for {longest}, as long as --max-hold allows");
                Loss { why, grace }
            })
        })
        .await
    }
}

/// Keeps an eye on one lease.
#[derive(Debug)]
struct Keeper<'a> {
    lease: &'a Lease,
    grace: Duration,
    clock: Arc<dyn Clock>,
    /// Until when the lease is certain, as seen last, and for how long it was when that was new;
    /// `None`: it has no TTL.
    certain: Cell<Option<Certain>>,
}

#[derive(Clone, Copy, Debug)]
struct Certain {
    until: LocalTime,
    full: Duration,
}

impl<'a> Keeper<'a> {
    /// Keeps an eye on a lease that was just granted.
    fn new(lease: &'a Lease, grace: Duration) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let certain =
            lease.certain_for().map(|full| Certain { until: clock.now().after(full), full });
        Self { lease, grace, clock, certain: Cell::new(certain) }
    }

    /// Returns when the lease is lost or, where it has a TTL and is no longer renewed, when it is
    /// time to end the command.
    async fn until_lost(self) -> Loss {
        tokio::select! {
            biased;
            loss = self.until_last_moment() => loss,
            error = self.lease.lost() => self.loss(told(&error)),
        }
    }

    async fn until_last_moment(&self) -> Loss {
        let mut told = false;
        loop {
            let Some(certain) = self.look() else {
                self.sleep_until(self.clock.now().after(LOOK)).await;
                // A store that does not answer now says nothing about the lease.
                if let Ok(Remaining::Gone) = self.lease.remaining().await {
                    return self.loss("the lease was lost: it was given back".to_owned());
                }
                continue;
            };
            let warning = self.grace.min(certain.full / defaults::RENEWALS_PER_TTL);
            let term_at = earlier(certain.kill_at(), warning);
            let now = self.clock.now();
            if now >= term_at {
                return self.loss("the lease could not be renewed in time".to_owned());
            }
            match self.lease.state() {
                LeaseState::Unknown if !told => {
                    told = true;
                    let lock = self.lease.lock();
                    talk::warning(format_args!("{lock}: the lease cannot be renewed now"));
                }
                LeaseState::Unknown => {}
                _ => told = false,
            }
            let look_at = now.after(LOOK.min(certain.full / LOOKS));
            self.sleep_until(term_at.min(look_at)).await;
        }
    }

    /// Until when the lease is certain now. Once it is lost this stays what it was: a lock that was
    /// destroyed leaves the command the time that it would have had.
    fn look(&self) -> Option<Certain> {
        let now = self.clock.now();
        let before = self.certain.get();
        let certain = match (before, self.lease.certain_for()) {
            (before, Some(Duration::ZERO)) => before,
            (_, None) => None,
            (Some(before), Some(left)) if is_same(before.until, now.after(left)) => Some(before),
            (_, Some(left)) => Some(Certain { until: now.after(left), full: left }),
        };
        self.certain.set(certain);
        certain
    }

    /// Past the deadline the lock may be somebody else's, and every moment is too much.
    fn loss(&self, why: String) -> Loss {
        let why = format!("{}: {why}", self.lease.lock());
        let left = self.look().map(|certain| certain.kill_at().since(self.clock.now()));
        Loss { why, grace: left.map_or(self.grace, |left| self.grace.min(left)) }
    }

    async fn sleep_until(&self, at: LocalTime) {
        Sleep::until(Arc::clone(&self.clock), at).await;
    }
}

impl Certain {
    /// The last moment for KILL: a little before the deadline, for the signal to do its work, on a
    /// machine that is busy, too.
    fn kill_at(self) -> LocalTime {
        earlier(self.until, (self.full / 20).min(Duration::from_millis(250)))
    }
}

/// The reason of a loss, without the lock's name.
fn told(error: &Error) -> String {
    match error.kind() {
        ErrorKind::Lost { why } => format!("the lease was lost: {why}"),
        _ => error.to_string(),
    }
}

fn is_same(one: LocalTime, other: LocalTime) -> bool {
    one.since(other).max(other.since(one)) < SAME
}

fn earlier(time: LocalTime, by: Duration) -> LocalTime {
    LocalTime(time.since(LocalTime(0)).saturating_sub(by).as_micros().try_into().unwrap_or(0))
}
