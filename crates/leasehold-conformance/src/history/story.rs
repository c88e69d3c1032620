//! The events of a history put together: what became of each acquisition and of each process.

use std::collections::{BTreeMap, HashMap};

use super::event::{Doing, Event, Found, GaveUp, Id, What};

/// What became of one acquisition. Times are microseconds of the boot-time clock.
#[derive(Clone, Debug)]
pub(super) struct Acquisition {
    pub(super) id: Id,
    pub(super) process: u32,
    pub(super) lock: String,
    pub(super) capacity: u32,
    pub(super) weight: u32,
    pub(super) ttl_us: Option<u64>,
    pub(super) asked_at: u64,
    pub(super) queued_at: Option<u64>,
    pub(super) granted: Option<Granted>,
    /// Refused, missed or rejected.
    pub(super) answered_no_at: Option<u64>,
    pub(super) missed: bool,
    pub(super) gave_up: Option<(u64, GaveUp)>,
    pub(super) entered_at: Option<u64>,
    pub(super) left_at: Option<u64>,
    pub(super) lost_at: Option<u64>,
    /// A renewal that found nothing.
    pub(super) lapsed_at: Option<u64>,
    pub(super) releasing_at: Option<u64>,
    pub(super) released: Option<(u64, Found)>,
    pub(super) abandoned_at: Option<u64>,
    pub(super) stored: Vec<(u64, bool)>,
}

/// A grant as its holder learned of it.
#[derive(Clone, Debug)]
pub(super) struct Granted {
    pub(super) sent_at: u64,
    pub(super) at: u64,
    pub(super) fencing: u64,
    pub(super) waited: bool,
    /// By the grant itself and by its renewals.
    pub(super) promises: Vec<Promise>,
}

/// What the store promised by one answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Promise {
    pub(super) sent_at: u64,
    pub(super) at: u64,
    /// Counted from before the request was sent, so that it is never later than the store's own time.
    pub(super) until: u64,
}

impl Acquisition {
    /// Whether two grants cannot be held at the same time.
    pub(super) fn conflicts_with(&self, other: &Self) -> bool {
        u64::from(self.weight) + u64::from(other.weight) > u64::from(self.capacity)
    }

    /// When its caller or the store ended it, as seen from its own process.
    pub(super) fn ended_by_caller(&self) -> Option<u64> {
        [self.releasing_at, self.abandoned_at].into_iter().flatten().min()
    }

    /// When the wait of a queued acquisition was over, for better or worse.
    pub(super) fn wait_over_at(&self) -> Option<u64> {
        let granted = self.granted.as_ref().map(|granted| granted.at);
        [granted, self.answered_no_at, self.ended_by_caller()].into_iter().flatten().min()
    }
}

/// What became of one process.
#[derive(Clone, Debug, Default)]
pub(super) struct Life {
    pub(super) ended_at: Option<u64>,
    pub(super) killed: Option<(u64, Doing)>,
    /// From when to when it was stopped, and what it was doing.
    pub(super) stops: Vec<(u64, Option<u64>, Doing)>,
    pub(super) last_at: u64,
}

/// The answers that a replica which took its server's place may never have heard of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Failover {
    /// What was answered before this, the replica had.
    pub(super) since: u64,
    /// Before this the replica answered nothing.
    pub(super) from: u64,
    /// After this the server before it answered nothing.
    pub(super) until: u64,
}

impl Failover {
    /// Whether an answer certainly counts after it: the replica had it, or gave it.
    const fn keeps(&self, answer: &Promise) -> bool {
        answer.at < self.since || answer.sent_at > self.until
    }
}

/// A queue as the store showed it.
#[derive(Clone, Debug)]
pub(super) struct Sight {
    pub(super) lock: String,
    pub(super) sent_at: u64,
    pub(super) at: u64,
    pub(super) waiters: Vec<Id>,
}

