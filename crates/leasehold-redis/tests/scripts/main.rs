//! The scripts on real servers, without the client around them: what each answers, what it writes and
//! how many calls it makes, and random programs step by step beside `LockMachine`, the reference.
//! One trial per case and kind of server; where a server is missing, its trials are listed as ignored.

#![forbid(unsafe_code)]

mod cost;
mod doubles;
mod layout;
mod life;
mod memory;
mod program;
mod reference;
mod store;
mod told;
mod turns;

use std::sync::OnceLock;

use libtest_mimic::{Arguments, Completion, Trial};
use test_servers::{Flavor, Server};

/// A name, and what is tested on a server that others use too.
type Test = (&'static str, fn(&Server));
/// The same for a test that starts a server as it needs one.
type Own = (&'static str, fn(Flavor));

/// Some trials wait for a time to pass, so more of them run than there are processors.
const AT_A_TIME: usize = 4;

fn main() {
    let mut trials = Vec::new();
    for flavor in Flavor::ALL {
        let missing = flavor.installed().err().map(|missing| missing.to_string());
        for (name, test) in [life::TESTS, doubles::TESTS, told::TESTS, turns::TESTS, layout::TESTS]
            .into_iter()
            .flatten()
        {
            trials.push(trial(name, flavor, missing.clone(), move || test(shared(flavor))));
        }
        for (name, test) in [memory::TESTS, reference::TESTS, cost::TESTS].into_iter().flatten() {
            trials.push(trial(name, flavor, missing.clone(), move || test(flavor)));
        }
        let clock = "this build of Redis does not start with a clock to step";
        let no_clock = (flavor == Flavor::Redis70).then(|| clock.to_owned());
        for (name, test) in [reference::TESTS_OF_TIME, told::TESTS_OF_TIME, turns::TESTS_OF_TIME]
            .into_iter()
            .flatten()
        {
            let missing = missing.clone().or(no_clock.clone());
            trials.push(trial(name, flavor, missing, move || test(flavor)));
        }
    }
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(AT_A_TIME);
    libtest_mimic::run(&arguments, trials).exit();
}

/// A test, or what it needs and is not there.
fn trial(
    name: &str,
    flavor: Flavor,
    missing: Option<String>,
    test: impl FnOnce() + Send + 'static,
) -> Trial {
    let run = move || {
        if let Some(missing) = missing {
            return Ok(Completion::ignored_with(format!("not run here: {missing}")));
        }
        test();
        Ok(Completion::Completed)
    };
    Trial::ignorable_test(name, run).with_kind(flavor.name())
}

/// One server of each kind for all tests that need nothing special. It ends with this process.
fn shared(flavor: Flavor) -> &'static Server {
    static SERVERS: [OnceLock<Server>; 3] = [const { OnceLock::new() }; 3];
    let index = Flavor::ALL.iter().position(|other| *other == flavor).expect("it is one of all");
    SERVERS[index].get_or_init(|| Server::start(flavor).expect("it is installed"))
}
