//! The arguments, the rounds, the table and the JSON of a suite.

use std::{fmt::Write as _, fs, path::PathBuf, time::Duration};

use crate::{Goal, Result, Row, Unit, plot, row::head};

pub(crate) const OURS: &str = "ours";

/// How long to measure.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    pub rounds: usize,
    /// How long one contender runs in one round.
    pub run: Duration,
}

/// A suite in progress.
///
/// Arguments: `--json FILE` (one line per row), `--svg FOLDER` (one plot per row), `--quick` (few
/// and short rounds), `--only TEXT` (rows whose name contains it), `--ours` (no peers and no floor:
/// for a profile), `--peer NAME` (that one alone), `--rounds N`.
#[derive(Debug)]
pub struct Report {
    budget: Budget,
    quick: bool,
    alone: Option<String>,
    only: Option<String>,
    json: Option<PathBuf>,
    svg: Option<PathBuf>,
    plots: Vec<(String, String)>,
    lines: String,
}

/// A contender of a row: runs for about that long and gives the figure.
pub type Contender<'a> = (Place, Box<dyn FnMut(Duration) -> f64 + 'a>);

/// In which column a contender's figure goes.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    Ours,
    Floor,
    Peer(&'static str),
}

impl Place {
    const fn name(self) -> &'static str {
        match self {
            Self::Ours => OURS,
            Self::Floor => "floor",
            Self::Peer(name) => name,
        }
    }
}

/// The contenders of a row that is being put together.
#[derive(Default)]
#[allow(missing_debug_implementations, reason = "made of closures")]
pub struct Contenders<'a>(Vec<Contender<'a>>);

impl<'a> Contenders<'a> {
    pub fn ours(&mut self, run: impl FnMut(Duration) -> f64 + 'a) -> &mut Self {
        self.with(Place::Ours, run)
    }

    pub fn floor(&mut self, run: impl FnMut(Duration) -> f64 + 'a) -> &mut Self {
        self.with(Place::Floor, run)
    }

    pub fn peer(&mut self, name: &'static str, run: impl FnMut(Duration) -> f64 + 'a) -> &mut Self {
        self.with(Place::Peer(name), run)
    }

    pub fn with(&mut self, place: Place, run: impl FnMut(Duration) -> f64 + 'a) -> &mut Self {
        self.0.push((place, Box::new(run)));
        self
    }
}

impl Report {
    /// Reads the arguments. `full` is what runs without `--quick`.
    ///
    /// # Errors
    /// An argument that is not known or lacks its value.
    pub fn from_arguments(full: Budget, quick: Budget) -> Result<Self> {
        let mut report = Self {
            budget: full,
            quick: false,
            alone: None,
            only: None,
            json: None,
            svg: None,
            plots: Vec::new(),
            lines: String::new(),
        };
        let mut rounds = None;
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
            match argument.as_str() {
                "--json" => report.json = Some(value()?.into()),
                "--svg" => report.svg = Some(value()?.into()),
                "--only" => report.only = Some(value()?),
                "--rounds" => rounds = Some(value()?.parse::<usize>()?.max(1)),
                "--ours" => report.alone = Some(OURS.into()),
                "--peer" => report.alone = Some(value()?),
                "--quick" => report.quick = true,
                _ => return Err(format!("unknown argument {argument}").into()),
            }
        }
        if report.quick {
            report.budget = quick;
        }
        if let Some(rounds) = rounds {
            report.budget.rounds = rounds;
        }
        println!("{}", head());
        Ok(report)
    }

    #[must_use]
    pub const fn budget(&self) -> Budget {
        self.budget
    }

    #[must_use]
    pub const fn is_quick(&self) -> bool {
        self.quick
    }

    /// Whether any of these rows is asked for.
    #[must_use]
    pub fn wants(&self, works: &[&str]) -> bool {
        self.only.as_ref().is_none_or(|only| works.iter().any(|work| work.contains(only.as_str())))
    }

    /// Measures a row: all contenders once to warm up, then in rounds, and gives the median of ours.
    /// `contenders` is not called for a row that nobody asked for.
    pub fn measure<'a>(
        &mut self,
        work: &str,
        unit: Unit,
        goal: impl Into<Goal>,
        contenders: impl FnOnce(&mut Contenders<'a>),
    ) -> Option<f64> {
        if !self.wants(&[work]) {
            return None;
        }
        let mut list = Contenders::default();
        contenders(&mut list);
        if let Some(alone) = &self.alone {
            list.0.retain(|(place, _)| place.name() == alone);
        }
        let mut row = Row::new(work, unit).goal(goal);
        for (_, run) in &mut list.0 {
            run(self.budget.run / 4);
        }
        for _ in 0..self.budget.rounds {
            for (place, run) in &mut list.0 {
                let sample = run(self.budget.run);
                match place {
                    Place::Ours => row.add_ours(sample),
                    Place::Floor => row.add_floor(sample),
                    Place::Peer(name) => row.add_peer(name, sample),
                }
            }
        }
        self.add(&row);
        row.ours()
    }

    /// Adds a row that was measured elsewhere.
    pub fn add(&mut self, row: &Row) {
        if self.wants(&[row.work()]) {
            println!("{row}");
            let _ = writeln!(self.lines, "{}", row.json());
            if self.svg.is_some() {
                self.plots.push((plot::file_name(row.work()), plot::svg(row)));
            }
        }
    }

    /// Writes the JSON and the plots.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn finish(self) -> Result<()> {
        if let Some(folder) = self.svg {
            fs::create_dir_all(&folder)?;
            for (name, plot) in self.plots {
                fs::write(folder.join(format!("{name}.svg")), plot)?;
            }
        }
        if let Some(file) = self.json {
            fs::write(file, self.lines)?;
        }
        Ok(())
    }
}