/// A whole history, put together.
#[derive(Clone, Debug, Default)]
pub(super) struct Story {
    /// In the order in which they were asked for.
    pub(super) acquisitions: Vec<Acquisition>,
    pub(super) lives: BTreeMap<u32, Life>,
    pub(super) sights: Vec<Sight>,
    pub(super) faults: Vec<String>,
    /// Steps of the store's clock: from when to when each was made.
    pub(super) steps: Vec<(u64, u64)>,
    /// In the order of time.
    pub(super) failovers: Vec<Failover>,
    /// Events of acquisitions that were never asked for: the log is no history.
    pub(super) strays: Vec<Event>,
    places: HashMap<Id, usize>,
}

impl Story {
    /// Puts the events together, which are in the order of their times.
    pub(super) fn of(events: &[Event]) -> Self {
        let mut story = Self::default();
        for event in events {
            let life = story.lives.entry(event.process).or_default();
            life.last_at = event.at_us;
            story.tell(event);
        }
        story
    }

    /// The acquisition with this name.
    pub(super) fn get(&self, id: &Id) -> Option<&Acquisition> {
        self.places.get(id).map(|place| &self.acquisitions[*place])
    }

    /// The life of the process that made an acquisition.
    pub(super) fn life_of(&self, acquisition: &Acquisition) -> &Life {
        &self.lives[&acquisition.process]
    }

    /// Until when a grant is certainly in force: its release is sent, its process is killed, or the
    /// store's promise ends, whichever comes first.
    pub(super) fn held_until(&self, acquisition: &Acquisition) -> Option<u64> {
        let granted = acquisition.granted.as_ref()?;
        let life = self.life_of(acquisition);
        let killed = life.killed.map(|(at, _)| at);
        // A process that ended without a word about it: no longer than it was heard of.
        let silent = life.ended_at.and(acquisition.left_at);
        // What was promised by another clock is no promise any more.
        let stepped = self.steps.iter().find(|(_, until)| *until >= granted.sent_at);
        let stepped = stepped.map(|(from, _)| *from);
        let promised = self.promised_until(granted, u64::MAX);
        let ends = [acquisition.ended_by_caller(), killed, silent, stepped, Some(promised)];
        ends.into_iter().flatten().min()
    }

    /// Until when the store has promised a grant, by what it may not have forgotten at this time.
    pub(super) fn promised_until(&self, granted: &Granted, at: u64) -> u64 {
        let last = |promises: &[Promise]| promises.iter().map(|promise| promise.until).max();
        let mut kept = granted.promises.clone();
        let mut until = last(&kept).expect("a grant promises something");
        let failovers = self.failovers.iter();
        for over in failovers.filter(|over| granted.sent_at <= over.until && over.from <= at) {
            // From when the replica answers, only what no failover may have forgotten counts.
            kept.retain(|promise| over.keeps(promise));
            until = until.min(last(&kept).unwrap_or(0).max(over.from));
        }
        until
    }

    /// Whether a replica that took a server's place may never have heard of a grant: it has the queue
    /// as it was before.
    pub(super) fn may_be_forgotten(&self, granted: &Granted) -> bool {
        self.failovers.iter().any(|over| !over.keeps(&granted.promises[0]))
    }

    /// How many answers about a grant a replica may never have heard of.
    pub(super) fn at_risk(&self, granted: &Granted) -> usize {
        let forgets = |promise: &&Promise| {
            let mut failovers = self.failovers.iter();
            failovers.any(|over| promise.at <= over.until && !over.keeps(promise))
        };
        granted.promises.iter().filter(forgets).count()
    }

    /// The same events, as if nothing could be forgotten.
    pub(super) fn without_failovers(&self) -> Self {
        Self { failovers: Vec::new(), ..self.clone() }
    }

    /// Whether the store's clock was stepped meanwhile.
    pub(super) fn is_stepped_between(&self, from_us: u64, until_us: u64) -> bool {
        self.steps.iter().any(|(from, until)| *until >= from_us && *from <= until_us)
    }

