//! Cases as trials with the arguments, the list and the summary line of Rust's own test harness.

use std::{
    env, process,
    sync::mpsc::{RecvTimeoutError, Sender, channel},
    thread,
    time::Duration,
};

use libtest_mimic::{Arguments, Completion, Trial};

use crate::{Bench, Case, Fixture, cases, holder};

/// No case takes this long, on a machine however busy.
const CASE_BOUND: Duration = Duration::from_secs(180);

/// One named trial per case, marked with the store's name. A case that needs what the store lacks
/// is counted as ignored and says what is missing; its opposite, where there is one, is a case of
/// its own that runs. So is a case that has to break the store in a way that it cannot be broken.
pub fn trials(fixture: &'static (dyn Fixture + 'static)) -> Vec<Trial> {
    if let Some(missing) = fixture.missing() {
        return cases().into_iter().map(|case| missing_trial(fixture, case, &missing)).collect();
    }
    let capabilities = fixture.fresh().client().capabilities();
    cases().into_iter().map(|case| trial(fixture, case, case.needs.met_by(capabilities))).collect()
}

/// Runs all cases on the fixture's stores and ends the process with the harness's exit code; or
/// runs as the holder program when this process was started by
/// [`holder::this_program`].
///
/// # Panics
/// When the holder's address is not UTF-8.
pub fn main(fixture: &'static (dyn Fixture + 'static)) -> ! {
    main_of(&[fixture])
}

/// The same for several fixtures, whose trials run in one process. The holder of each is reached by
/// the first one's [`connect`](Fixture::connect).
///
/// # Panics
/// When the holder's address is not UTF-8, or without a fixture.
pub fn main_of(fixtures: &[&'static (dyn Fixture + 'static)]) -> ! {
    if let Some(address) = env::var_os(holder::ADDRESS_VARIABLE) {
        let address = address.into_string().expect("the address is UTF-8");
        let first = fixtures.first().expect("there is a fixture");
        holder::main(&address, |address| first.connect(address));
    }
    let trials = fixtures.iter().flat_map(|fixture| trials(*fixture)).collect();
    let mut arguments = Arguments::from_args();
    let at_a_time = fixtures.iter().filter_map(|fixture| fixture.at_a_time()).max();
    arguments.test_threads = arguments.test_threads.or(at_a_time);
    libtest_mimic::run(&arguments, trials).exit()
}

fn missing_trial(fixture: &'static dyn Fixture, case: Case, missing: &str) -> Trial {
    let reason = format!("not run here: {missing}");
    Trial::ignorable_test(case.name, move || Ok(Completion::ignored_with(reason)))
        .with_kind(fixture.name())
}

fn trial(fixture: &'static (dyn Fixture + 'static), case: Case, runs: bool) -> Trial {
    let trial = Trial::ignorable_test(case.name, move || {
        if !runs {
            return Ok(Completion::ignored_with(format!("needs {}", case.needs.as_str())));
        }
        let _guard = Watchdog::start(case.name);
        match (case.run)(&Bench::new(fixture.fresh_for(case.name))) {
            Ok(()) => Ok(Completion::Completed),
            Err(cannot) => Ok(Completion::ignored_with(format!("not run here: {cannot}"))),
        }
    });
    trial.with_kind(fixture.name())
}

/// Ends the whole run, with the name of the case, when a store keeps a case for ever. All waits of
/// the kit have bounds, but a store may spin inside a call that does not return.
struct Watchdog(#[expect(dead_code, reason = "its drop is what counts")] Sender<()>);

impl Watchdog {
    fn start(case: &'static str) -> Self {
        let (alive, dropped) = channel::<()>();
        thread::spawn(move || {
            if dropped.recv_timeout(CASE_BOUND) == Err(RecvTimeoutError::Timeout) {
                eprintln!("case {case} has not ended within {CASE_BOUND:?}; the run is over");
                process::exit(101);
            }
        });
        Self(alive)
    }
}
