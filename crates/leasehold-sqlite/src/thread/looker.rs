//! Looks at the store for this client's waiters and watchers.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use leasehold_core::defaults;

use crate::{
    client::Client,
    error::Stop,
    steps::{Bury, Look, Seen, Step, TickStep},
    tx::{Tx, us},
};

/// How often a client with waiters looks at who is in their way.
pub(crate) const PROBE_US: i64 = 50_000;
/// How many locks are looked at one by one; beyond, the registered clients are.
const LOCKS_MAX: usize = 128;
/// How many registered clients are probed in one look.
const CLIENTS_MAX: i64 = 256;
/// How long after an expiry a client looks that it is not the first to time: the one whose waiter
/// is the head comes before.
const GRACE_US: i64 = 100_000;
/// How often somebody who waits, be it for a destroy, looks that the files do not look abandoned.
const FRESH_US: i64 = 3_600_000_000;
const HEARTBEAT_US: i64 = us(defaults::SQLITE_HEARTBEAT);
/// In how many looks every lock is seen once: within a heartbeat.
const LOOKS_PER_HEARTBEAT: usize = 20;
const _: () = assert!(LOOKS_PER_HEARTBEAT as i64 * PROBE_US == HEARTBEAT_US);

/// Where the looks have come to.
#[derive(Debug, Default)]
pub(super) struct Looker {
    looked_at: i64,
    beat_at: i64,
    fresh_at: i64,
    /// The last notice seen; ids only grow.
    notice: i64,
    /// Locks that are left of this round.
    round: Vec<i64>,
    /// The holder after which the next look at a lock goes on.
    after: HashMap<i64, String>,
    /// The registered client after which the next look goes on.
    after_client: Option<i64>,
}

/// Writes this client's beat (rule L4).
struct Beat;

impl Step for Beat {
    type Answer = ();

    fn run(&self, tx: &mut Tx<'_>) -> Result<(), Stop> {
        tx.beat()
    }
}

impl Looker {
    /// Looks if it is time or if somebody said so, and says when to come back; `None`: nobody
    /// waits here.
    pub(super) fn look_if_due(&mut self, client: &Arc<Client>, told: bool) -> Option<i64> {
        if client.waits.is_empty() {
            return None;
        }
        let now = client.now();
        if told || now >= self.next_at(client) {
            client.mailbox.claim();
            self.look(client);
            client.mailbox.done(1);
            self.looked_at = now;
        }
        self.tick_due(client);
        let next_at = self.next_at(client);
        Some(client.waits.next_due().map_or(next_at, |due| due.min(next_at)))
    }

    /// Who waits for nothing but a word looks at the heartbeat, in case it was lost (rule L5).
    fn next_at(&self, client: &Client) -> i64 {
        let probes = client.waits.lock_count() > 0;
        self.looked_at + if probes { PROBE_US } else { HEARTBEAT_US }
    }

    fn look(&mut self, client: &Arc<Client>) {
        loop {
            let look = self.next_look(client);
            // A look that fails is made up for by the next: the news stay until they are told.
            let Ok(seen) = client.run_patiently(&look, Instant::now()) else { return };
            let buried = self.take_in(client, &seen);
            // Who comes after the dead may be dead too.
            if !seen.more && !buried {
                break;
            }
        }
        let now = client.now();
        if now >= self.fresh_at {
            client.members.keep_fresh();
            self.fresh_at = now + FRESH_US;
        }
        // Only a waiter is asked whether it speaks.
        let beats = client.waits.lock_count() > 0;
        if beats && now >= self.beat_at && client.run_patiently(&Beat, soon()).is_ok() {
            self.beat_at = now + HEARTBEAT_US;
        }
    }

    fn next_look(&mut self, client: &Arc<Client>) -> Look {
        if self.round.is_empty() {
            self.round = client.waits.locks();
            let round = &self.round;
            if self.after.len() > round.len() {
                self.after.retain(|lock, _| round.contains(lock));
            }
        }
        let many = client.waits.lock_count() > LOCKS_MAX;
        let share = client.waits.lock_count().div_ceil(LOOKS_PER_HEARTBEAT).max(LOCKS_MAX);
        let rest = self.round.len().saturating_sub(share);
        let locks = self.round.split_off(rest);
        Look {
            notice: self.notice,
            clients_after: many.then(|| (self.after_client.unwrap_or(i64::MIN), CLIENTS_MAX)),
            locks: locks
                .into_iter()
                .map(|lock| (lock, self.after.get(&lock).cloned().unwrap_or_default()))
                .collect(),
        }
    }

    /// Says whether somebody dead was buried.
    fn take_in(&mut self, client: &Arc<Client>, seen: &Seen) -> bool {
        self.notice = seen.notice;
        self.after_client = seen.last_client;
        for key in &seen.news {
            if let Some(wake) = client.waits.take_notice(key) {
                wake.notify();
            }
        }
        for lock in &seen.locks {
            let grace = if lock.is_ours_to_time { 0 } else { GRACE_US };
            client.waits.set_due(lock.id, lock.next_expiry.map(|at| at + grace));
            if lock.after.is_empty() {
                self.after.remove(&lock.id);
            } else {
                self.after.insert(lock.id, lock.after.clone());
            }
        }
        let mut buried = false;
        for other in &seen.others {
            if client.members.is_dead(*other) {
                // Should it fail, the next look finds it dead again.
                buried |= client.run_patiently(&Bury(*other), soon()).is_ok_and(|known| known);
            }
        }
        buried
    }

    /// Passes on what has expired at locks that somebody here waits for (rule T3).
    fn tick_due(&mut self, client: &Arc<Client>) {
        let now = client.now();
        for lock in client.waits.due(now) {
            match client.run_patiently(&TickStep { lock }, soon()) {
                Ok(next) => client.waits.set_due(lock, next),
                // Whatever is in the way is in the way of the others too, and messages wait.
                Err(_) => {
                    client.waits.set_due(lock, Some(client.now() + PROBE_US));
                    return;
                }
            }
        }
    }
}

/// How long the thread waits for the guard for what it does again anyway: there may be messages.
fn soon() -> Instant {
    Instant::now() + Duration::from_millis(100)
}