    fn tell(&mut self, event: &Event) {
        let (at, process) = (event.at_us, event.process);
        let life = self.lives.entry(process).or_default();
        match &event.what {
            What::Started => {}
            What::Ended => life.ended_at = Some(at),
            What::Stopped { doing } => life.stops.push((at, None, *doing)),
            What::Continued => {
                if let Some((_, until, _)) = life.stops.last_mut() {
                    *until = Some(at);
                }
            }
            What::Killed { doing } => life.killed = Some((at, *doing)),
            What::Stepped { from_us } => self.steps.push((*from_us, at)),
            What::FailedOver { since_us, from_us, until_us } => {
                let (since, from, until) = (*since_us, *from_us, *until_us);
                self.failovers.push(Failover { since, from, until });
            }
            What::Failed { fault } => self.faults.push(fault.clone()),
            What::Seen { lock, sent_us, waiters } => self.sights.push(Sight {
                lock: lock.clone(),
                sent_at: *sent_us,
                at,
                waiters: waiters.clone(),
            }),
            What::Asked { id, lock, kind: _, capacity, weight, ttl_us } => {
                self.places.insert(id.clone(), self.acquisitions.len());
                self.acquisitions.push(Acquisition {
                    id: id.clone(),
                    process,
                    lock: lock.clone(),
                    capacity: *capacity,
                    weight: *weight,
                    ttl_us: *ttl_us,
                    asked_at: at,
                    queued_at: None,
                    granted: None,
                    answered_no_at: None,
                    missed: false,
                    gave_up: None,
                    entered_at: None,
                    left_at: None,
                    lost_at: None,
                    lapsed_at: None,
                    releasing_at: None,
                    released: None,
                    abandoned_at: None,
                    stored: Vec::new(),
                });
            }
            What::Queued { id, .. }
            | What::Granted { id, .. }
            | What::Refused { id }
            | What::Claimed { id }
            | What::Missed { id }
            | What::Rejected { id }
            | What::GaveUp { id, .. }
            | What::Renewed { id, .. }
            | What::Lapsed { id }
            | What::Entered { id }
            | What::Lost { id }
            | What::Stored { id, .. }
            | What::Left { id }
            | What::Releasing { id }
            | What::Released { id, .. }
            | What::Abandoned { id } => match self.places.get(id) {
                Some(place) => self.acquisitions[*place].tell(at, &event.what),
                None => self.strays.push(event.clone()),
            },
        }
    }
}

impl Acquisition {
    fn tell(&mut self, at: u64, what: &What) {
        match *what {
            What::Queued { .. } => self.queued_at = Some(at),
            What::Granted { sent_us, fencing, left_us, waited, .. } => {
                let promises = vec![promise(sent_us, at, left_us)];
                let granted = Granted { sent_at: sent_us, at, fencing, waited, promises };
                self.granted.get_or_insert(granted);
            }
            What::Refused { .. } | What::Rejected { .. } => self.answered_no_at = Some(at),
            What::Missed { .. } => {
                self.answered_no_at = Some(at);
                self.missed = true;
            }
            What::GaveUp { why, .. } => self.gave_up = Some((at, why)),
            What::Renewed { sent_us, left_us, .. } => {
                if let Some(granted) = &mut self.granted {
                    granted.promises.push(promise(sent_us, at, left_us));
                }
            }
            What::Lapsed { .. } => {
                self.lapsed_at.get_or_insert(at);
            }
            What::Entered { .. } => self.entered_at = Some(at),
            What::Lost { .. } => self.lost_at = Some(at),
            What::Stored { accepted, .. } => self.stored.push((at, accepted)),
            What::Left { .. } => self.left_at = Some(at),
            What::Releasing { .. } => {
                self.releasing_at.get_or_insert(at);
            }
            What::Released { found, .. } => {
                self.released.get_or_insert((at, found));
            }
            What::Abandoned { .. } => {
                self.abandoned_at.get_or_insert(at);
            }
            _ => {}
        }
    }
}

fn promise(sent_at: u64, at: u64, left_us: Option<u64>) -> Promise {
    let until = left_us.map_or(u64::MAX, |left| sent_at.saturating_add(left));
    Promise { sent_at, at, until }
}
