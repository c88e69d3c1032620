//! The servers that tests, soak and benchmarks need.

use std::time::Instant;

use clap::Args;

use crate::Result;
use crate::steps::Steps;

#[derive(Args, Clone, Copy)]
pub(crate) struct Install {
    /// Fetch the servers that are missing, into the target folder; CI=true does the same.
    #[arg(long)]
    pub(crate) install: bool,
}

/// Fetches what is missing if it may, as one step; else says what is missing and fails.
pub(crate) fn step(steps: &mut Steps, options: Install) -> bool {
    println!("\n--- servers for tests");
    let start = Instant::now();
    let provided = provide(options);
    if let Err(error) = &provided {
        println!("{error}");
    }
    steps.record("servers for tests".into(), start.elapsed(), provided.is_ok())
}

/// As [`step`], where nothing else is summed up.
pub(crate) fn provide(options: Install) -> Result<()> {
    if options.install || is_ci(std::env::var("CI").ok().as_deref()) {
        return Ok(test_servers::install()?);
    }
    let missing = test_servers::missing();
    if missing.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = missing.iter().map(ToString::to_string).collect();
    Err(lines.join("\n").into())
}

fn is_ci(value: Option<&str>) -> bool {
    value.is_some_and(|value| value.eq_ignore_ascii_case("true"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ci_fetches_without_being_told_to() {
        assert!(is_ci(Some("true")) && is_ci(Some("True")));
        assert!(!is_ci(None) && !is_ci(Some("")) && !is_ci(Some("false")));
    }
}
