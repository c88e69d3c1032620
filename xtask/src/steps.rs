//! Runs cargo step by step, says how long each step took, and sums up at the end.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::Result;
use crate::repo;

/// The steps of one command, in the order they ran.
#[derive(Default)]
pub(crate) struct Steps {
    done: Vec<Step>,
}

struct Step {
    name: String,
    took: Duration,
    passed: bool,
}

impl Steps {
    /// Runs `cargo` with `args` in the root of the tree and says whether it succeeded.
    pub(crate) fn cargo(&mut self, args: &[&str], env: &[(&str, &str)]) -> Result<bool> {
        let name = format!("cargo {}", args.join(" "));
        println!("\n--- {name}");
        let start = Instant::now();
        let passed =
            cargo().args(args).envs(env.iter().copied()).current_dir(repo::root()).status()?;
        Ok(self.record(name, start.elapsed(), passed.success()))
    }

    /// Notes the outcome of a step and hands `passed` back.
    pub(crate) fn record(&mut self, name: String, took: Duration, passed: bool) -> bool {
        println!("{} in {:.1} s", if passed { "ok" } else { "FAILED" }, took.as_secs_f64());
        self.done.push(Step { name, took, passed });
        passed
    }

    /// Prints every step with its time; true if all passed.
    pub(crate) fn summary(&self) -> bool {
        println!("\n=== summary");
        for step in &self.done {
            let mark = if step.passed { "ok    " } else { "FAILED" };
            println!("{mark} {:>7.1} s  {}", step.took.as_secs_f64(), step.name);
        }
        let total: Duration = self.done.iter().map(|step| step.took).sum();
        let failed = self.done.iter().filter(|step| !step.passed).count();
        println!("{} steps, {failed} failed, {:.1} s", self.done.len(), total.as_secs_f64());
        failed == 0
    }
}

/// The cargo that started us, so that a toolchain chosen on the command line stays chosen.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Whether `path`, relative to the root of the tree, exists.
pub(crate) fn exists(path: impl AsRef<Path>) -> bool {
    repo::root().join(path).exists()
}
