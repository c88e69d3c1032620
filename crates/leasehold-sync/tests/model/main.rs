//! Random programs over the locks, step by step against the naive model of `leasehold-queue` and
//! against `leasehold-queue` itself: the ring of this crate and the slab of that one are proven
//! equal by the same model. A million steps in all.
#![cfg(not(leasehold_loom))]

#[allow(dead_code, reason = "shared with the tests of leasehold-queue, which use all of it")]
#[path = "../../../leasehold-queue/tests/model/naive.rs"]
mod naive;
mod program;
mod rw_lock;
mod semaphore;
mod twin;

use crate::program::{Dice, Step};

const PROGRAMS: u64 = 2_500;
const STEPS: usize = 200;

#[test]
fn a_semaphore_does_what_the_model_does() {
    for_every_program(8, semaphore::run);
}

#[test]
fn a_read_write_lock_does_what_the_model_does() {
    for_every_program(5, rw_lock::run);
}

/// Half a million steps. Fresh programs every time; a failure names its seed, and
/// `LEASEHOLD_MODEL_SEED` runs that one alone.
fn for_every_program(capacity_max: u32, run: impl Fn(u32, &[Step])) {
    let chosen = std::env::var("LEASEHOLD_MODEL_SEED").ok();
    let seeds = match chosen.map(|seed| seed.parse().expect("a number")) {
        Some(seed) => seed..seed + 1,
        None => {
            let first = fresh_seed();
            first..first + PROGRAMS
        }
    };
    for seed in seeds {
        let failed = NamesSeed(seed);
        let mut dice = Dice::new(seed);
        let capacity = 1 + dice.below(capacity_max);
        let steps: Vec<Step> = (0..STEPS).map(|_| dice.step()).collect();
        run(capacity, &steps);
        drop(failed);
    }
}

fn fresh_seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0) >> 1
}

struct NamesSeed(u64);

impl Drop for NamesSeed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("LEASEHOLD_MODEL_SEED={}", self.0);
        }
    }
}
