//! Broken stores that the kit must reject: one trial per fault. A trial passes iff the case that
//! names the fault passes on the healthy memory store and fails on the broken one.
//!
//! A store behind a wire, which cannot prove a death, is not broken; it runs here through all cases,
//! so that the opposites of capabilities and the cases that break a store run somewhere on a clock
//! that only the kit moves.
#![forbid(unsafe_code)]

mod clients;
mod leases;
mod mutant;
mod queue;
mod remote;
mod store;
mod tokens;

use std::panic::{self, AssertUnwindSafe};

use leasehold_conformance::{Bench, Case, StoreUnderTest, cases};
use libtest_mimic::{Arguments, Failed, Trial};

use mutant::{Fault, MutantStore};

/// A fault, the case that must find it, the store without it, and the store that has it.
struct Planted {
    name: &'static str,
    found_by: &'static str,
    healthy: fn() -> Box<dyn StoreUnderTest>,
    store: fn() -> Box<dyn StoreUnderTest>,
}

impl Planted {
    const fn new<F: Fault + Default>(name: &'static str, found_by: &'static str) -> Self {
        Self {
            name,
            found_by,
            healthy: || Box::new(MutantStore::new(Healthy)),
            store: || Box::new(MutantStore::new(F::default())),
        }
    }
}

/// No fault: the control.
#[derive(Debug, Default)]
struct Healthy;

impl Fault for Healthy {}

fn main() {
    // The failures of broken stores are what is wanted here; a trial tells its own.
    panic::set_hook(Box::new(|_| {}));
    let themes = [
        queue::FAULTS,
        leases::FAULTS,
        tokens::FAULTS,
        clients::FAULTS,
        store::FAULTS,
        remote::FAULTS,
    ];
    let mut trials: Vec<Trial> = themes.into_iter().flatten().map(trial).collect();
    trials.extend(leasehold_conformance::trials(&remote::BehindAWire));
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

fn trial(planted: &'static Planted) -> Trial {
    let trial = Trial::test(planted.name, move || {
        let case = cases()
            .into_iter()
            .find(|case| case.name == planted.found_by)
            .ok_or_else(|| Failed::from(format!("there is no case {}", planted.found_by)))?;
        passes(case, (planted.healthy)())
            .map_err(|why| format!("{} fails on the healthy store: {why}", case.name))?;
        match passes(case, (planted.store)()) {
            Ok(()) => Err(format!("{} passes on the broken store", case.name).into()),
            Err(_) => Ok(()),
        }
    });
    trial.with_kind("mutant")
}

fn passes(case: Case, store: Box<dyn StoreUnderTest>) -> Result<(), String> {
    let run = AssertUnwindSafe(|| (case.run)(&Bench::new(store)));
    let outcome = panic::catch_unwind(run).map_err(|payload| {
        let text = payload.downcast_ref::<String>().cloned();
        text.or_else(|| payload.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default()
    })?;
    // On the healthy store a case that cannot run fails the trial. A broken store is made of the
    // same, so this never stands for a fault that was found.
    outcome.map_err(|cannot| format!("not run: {cannot}"))
}
