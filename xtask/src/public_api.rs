//! `cargo xtask public-api`: says whether `docs/public-api` is the public API, or writes it.

use std::{collections::BTreeMap, fs};

use clap::Args;

use crate::{
    Result,
    checks::public_api,
    repo::{Repo, root},
};

#[derive(Args)]
pub(crate) struct Options {
    /// Write what the sources say, to be read and committed.
    #[arg(long)]
    bless: bool,
}

pub(crate) fn run(options: &Options) -> Result<bool> {
    let repo = Repo::read()?;
    if !options.bless {
        let findings = public_api::check(&repo);
        findings.iter().for_each(|finding| println!("{finding}"));
        return Ok(findings.is_empty());
    }
    let made: BTreeMap<_, _> =
        public_api::listings(&repo).map_err(|finding| finding.to_string())?;
    for (path, text) in made {
        let path = root().join(path);
        fs::create_dir_all(path.parent().expect("a folder"))?;
        fs::write(path, text)?;
    }
    Ok(true)
}
