//! Servers start, answer, stop, forget and end with their handles; the proxy fails as it is told to.
//! One trial per kind of server; where a server is missing, its trials are listed as ignored.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "a child tells the test something")]

mod fleet;
mod proxy;
mod server;

use std::env;

use libtest_mimic::{Arguments, Trial};
use test_servers::Flavor;

/// Names the server that this program is to hold, when a test starts it again.
const HOLD: &str = "TEST_SERVERS_HOLD";

/// A name, and what is tested on each kind of server.
type Test = (&'static str, fn(Flavor));

fn main() {
    if let Ok(flavor) = env::var(HOLD) {
        server::hold(&flavor);
    }
    let mut trials = Vec::new();
    for flavor in Flavor::ALL {
        let mut tests = [server::TESTS, proxy::TESTS, fleet::TESTS].concat();
        if flavor != Flavor::Redis70 {
            tests.push(("a_fake_clock_steps_by_hours", server::a_fake_clock_steps_by_hours));
        }
        for (name, test) in tests {
            let run = move || {
                test(flavor);
                Ok(())
            };
            let trial = Trial::test(name, run).with_kind(flavor.name());
            trials.push(trial.with_ignored_flag(flavor.installed().is_err()));
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
