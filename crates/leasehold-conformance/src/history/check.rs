//! What must hold in every history, whoever was killed or stopped in it.
//!
//! Every judgement allows for the time between a fact in the store and its line in a log: a grant
//! counts from its logged answer, and ends where its release is *sent*, its process is killed or
//! the store's promise runs out. So nothing is reported that did not happen; what happens between
//! a request and its answer only may go unseen. Pairs of one lock are compared one by one, which a
//! history of some ten thousand acquisitions allows.

use std::{collections::BTreeMap, fmt, time::Duration};

use super::{
    event::{Event, Found, Id},
    story::{Acquisition, Granted, Story},
    summary::Summary,
};

/// What a checker has to know about how a history was made.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// No waiter of a running process waits longer than this, unless it is stranded.
    pub wait_max: Duration,
}

/// What was found in a history.
#[derive(Clone, Debug)]
pub struct Report {
    /// What must not be; empty is good.
    pub violations: Vec<Violation>,
    /// What would be violations, had no failover made answers void ([`Forgets`](super::Forgets)):
    /// what asynchronous replication has lost.
    pub explained: Vec<Violation>,
    /// How much has happened.
    pub summary: Summary,
}

/// Something that must not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which rule is broken.
    pub kind: ViolationKind,
    /// Of which lock; empty when of none.
    pub lock: String,
    /// When, in microseconds of the boot-time clock.
    pub at_us: u64,
    /// Who took part.
    pub who: Vec<Id>,
}

/// The rules of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ViolationKind {
    /// More permits were held than there are (rules Q1, Q4).
    Overlap,
    /// A later request was granted before an earlier one that still waited (rules Q2, Q3, L4).
    Overtaken,
    /// A waiter of a running process was neither granted nor told off in time (rules Q4, L5).
    Stranded,
    /// Fencing tokens do not grow with the grants of a lock (rule L8).
    FencingRegression,
    /// A grant ended before its TTL and without its holder's doing (rule N7).
    EndedByOthers,
    /// A holder that was stopped for longer than its TTL did not learn of its loss (rule L3).
    UnawareHolder,
    /// The storage refused a write of a grant in force.
    HolderRefused,
    /// The storage took a write of a grant after one with a higher fencing token.
    StaleWrite,
    /// A process ended in another way than it was told to.
    BrokenProcess,
    /// An event of an acquisition that nobody asked for.
    Stray,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.kind)?;
        if !self.lock.is_empty() {
            write!(f, " of lock {}", self.lock)?;
        }
        write!(f, " at {} µs", self.at_us)?;
        for id in &self.who {
            write!(f, " {id}")?;
        }
        Ok(())
    }
}

/// Checks a history, whose events are in the order of their times.
#[must_use]
pub fn check(events: &[Event], limits: Limits) -> Report {
    let story = Story::of(events);
    let violations = violations(&story, limits);
    let mut explained = Vec::new();
    if !story.failovers.is_empty() {
        explained = self::violations(&story.without_failovers(), limits);
        explained.retain(|violation| !violations.contains(violation));
    }
    Report { summary: Summary::of(&story), violations, explained }
}

/// In the order of their times.
fn violations(story: &Story, limits: Limits) -> Vec<Violation> {
    let mut by_lock = BTreeMap::<&str, Vec<&Acquisition>>::new();
    for acquisition in &story.acquisitions {
        by_lock.entry(&acquisition.lock).or_default().push(acquisition);
    }
    let mut checker = Checker { story, limits, violations: Vec::new() };
    checker.processes();
    for (lock, acquisitions) in &by_lock {
        checker.overlaps(lock, acquisitions);
        checker.order_of_grants(lock, acquisitions);
        checker.order_of_queues(lock, acquisitions);
        checker.storage(lock, acquisitions);
    }
    for acquisition in &story.acquisitions {
        checker.wait(acquisition);
        checker.end(acquisition);
        checker.loss(acquisition);
    }
    let mut violations = checker.violations;
    violations.sort_by_key(|violation| violation.at_us);
    violations
}

struct Checker<'a> {
    story: &'a Story,
    limits: Limits,
    violations: Vec<Violation>,
}

