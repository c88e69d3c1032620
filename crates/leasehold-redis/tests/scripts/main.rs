//! The scripts on real servers, without the client around them: what each answers, what it writes and
//! how many calls it makes, and random programs step by step beside `LockMachine`, the reference.
//! One trial per case and kind of server; where a server is missing, its trials are listed as ignored.

#![forbid(unsafe_code)]

mod cost;
mod layout;
mod life;
mod memory;
mod program;
mod reference;
mod store;

use std::sync::OnceLock;

use libtest_mimic::{Arguments, Trial};
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
        for (name, test) in [life::TESTS, layout::TESTS].into_iter().flatten() {
            trials.push(trial(name, flavor, move || test(shared(flavor))));
        }
        for (name, test) in [memory::TESTS, reference::TESTS, cost::TESTS].into_iter().flatten() {
            trials.push(trial(name, flavor, move || test(flavor)));
        }
    }
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(AT_A_TIME);
    libtest_mimic::run(&arguments, trials).exit();
}

fn trial(name: &str, flavor: Flavor, test: impl FnOnce() + Send + 'static) -> Trial {
    let run = move || {
        test();
        Ok(())
    };
    Trial::test(name, run).with_kind(flavor.name()).with_ignored_flag(flavor.installed().is_err())
}

/// One server of each kind for all tests that need nothing special. It ends with this process.
fn shared(flavor: Flavor) -> &'static Server {
    static SERVERS: [OnceLock<Server>; 3] = [const { OnceLock::new() }; 3];
    let index = Flavor::ALL.iter().position(|other| *other == flavor).expect("it is one of all");
    SERVERS[index].get_or_init(|| Server::start(flavor).expect("it is installed"))
}
