//! `cargo xtask test`: what CI runs.

use clap::Args;

use crate::Result;
use crate::loom;
use crate::steps::Steps;

#[derive(Args)]
pub(crate) struct Options {
    /// Allow installing what the tests need; today they need nothing that cargo does not build.
    #[arg(long)]
    install: bool,
}

pub(crate) fn run(options: &Options) -> Result<bool> {
    if options.install {
        println!("--install: nothing to install, no test needs a server yet");
    }
    let env = [("RUST_BACKTRACE", "1")];
    let mut steps = Steps::default();
    // The programs first: tests start them as processes, also from other packages. With all
    // features, so that the tests below reuse what is built here.
    let built =
        steps.cargo(&["build", "--workspace", "--bins", "--all-features", "--locked"], &env)?;
    if built {
        // Doc-tests are part of it.
        let all = ["test", "--workspace", "--all-features", "--locked", "--no-fail-fast"];
        steps.cargo(&all, &env)?;
        let bare =
            ["test", "-p", "leasehold", "--no-default-features", "--locked", "--no-fail-fast"];
        steps.cargo(&bare, &env)?;
        loom::step(&mut steps, loom::PREEMPTIONS_CI)?;
    }
    Ok(steps.summary())
}
