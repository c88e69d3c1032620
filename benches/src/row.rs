//! One row of the table: what several contenders needed for the same work.

use std::fmt;

use serde_json::{Value, json};

/// Which of two figures wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    Less,
    More,
}

/// What a row counts.
#[derive(Clone, Copy, Debug)]
pub struct Unit {
    name: &'static str,
    better: Better,
}

impl Unit {
    pub const NS: Self = Self { name: "ns", better: Better::Less };
    pub const MS: Self = Self { name: "ms", better: Better::Less };
    pub const PAIRS_PER_SECOND: Self = Self { name: "pairs/s", better: Better::More };
    pub const PER_SECOND: Self = Self { name: "1/s", better: Better::Less };
    pub const MILLIONS_PER_SECOND: Self = Self { name: "M/s", better: Better::More };
    pub const BYTES: Self = Self { name: "bytes", better: Better::Less };
    pub const RATIO: Self = Self { name: "ratio", better: Better::Less };
    pub const TURNS: Self = Self { name: "turns", better: Better::Less };
    pub const PERCENT: Self = Self { name: "%", better: Better::Less };
    pub const MICROSECONDS: Self = Self { name: "us", better: Better::Less };
    pub const COUNT: Self = Self { name: "count", better: Better::Less };
}

/// What a row must reach; shown, never asserted.
#[derive(Clone, Copy, Debug)]
pub enum Goal {
    None,
    Value(f64),
    /// A multiple of the floor of the same row.
    TimesFloor(f64),
    /// A multiple of that peer of the same row.
    TimesPeer(&'static str, f64),
}

/// The samples of a row, one list per contender.
#[derive(Clone, Debug)]
pub struct Row {
    work: String,
    unit: Unit,
    goal: Goal,
    ours: Vec<f64>,
    floor: Vec<f64>,
    peers: Vec<(&'static str, Vec<f64>)>,
}

impl Row {
    #[must_use]
    pub fn new(work: impl Into<String>, unit: Unit) -> Self {
        let work = work.into();
        let goal = Goal::None;
        Self { work, unit, goal, ours: Vec::new(), floor: Vec::new(), peers: Vec::new() }
    }

    #[must_use]
    pub fn goal(mut self, goal: impl Into<Goal>) -> Self {
        self.goal = goal.into();
        self
    }

    pub fn add_ours(&mut self, sample: f64) {
        self.ours.push(sample);
    }

    /// The floor is what no contender can do without.
    pub fn add_floor(&mut self, sample: f64) {
        self.floor.push(sample);
    }

    pub fn add_peer(&mut self, name: &'static str, sample: f64) {
        match self.peers.iter_mut().find(|(known, _)| *known == name) {
            Some((_, samples)) => samples.push(sample),
            None => self.peers.push((name, vec![sample])),
        }
    }

    pub(crate) fn work(&self) -> &str {
        &self.work
    }

    pub(crate) const fn unit(&self) -> &'static str {
        self.unit.name
    }

    /// The median of ours, once there is one.
    #[must_use]
    pub fn ours(&self) -> Option<f64> {
        median(&self.ours)
    }

    pub(crate) fn floor(&self) -> Option<f64> {
        median(&self.floor)
    }

    pub(crate) fn peers(&self) -> impl Iterator<Item = (&'static str, f64)> {
        self.peers.iter().filter_map(|(name, samples)| Some((*name, median(samples)?)))
    }

    /// Ours divided by the best peer: below 1 is faster where less is better, above 1 elsewhere.
    fn ratio_to_best(&self) -> Option<f64> {
        let best = self.peers().map(|(_, value)| value).reduce(match self.unit.better {
            Better::Less => f64::min,
            Better::More => f64::max,
        })?;
        (best != 0.0).then_some(self.ours()? / best)
    }

    /// The goal as a figure, if what it is a multiple of was measured.
    fn goal_value(&self) -> Option<f64> {
        match self.goal {
            Goal::None => None,
            Goal::Value(value) => Some(value),
            Goal::TimesFloor(times) => self.floor().map(|floor| floor * times),
            Goal::TimesPeer(name, times) => {
                self.peers().find(|(peer, _)| *peer == name).map(|(_, value)| value * times)
            }
        }
    }

    fn verdict(&self) -> Option<&'static str> {
        let (ours, goal) = (self.ours()?, self.goal_value()?);
        let met = match self.unit.better {
            Better::Less => ours <= goal,
            Better::More => ours >= goal,
        };
        Some(if met { "met" } else { "MISSED" })
    }

    pub(crate) fn json(&self) -> Value {
        let peers: serde_json::Map<_, _> =
            self.peers().map(|(name, value)| (name.into(), json!(rounded(value)))).collect();
        json!({
            "work": self.work,
            "ours": self.ours().map(rounded),
            "unit": self.unit.name,
            "better": if self.unit.better == Better::Less { "less" } else { "more" },
            "peers": peers,
            "floor": self.floor().map(rounded),
            "ratio_to_best": self.ratio_to_best().map(rounded),
            "goal": self.goal_value().map(rounded),
        })
    }
}

impl From<f64> for Goal {
    fn from(value: f64) -> Self {
        Self::Value(value)
    }
}

impl From<Option<f64>> for Goal {
    fn from(value: Option<f64>) -> Self {
        value.map_or(Self::None, Self::Value)
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ours = self.ours().map_or("-".into(), shown);
        let sign = if self.unit.better == Better::Less { "<=" } else { ">=" };
        let goal = self.goal_value().map_or("-".into(), |goal| format!("{sign} {}", shown(goal)));
        let best = self.ratio_to_best().map_or("-".into(), |ratio| format!("{ratio:.2}"));
        let floor = self.floor().map_or("-".into(), shown);
        let (work, unit, verdict) = (&self.work, self.unit.name, self.verdict().unwrap_or(""));
        write!(f, "{work:46} {ours:>9} {unit:8} {goal:>9} {verdict:6} {best:>6} {floor:>9} ")?;
        for (name, value) in self.peers() {
            write!(f, "  {name} {}", shown(value))?;
        }
        Ok(())
    }
}

/// The head of the table whose lines rows print.
pub(crate) fn head() -> String {
    format!(
        "{:46} {:>9} {:8} {:>9} {:6} {:>6} {:>9}   peers",
        "work", "ours", "unit", "goal", "", "best", "floor"
    )
}

fn shown(value: f64) -> String {
    match value.abs() {
        large if large >= 100.0 => format!("{value:.0}"),
        medium if medium >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

/// The middle of the samples, if there are any.
#[must_use]
pub fn median(samples: &[f64]) -> Option<f64> {
    quantile(samples, 0.5)
}

/// The sample below which this share of them lies, if there are any.
#[must_use]
pub fn quantile(samples: &[f64], share: f64) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let index = (sorted.len() as f64 * share) as usize;
    sorted.get(index.min(sorted.len().checked_sub(1)?)).copied()
}
