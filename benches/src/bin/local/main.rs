//! `cargo xtask bench local`: the plain locks side by side with their peers.
//!
//! Every contender of a row runs once per round, so that whatever the machine does meanwhile hits
//! all of them; a row shows medians over the rounds. Figures of one run can be compared, figures
//! of different runs cannot.
//!
//! Arguments: `--json FILE` (one line per row), `--svg DIR` (one plot per row), `--quick` (few and
//! short rounds), `--only TEXT` (rows whose name contains it), `--rounds N`.

mod contended;
mod plot;
mod row;
mod uncontended;

use std::{error::Error, fs, path::PathBuf};

use crate::row::{Budget, Row};

struct Args {
    json: Option<PathBuf>,
    svg: Option<PathBuf>,
    only: Option<String>,
    budget: Budget,
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = args()?;
    let mut lines = String::new();
    if let Some(folder) = &args.svg {
        fs::create_dir_all(folder)?;
    }
    println!("{:44} {:>8}  {:>6}  {:>7}  peers, ns", "work", "ours, ns", "best", "floor");
    let rows = uncontended::rows().into_iter().chain(contended::rows());
    for mut row in rows {
        if args.only.as_ref().is_some_and(|only| !row.work.contains(only.as_str())) {
            continue;
        }
        let figures = row.measure(args.budget);
        println!("{figures}");
        lines.push_str(&figures.json());
        lines.push('\n');
        if let Some(folder) = &args.svg {
            fs::write(
                folder.join(format!("{}.svg", plot::file_name(&row.work))),
                plot::svg(&figures),
            )?;
        }
    }
    if let Some(file) = args.json {
        fs::write(file, lines)?;
    }
    Ok(())
}

fn args() -> Result<Args, Box<dyn Error>> {
    let mut parsed = Args { json: None, svg: None, only: None, budget: Budget::FULL };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} needs a value"));
        match arg.as_str() {
            "--json" => parsed.json = Some(value()?.into()),
            "--svg" => parsed.svg = Some(value()?.into()),
            "--only" => parsed.only = Some(value()?),
            "--rounds" => parsed.budget.rounds = value()?.parse::<usize>()?.max(1),
            "--quick" => parsed.budget = Budget::QUICK,
            _ => return Err(format!("unknown argument {arg}").into()),
        }
    }
    Ok(parsed)
}

/// The name of this crate's own contender.
pub(crate) const OURS: &str = "leasehold-sync";

pub(crate) type Rows = Vec<Row>;
