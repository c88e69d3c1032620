//! `cargo xtask bench`: one suite of the `benches` workspace, which prints its own table.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use crate::Result;
use crate::repo;
use crate::servers;
use crate::steps::cargo;

#[derive(Args)]
pub(crate) struct Options {
    /// The suite: a program of `benches/`, such as `memory` or `redis`.
    suite: String,
    /// Also write the figures to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    #[command(flatten)]
    servers: servers::Install,
    /// Handed on to the suite as they are.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<OsString>,
}

pub(crate) fn run(options: &Options) -> Result<bool> {
    let manifest = repo::root().join("benches/Cargo.toml");
    if !manifest.exists() {
        return Err("there is no benches/Cargo.toml".into());
    }
    let needs_servers = options.suite == "redis";
    if needs_servers {
        servers::provide(options.servers)?;
    }
    // In the caller's directory, so that FILE means what it says there.
    Ok(cargo()
        .args(["run", "--release", "--manifest-path"])
        .arg(manifest)
        .args(needs_servers.then_some("--features=redis"))
        .args(["--bin", &options.suite, "--"])
        .args(suite_args(options))
        .status()?
        .success())
}

fn suite_args(options: &Options) -> Vec<OsString> {
    let json = options.json.iter().flat_map(|file| ["--json".into(), file.clone().into()]);
    json.chain(options.rest.iter().cloned()).collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    #[test]
    fn hands_every_argument_on_to_the_suite() {
        let line = Line::parse_from(["bench", "memory", "--json", "out.json", "--quick", "7"]);
        assert_eq!(line.options.suite, "memory");
        assert_eq!(suite_args(&line.options), ["--json", "out.json", "--quick", "7"]);

        let line = Line::parse_from(["bench", "sqlite", "--quick", "--json", "out.json"]);
        assert_eq!(suite_args(&line.options), ["--quick", "--json", "out.json"]);

        let line = Line::parse_from(["bench", "redis", "--install", "--only", "pairs"]);
        assert!(line.options.servers.install);
        assert_eq!(suite_args(&line.options), ["--only", "pairs"]);
    }
}
