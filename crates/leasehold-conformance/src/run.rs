//! Cases as trials with the arguments, the list and the summary line of Rust's own test harness.

use std::env;

use libtest_mimic::{Arguments, Completion, Trial};

use crate::{Bench, Case, Fixture, cases, holder};

/// One named trial per case, marked with the store's name. A case that needs what the store lacks
/// is counted as ignored and says what is missing; its opposite, where there is one, is a case of
/// its own that runs.
pub fn trials(fixture: &'static (dyn Fixture + 'static)) -> Vec<Trial> {
    let capabilities = fixture.fresh().client().capabilities();
    cases().into_iter().map(|case| trial(fixture, case, case.needs.met_by(capabilities))).collect()
}

/// Runs all cases on the fixture's stores and ends the process with the harness's exit code; or
/// runs as the holder program when this process was started by
/// [`holder::this_program`].
pub fn main(fixture: &'static (dyn Fixture + 'static)) -> ! {
    if let Some(address) = env::var_os(holder::ADDRESS_VARIABLE) {
        let address = address.into_string().expect("the address is UTF-8");
        holder::main(&address, |address| fixture.connect(address));
    }
    libtest_mimic::run(&Arguments::from_args(), trials(fixture)).exit()
}

fn trial(fixture: &'static (dyn Fixture + 'static), case: Case, runs: bool) -> Trial {
    let trial = Trial::ignorable_test(case.name, move || {
        if !runs {
            return Ok(Completion::ignored_with(format!("needs {}", case.needs.as_str())));
        }
        (case.run)(&Bench::new(fixture.fresh()));
        Ok(Completion::Completed)
    });
    trial.with_kind(fixture.name())
}