impl Checker<'_> {
    fn found(&mut self, kind: ViolationKind, lock: &str, at_us: u64, who: &[&Acquisition]) {
        let who = who.iter().map(|acquisition| acquisition.id.clone()).collect();
        self.violations.push(Violation { kind, lock: lock.to_owned(), at_us, who });
    }

    fn processes(&mut self) {
        for (process, life) in &self.story.lives {
            let heard_after = life.ended_at.is_some_and(|at| life.last_at > at);
            if life.killed.is_none() && life.ended_at.is_none() || heard_after {
                let who = vec![Id(process.to_string())];
                let (kind, at_us) = (ViolationKind::BrokenProcess, life.last_at);
                self.violations.push(Violation { kind, lock: String::new(), at_us, who });
            }
        }
        for stray in &self.story.strays {
            let who = vec![Id(stray.process.to_string())];
            let (kind, at_us) = (ViolationKind::Stray, stray.at_us);
            self.violations.push(Violation { kind, lock: String::new(), at_us, who });
        }
    }

    /// At no time are more permits certainly held than there are.
    fn overlaps(&mut self, lock: &str, acquisitions: &[&Acquisition]) {
        // Ends come before beginnings of the same microsecond.
        let mut edges = Vec::<(u64, bool, &Acquisition)>::new();
        for acquisition in acquisitions {
            let Some(granted) = &acquisition.granted else { continue };
            let until = self.story.held_until(acquisition).expect("it was granted");
            if granted.at < until {
                edges.push((granted.at, true, acquisition));
                edges.push((until, false, acquisition));
            }
        }
        edges.sort_by_key(|(at, begins, _)| (*at, *begins));
        let mut holders = Vec::<&Acquisition>::new();
        for (at, begins, acquisition) in edges {
            if !begins {
                holders.retain(|holder| holder.id != acquisition.id);
                continue;
            }
            holders.push(acquisition);
            let held: u64 = holders.iter().map(|holder| u64::from(holder.weight)).sum();
            if held > u64::from(acquisition.capacity) {
                self.found(ViolationKind::Overlap, lock, at, &holders);
            }
        }
    }

    /// Grants follow the queue, and fencing tokens follow the grants: so fencing tokens show the
    /// order of grants, and what was certainly earlier has the smaller one.
    fn order_of_grants(&mut self, lock: &str, acquisitions: &[&Acquisition]) {
        let granted: Vec<(&Acquisition, &Granted)> =
            acquisitions.iter().filter_map(|one| Some((*one, one.granted.as_ref()?))).collect();
        for (index, (a, of_a)) in granted.iter().enumerate() {
            for (b, of_b) in &granted[index + 1..] {
                let kind = if of_a.fencing == of_b.fencing {
                    Some(ViolationKind::FencingRegression)
                } else {
                    let misorder = |first, second| misorder(self.story, first, second);
                    misorder((*a, *of_a), (*b, *of_b))
                        .or_else(|| misorder((*b, *of_b), (*a, *of_a)))
                };
                if let Some(kind) = kind {
                    self.found(kind, lock, of_a.at.max(of_b.at), &[a, b]);
                }
            }
        }
    }

    /// Who was seen in the queue is not overtaken by who came later, in the queue's own order.
    fn order_of_queues(&mut self, lock: &str, acquisitions: &[&Acquisition]) {
        let sights = self.story.sights.iter().filter(|sight| sight.lock == lock);
        for sight in sights {
            let queue: Vec<&Acquisition> =
                sight.waiters.iter().filter_map(|id| self.story.get(id)).collect();
            for (place, a) in queue.iter().enumerate() {
                self.overtaken_while_waiting(lock, acquisitions, a, sight.sent_at);
                for b in &queue[place + 1..] {
                    if let (Some(of_a), Some(of_b)) = (&a.granted, &b.granted)
                        && of_a.fencing > of_b.fencing
                        && !self.story.is_stepped_between(sight.sent_at, of_a.at)
                        && !self.story.may_be_forgotten(of_a)
                        && !self.story.may_be_forgotten(of_b)
                    {
                        self.found(ViolationKind::Overtaken, lock, sight.at, &[a, b]);
                    }
                }
            }
        }
        for a in acquisitions {
            if let (Some(leaving), Some((_, Found::Waiter))) = (a.releasing_at, a.released) {
                self.overtaken_while_waiting(lock, acquisitions, a, leaving);
            }
        }
    }

    /// `a` waited at `still_at`: nobody who asked after it was queued is granted before.
    fn overtaken_while_waiting(
        &mut self,
        lock: &str,
        acquisitions: &[&Acquisition],
        a: &Acquisition,
        still_at: u64,
    ) {
        let Some(queued_at) = a.queued_at else { return };
        if self.story.is_stepped_between(a.asked_at, still_at) {
            return;
        }
        let from = acquisitions.partition_point(|b| b.asked_at <= queued_at);
        for b in acquisitions[from..].iter().take_while(|b| b.asked_at < still_at) {
            let before = b.granted.as_ref().filter(|of_b| of_b.at < still_at);
            if before.is_some_and(|of_b| !self.story.may_be_forgotten(of_b)) {
                self.found(ViolationKind::Overtaken, lock, still_at, &[a, b]);
            }
        }
    }

    /// The storage of an exclusive section takes writes in the order of fencing tokens.
    fn storage(&mut self, lock: &str, acquisitions: &[&Acquisition]) {
        let mut writes = Vec::new();
        for a in acquisitions {
            let Some(granted) = &a.granted else { continue };
            let until = self.story.held_until(a).expect("it was granted");
            for (at, accepted) in &a.stored {
                if *accepted {
                    writes.push((*at, granted.fencing, *a));
                } else if *at < until {
                    self.found(ViolationKind::HolderRefused, lock, *at, &[a]);
                }
            }
        }
        writes.sort_by_key(|(at, ..)| *at);
        for pair in writes.windows(2) {
            let [(_, before, a), (at, after, b)] = pair else { unreachable!("windows of two") };
            if after < before {
                self.found(ViolationKind::StaleWrite, lock, *at, &[a, b]);
            }
        }
    }

    /// Every waiter of a running process is granted, told off or leaves, in time.
    fn wait(&mut self, a: &Acquisition) {
        let Some(queued_at) = a.queued_at else { return };
        let life = self.story.life_of(a);
        let (over_at, is_over) = match (a.wait_over_at(), life.killed) {
            (Some(at), _) => (at, true),
            (None, Some((at, _))) => (at, true),
            (None, None) => (life.last_at, false),
        };
        let stopped: u64 = life
            .stops
            .iter()
            .map(|(from, until, _)| {
                let until = until.unwrap_or(u64::MAX).min(over_at);
                until.saturating_sub(queued_at.max(*from))
            })
            .sum();
        // A process that is killed while it writes may have queued after its death was noted.
        let waited = over_at.saturating_sub(queued_at).saturating_sub(stopped);
        let waited = Duration::from_micros(waited);
        if !is_over || waited > self.limits.wait_max {
            self.found(ViolationKind::Stranded, &a.lock, over_at, &[a]);
        }
    }

    /// A grant that its holder did not end is there until the store's promise runs out.
    fn end(&mut self, a: &Acquisition) {
        let Some(granted) = &a.granted else { return };
        let until = a.lapsed_at.max(a.released.map(|(at, _)| at)).unwrap_or(granted.at);
        if self.story.is_stepped_between(granted.sent_at, until) {
            return;
        }
        if let Some((at, Found::Nothing)) = a.released
            && a.abandoned_at.is_none_or(|abandoned| abandoned > at)
            && at < self.story.promised_until(granted, at)
        {
            self.found(ViolationKind::EndedByOthers, &a.lock, at, &[a]);
        }
        if let Some(at) = a.lapsed_at
            && a.ended_by_caller().is_none_or(|ended| ended > at)
            && at < self.story.promised_until(granted, at)
        {
            self.found(ViolationKind::EndedByOthers, &a.lock, at, &[a]);
        }
    }

    /// A holder that slept through its TTL knows it before it leaves its section.
    fn loss(&mut self, a: &Acquisition) {
        let (Some(entered_at), Some(left_at), Some(ttl)) = (a.entered_at, a.left_at, a.ttl_us)
        else {
            return;
        };
        let slept = self.story.life_of(a).stops.iter().any(|(from, until, _)| {
            until.is_some_and(|until| {
                // A renewal may have been on its way when the stop came.
                entered_at < *from && until < left_at && until - from > ttl
            })
        });
        // Where the store's clock went back meanwhile, a grant may have outlived that.
        let may_live = self.story.is_stepped_between(a.asked_at, left_at);
        if slept && !may_live && a.lost_at.is_none_or(|lost| lost > left_at) {
            self.found(ViolationKind::UnawareHolder, &a.lock, left_at, &[a]);
        }
    }
}

/// How `a`, which was certainly before `b`, has the greater fencing token; `None`: it has not, or
/// it was not certainly before.
fn misorder(
    story: &Story,
    (a, of_a): (&Acquisition, &Granted),
    (b, of_b): (&Acquisition, &Granted),
) -> Option<ViolationKind> {
    if of_a.fencing < of_b.fencing {
        return None;
    }
    // Each is held at some moment between a request and its answer; two that exclude each other
    // are held one after the other.
    let granted_before = of_a.at < b.asked_at || (a.conflicts_with(b) && of_a.at < of_b.sent_at);
    if granted_before {
        Some(ViolationKind::FencingRegression)
    } else if a.queued_at.is_some_and(|queued| queued < b.asked_at)
        && !story.is_stepped_between(a.asked_at, of_a.at)
        && !story.may_be_forgotten(of_a)
        && !story.may_be_forgotten(of_b)
    {
        // By a step of its clock the store may have lost its queue, and all of it queued again.
        Some(ViolationKind::Overtaken)
    } else {
        None
    }
}
