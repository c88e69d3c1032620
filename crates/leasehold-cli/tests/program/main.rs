//! Drives the real program, one module per theme.

use std::process::ExitCode;

/// Lists the trials of a module. One that is left out is dead code, which is an error.
macro_rules! trials {
    ($($name:ident,)*) => {
        pub(crate) fn trials() -> Vec<libtest_mimic::Trial> {
            let all: &[(&str, fn())] = &[$((stringify!($name), $name)),*];
            let module = module_path!().rsplit("::").next().expect("a module has a name");
            all.iter().map(|(name, test)| $crate::common::trial(&format!("{module}::{name}"), *test)).collect()
        }
    };
}

mod common;
mod crash;
mod doctor;
mod environment;
mod exit_codes;
mod extras;
mod guardian;
mod hand_over;
mod lost_lease;
mod manual;
mod operate;
mod secrets;
mod session;
mod signals;
mod take_turns;
mod terminal;
mod tickets;
mod top;

fn main() -> ExitCode {
    let modules = [
        crash::trials(),
        doctor::trials(),
        environment::trials(),
        exit_codes::trials(),
        extras::trials(),
        guardian::trials(),
        hand_over::trials(),
        lost_lease::trials(),
        manual::trials(),
        operate::trials(),
        secrets::trials(),
        signals::trials(),
        take_turns::trials(),
        terminal::trials(),
        tickets::trials(),
        top::trials(),
    ];
    common::run(modules.into_iter().flatten().collect())
}
