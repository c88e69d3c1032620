//! One row of the table: contenders that do the same work, measured in turns.

use std::{fmt, time::Duration};

use serde_json::json;

use crate::OURS;

/// What one run of a contender gives.
#[derive(Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) took: Duration,
    pub(crate) operations: u64,
    /// The most and the fewest turns that one task had, where tasks compete.
    pub(crate) turns: Option<(u64, u64)>,
}

/// Runs about that long.
type Run = Box<dyn FnMut(Duration) -> Sample>;

pub(crate) struct Row {
    pub(crate) work: String,
    contenders: Vec<(&'static str, Run)>,
}

/// How long to measure.
#[derive(Clone, Copy)]
pub(crate) struct Budget {
    pub(crate) rounds: usize,
    pub(crate) run: Duration,
}

/// Medians of a row.
pub(crate) struct Figures {
    pub(crate) work: String,
    pub(crate) ours: f64,
    pub(crate) peers: Vec<(&'static str, f64)>,
    pub(crate) floor: Option<f64>,
    fairness: Option<f64>,
}

/// The name under which the floor of a row runs.
pub(crate) const FLOOR: &str = "floor";

impl Budget {
    pub(crate) const FULL: Self = Self { rounds: 15, run: Duration::from_millis(120) };
    pub(crate) const QUICK: Self = Self { rounds: 3, run: Duration::from_millis(20) };
}

impl Row {
    pub(crate) fn new(work: impl Into<String>) -> Self {
        Self { work: work.into(), contenders: Vec::new() }
    }

    pub(crate) fn with(
        mut self,
        name: &'static str,
        run: impl FnMut(Duration) -> Sample + 'static,
    ) -> Self {
        self.contenders.push((name, Box::new(run)));
        self
    }

    pub(crate) fn measure(&mut self, budget: Budget) -> Figures {
        let mut samples: Vec<Vec<f64>> = vec![Vec::new(); self.contenders.len()];
        let mut spreads = Vec::new();
        for (_, run) in &mut self.contenders {
            run(budget.run / 4);
        }
        for _ in 0..budget.rounds {
            for (index, (name, run)) in self.contenders.iter_mut().enumerate() {
                let sample = run(budget.run);
                let nanos = sample.took.as_secs_f64() * 1e9;
                samples[index].push(nanos / sample.operations as f64);
                if let (&mut OURS, Some((most, fewest))) = (name, sample.turns) {
                    spreads.push(most as f64 / fewest.max(1) as f64);
                }
            }
        }
        let mut medians =
            self.contenders.iter().zip(samples).map(|((name, _), s)| (*name, median(s)));
        let (mut ours, mut floor, mut peers) = (f64::NAN, None, Vec::new());
        for (name, nanos) in &mut medians {
            match name {
                OURS => ours = nanos,
                FLOOR => floor = Some(nanos),
                peer => peers.push((peer, nanos)),
            }
        }
        let fairness = (!spreads.is_empty()).then(|| median(spreads));
        Figures { work: self.work.clone(), ours, peers, floor, fairness }
    }
}

impl Figures {
    /// Ours against the fastest peer.
    pub(crate) fn ratio_to_best(&self) -> Option<f64> {
        let best = self.peers.iter().map(|(_, nanos)| *nanos).reduce(f64::min)?;
        Some(self.ours / best)
    }

    pub(crate) fn json(&self) -> String {
        let round = |value: f64| (value * 100.0).round() / 100.0;
        let peers: serde_json::Map<_, _> =
            self.peers.iter().map(|(name, nanos)| ((*name).into(), json!(round(*nanos)))).collect();
        json!({
            "work": self.work,
            "unit": "ns",
            "ours": round(self.ours),
            "peers": peers,
            "floor": self.floor.map(round),
            "ratio_to_best": self.ratio_to_best().map(round),
            "turns_max_over_min": self.fairness.map(|value| (value * 1000.0).round() / 1000.0),
        })
        .to_string()
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let best = self.ratio_to_best().map_or("-".into(), |ratio| format!("{ratio:.2}"));
        let floor =
            self.floor.map_or("-".into(), |floor| format!("{:.2} x {floor:.1}", self.ours / floor));
        write!(f, "{:44} {:>8.1}  {best:>6}  {floor:>10}", self.work, self.ours)?;
        for (name, nanos) in &self.peers {
            write!(f, "  {name} {nanos:.1} ({:.2})", self.ours / nanos)?;
        }
        match self.fairness {
            Some(fairness) => write!(f, "  max/min {fairness:.3}"),
            None => Ok(()),
        }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
