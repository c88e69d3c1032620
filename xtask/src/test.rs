//! `cargo xtask test`: what CI runs.

use clap::Args;

use crate::Result;
use crate::loom;
use crate::servers;
use crate::steps::Steps;

#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    servers: servers::Install,
}

pub(crate) fn run(options: &Options) -> Result<bool> {
    let env = [("RUST_BACKTRACE", "1")];
    let mut steps = Steps::default();
    // A missing server would leave its tests ignored, and a green run would say nothing of it.
    if !servers::step(&mut steps, options.servers) {
        return Ok(steps.summary());
    }
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
        // As users build it: the optimizer has been wrong about these sources before.
        let optimized = [
            "test",
            "--release",
            "-p",
            "leasehold-sync",
            "--all-features",
            "--locked",
            "--no-fail-fast",
            "--tests",
        ];
        steps.cargo(&optimized, &env)?;
        loom::step(&mut steps, loom::PREEMPTIONS_CI)?;
    }
    Ok(steps.summary())
}
