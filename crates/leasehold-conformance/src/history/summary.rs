//! How much has happened in a history, so that one in which nothing happened proves nothing.

use std::{collections::BTreeMap, fmt, time::Duration};

use super::{
    event::{Doing, GaveUp},
    story::Story,
};

/// The figures of a history.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Processes that took part.
    pub processes: usize,
    /// Acquisitions that were asked for.
    pub asked: usize,
    /// Grants.
    pub grants: usize,
    /// Grants out of the queue.
    pub hand_offs: usize,
    /// Processes that were killed, by what they were doing.
    pub kills: BTreeMap<Doing, usize>,
    /// Processes that were stopped and continued, by what they were doing.
    pub stops: BTreeMap<Doing, usize>,
    /// Acquisitions that gave no lease, by why.
    pub gave_up: BTreeMap<GaveUp, usize>,
    /// Waiters whose claim ran out before they saw it, or that were skipped.
    pub missed: usize,
    /// The same in processes that were never stopped: the machine was too slow to confirm.
    pub missed_without_stop: usize,
    /// Sections whose lease was lost while they ran.
    pub lost: usize,
    /// The same in processes that were never stopped: the machine was too slow to renew.
    pub lost_without_stop: usize,
    /// Writes of stale holders that the storage refused.
    pub stale_writes_refused: usize,
    /// Looks at a queue.
    pub sights: usize,
    /// Replicas that took a server's place.
    pub failovers: usize,
    /// Grants and renewals that they may never have heard of.
    pub answers_at_risk: usize,
    /// Requests that the store answered with a fault.
    pub faults: usize,
    /// The longest time from the queue to the grant.
    pub longest_wait: Duration,
}

impl Summary {
    pub(super) fn of(story: &Story) -> Self {
        let mut summary = Self {
            processes: story.lives.len(),
            asked: story.acquisitions.len(),
            sights: story.sights.len(),
            failovers: story.failovers.len(),
            faults: story.faults.len(),
            ..Self::default()
        };
        for life in story.lives.values() {
            if let Some((_, doing)) = life.killed {
                *summary.kills.entry(doing).or_default() += 1;
            }
            for (_, until, doing) in &life.stops {
                *summary.stops.entry(*doing).or_default() += usize::from(until.is_some());
            }
        }
        for a in &story.acquisitions {
            if let Some(granted) = &a.granted {
                summary.grants += 1;
                summary.answers_at_risk += story.at_risk(granted);
                summary.hand_offs += usize::from(granted.waited);
                let waited = granted.at - a.queued_at.unwrap_or(granted.at).min(granted.at);
                summary.longest_wait = summary.longest_wait.max(Duration::from_micros(waited));
            }
            if let Some((_, why)) = a.gave_up {
                *summary.gave_up.entry(why).or_default() += 1;
            }
            let is_lost = a.lost_at.is_some();
            let slept = !story.life_of(a).stops.is_empty();
            summary.missed += usize::from(a.missed);
            summary.missed_without_stop += usize::from(a.missed && !slept);
            summary.lost += usize::from(is_lost);
            summary.lost_without_stop += usize::from(is_lost && !slept);
            summary.stale_writes_refused +=
                a.stored.iter().filter(|(_, accepted)| !accepted).count();
        }
        summary
    }

    /// How many processes were killed while they did this.
    #[must_use]
    pub fn killed(&self, doing: Doing) -> usize {
        self.kills.get(&doing).copied().unwrap_or(0)
    }

    /// How many processes were stopped while they did this.
    #[must_use]
    pub fn stopped(&self, doing: Doing) -> usize {
        self.stops.get(&doing).copied().unwrap_or(0)
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} processes asked {} times: {} grants, {} of them hand-offs; longest wait {} ms",
            self.processes,
            self.asked,
            self.grants,
            self.hand_offs,
            self.longest_wait.as_millis()
        )?;
        for (what, counts) in [("killed", &self.kills), ("stopped", &self.stops)] {
            write!(f, "{what}:")?;
            for (doing, count) in counts {
                write!(f, " {count} {doing:?}")?;
            }
            writeln!(f)?;
        }
        write!(f, "no lease:")?;
        for (why, count) in &self.gave_up {
            write!(f, " {count} {why:?}")?;
        }
        writeln!(
            f,
            ", {} claims missed ({} without a stop)",
            self.missed, self.missed_without_stop
        )?;
        write!(
            f,
            "{} sections lost their lease ({} without a stop), {} stale writes refused, {} looks \
             at queues, {} faults",
            self.lost, self.lost_without_stop, self.stale_writes_refused, self.sights, self.faults
        )?;
        if self.failovers > 0 {
            let (failovers, at_risk) = (self.failovers, self.answers_at_risk);
            write!(f, ", {failovers} failovers with {at_risk} grants and renewals at risk")?;
        }
        Ok(())
    }
}
