//! Keeping the lease of `leasehold run`, and telling early enough that it will be lost.
//!
//! With a TTL the lease is extended every third of it. As long as the store answers, the lease's
//! deadline is known; when it does not, the command has to be gone *before* that deadline, because
//! the lock passes on then (rule L3). So the loss is told while there is still time for TERM and
//! KILL.

use std::{cell::Cell, sync::Arc, time::Duration};

use leasehold::{Clock, Error, ErrorKind, Lease, SystemClock, Ttl};
use leasehold_core::{LocalTime, Sleep, defaults};

use crate::report;

/// A lease that is lost, or will be before long.
#[derive(Debug)]
pub(crate) struct Loss {
    /// What to tell.
    pub(crate) why: String,
    /// How long the command may take between TERM and KILL.
    pub(crate) grace: Duration,
}

/// Keeps one lease.
#[derive(Debug)]
pub(crate) struct Keeper<'a> {
    lease: &'a Lease,
    grace: Duration,
    ttl: Option<Ttl>,
    clock: Arc<dyn Clock>,
    /// Until when the lease is held for certain.
    deadline: Cell<LocalTime>,
}

impl<'a> Keeper<'a> {
    /// Keeps a lease that was just granted.
    pub(crate) fn new(lease: &'a Lease, ttl: Option<Ttl>, grace: Duration) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        // The grant is a little older than now; the first extension makes this exact.
        let certain = ttl.map_or(Duration::MAX, |ttl| ttl.get() - ttl.get() / 10);
        let deadline = Cell::new(clock.now().after(certain));
        Self { lease, grace, ttl, clock, deadline }
    }

    /// Returns when the lease is lost or, where it has a TTL that can no longer be extended, when
    /// it is time to end the command.
    pub(crate) async fn until_lost(self) -> Loss {
        let Some(ttl) = self.ttl else {
            let why = told(&self.lease.lost().await);
            return Loss { why, grace: self.grace };
        };
        tokio::select! {
            biased;
            loss = self.until_last_moment(ttl) => loss,
            loss = self.extend_while_held(ttl) => loss,
            error = self.lease.lost() => self.gone(told(&error), ttl),
        }
    }

    /// Extends the lease again and again; returns when the store does not know it any more.
    async fn extend_while_held(&self, ttl: Ttl) -> Loss {
        let mut failing = false;
        loop {
            // From before the request was sent: what comes after may be the network's time.
            let sent = self.clock.now();
            let pause = match self.lease.extend(ttl.get()).await {
                Ok(true) => {
                    failing = false;
                    self.deadline.set(sent.after(ttl.get() - ttl.get() / defaults::DRIFT_DIVISOR));
                    ttl.get() / defaults::RENEWALS_PER_TTL
                }
                Ok(false) => return self.gone("the lease was lost".to_owned(), ttl),
                Err(error) => {
                    if !failing {
                        report::say(format_args!("the lease cannot be extended now: {error}"));
                    }
                    failing = true;
                    (ttl.get() / 20).min(Duration::from_secs(1))
                }
            };
            self.sleep_until(self.clock.now().after(pause)).await;
        }
    }

    /// Returns when the command has to be ended because the lease may be over soon.
    async fn until_last_moment(&self, ttl: Ttl) -> Loss {
        loop {
            let kill_at = self.kill_at(ttl);
            let warning = self.grace.min(ttl.get() / defaults::RENEWALS_PER_TTL);
            let term_at = earlier(kill_at, warning);
            if self.clock.now() >= term_at {
                return self.gone("the lease could not be extended in time".to_owned(), ttl);
            }
            self.sleep_until(term_at).await;
        }
    }

    /// Before the deadline there is time left, and after a destroy it does not count; past it the
    /// lock may be somebody else's, and every moment is too much.
    fn gone(&self, why: String, ttl: Ttl) -> Loss {
        let left = self.kill_at(ttl).since(self.clock.now());
        Loss { why, grace: self.grace.min(left) }
    }

    /// The last moment for KILL: a little before the deadline, for the signal to do its work.
    fn kill_at(&self, ttl: Ttl) -> LocalTime {
        earlier(self.deadline.get(), (ttl.get() / 20).min(Duration::from_millis(50)))
    }

    async fn sleep_until(&self, at: LocalTime) {
        Sleep::until(Arc::clone(&self.clock), at).await;
    }
}

/// The reason of a loss, without the lock's name.
fn told(error: &Error) -> String {
    match error.kind() {
        ErrorKind::Lost { why } => format!("the lease was lost: {why}"),
        _ => error.to_string(),
    }
}

fn earlier(time: LocalTime, by: Duration) -> LocalTime {
    LocalTime(time.since(LocalTime(0)).saturating_sub(by).as_micros().try_into().unwrap_or(0))
}
