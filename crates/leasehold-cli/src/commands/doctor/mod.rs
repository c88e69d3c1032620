//! `leasehold doctor`: whether a store is in good health.

#[cfg(feature = "redis")]
mod redis;
mod sqlite;
mod trial;

use std::{fmt::Write as _, io};

use serde::Serialize;

use crate::{
    args::DoctorArgs,
    exit::{Exit, Failure},
    report,
    settings::Settings,
    store::Place,
    talk,
};

/// One thing that was looked at.
#[derive(Debug, Serialize)]
pub(crate) struct Finding {
    /// What was looked at.
    what: &'static str,
    healthy: bool,
    /// What it is like.
    found: String,
    /// What to do about it, where it is not healthy or could be better.
    advice: Option<String>,
}

impl Finding {
    fn good(what: &'static str, found: impl Into<String>) -> Self {
        Self { what, healthy: true, found: found.into(), advice: None }
    }

    fn weak(what: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { what, healthy: true, found: found.into(), advice: Some(advice.into()) }
    }

    fn bad(what: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { what, healthy: false, found: found.into(), advice: Some(advice.into()) }
    }
}

/// The document of `doctor --json`.
#[derive(Serialize)]
struct Document<'a> {
    store: &'a str,
    healthy: bool,
    findings: &'a [Finding],
}

/// Looks at the store and tells all that was found.
pub(crate) async fn doctor(args: DoctorArgs, settings: &Settings) -> Result<Exit, Failure> {
    let place = Place::of(settings)?;
    let findings = match &place {
        Place::Sqlite { path, .. } => sqlite::findings(&place, path).await,
        #[cfg(feature = "redis")]
        Place::Redis { .. } => redis::findings(&place).await,
    };
    let healthy = findings.iter().all(|finding| finding.healthy);
    if args.json {
        let document = Document { store: place.as_str(), healthy, findings: &findings };
        report::print_json(&document)?;
    } else {
        report::print(&table(&place, &findings, talk::has_colour(&io::stdout())))?;
    }
    Ok(if healthy { Exit::Success } else { Exit::NotHealthy })
}

fn table(place: &Place, findings: &[Finding], colour: bool) -> String {
    let width = findings.iter().map(|finding| finding.what.len()).max().unwrap_or(0);
    let mut text = format!("store {}\n", place.as_str());
    for Finding { what, healthy, found, advice } in findings {
        let (word, style) = match (healthy, advice) {
            (true, None) => ("ok ", "\x1b[32m"),
            (true, Some(_)) => ("see", "\x1b[33m"),
            (false, _) => ("BAD", "\x1b[1;31m"),
        };
        let word = if colour { format!("{style}{word}\x1b[0m") } else { word.to_owned() };
        let _ = writeln!(text, "{word}  {what:<width$}  {found}");
        if let Some(advice) = advice {
            let _ = writeln!(text, "     {:<width$}  {advice}", "");
        }
    }
    text
}
