//! `cargo xtask verify`: everything that can be checked without running the code. Writes nothing.

use std::time::Instant;

use cargo_metadata::{CargoOpt, MetadataCommand};

use crate::Result;
use crate::checks;
use crate::checks::dependencies::{self, Package};
use crate::repo::{Finding, Repo, root};
use crate::steps::{Steps, exists};

pub(crate) fn run() -> Result<bool> {
    let mut steps = Steps::default();
    let repo = Repo::read()?;
    for (name, check) in checks::ALL {
        report(&mut steps, name, || Ok(check(&repo)))?;
    }
    report(&mut steps, "dependency policy (deny.toml)", || {
        println!(
            "cargo-deny: not run here (its checks of licences, bans and sources are done from \
             deny.toml; advisories: not run here)"
        );
        dependencies(&repo)
    })?;
    cargo_steps(&mut steps)?;
    Ok(steps.summary())
}

/// Runs one check, prints what it found and notes whether it passed.
fn report(
    steps: &mut Steps,
    name: &str,
    check: impl FnOnce() -> Result<Vec<Finding>>,
) -> Result<()> {
    println!("\n--- {name}");
    let start = Instant::now();
    let findings = check()?;
    for finding in &findings {
        println!("{finding}");
    }
    let passed = findings.iter().all(|finding| finding.is_warning);
    steps.record(name.to_owned(), start.elapsed(), passed);
    Ok(())
}

fn dependencies(repo: &Repo) -> Result<Vec<Finding>> {
    let deny = repo.file("deny.toml").ok_or("deny.toml is missing")?;
    let metadata = MetadataCommand::new()
        .current_dir(root())
        .features(CargoOpt::AllFeatures)
        .other_options(["--locked".to_owned()])
        .exec();
    Ok(match metadata {
        Ok(metadata) => dependencies::check(deny, &Package::all(&metadata)),
        Err(error) => vec![deny.finding(format!("cannot be checked: {error}"))],
    })
}

fn cargo_steps(steps: &mut Steps) -> Result<()> {
    steps.cargo(&["fmt", "--all", "--check"], &[])?;
    // Workspaces of their own, which `--all` does not reach.
    for manifest in ["benches/Cargo.toml", "fuzz/Cargo.toml"] {
        if exists(manifest) {
            steps.cargo(&["fmt", "--manifest-path", manifest, "--check"], &[])?;
        }
    }
    let all = ["clippy", "--workspace", "--all-targets", "--all-features", "--locked"];
    steps.cargo(&[&all[..], &["--", "-D", "warnings"]].concat(), &[])?;
    let bare = ["clippy", "-p", "leasehold", "--no-default-features", "--locked"];
    steps.cargo(&[&bare[..], &["--", "-D", "warnings"]].concat(), &[])?;
    let docs = ["doc", "--workspace", "--no-deps", "--all-features", "--locked"];
    steps.cargo(&docs, &[("RUSTDOCFLAGS", "-D warnings")])?;
    Ok(())
}
