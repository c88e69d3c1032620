//! Random programs against a naive model.

mod naive;
mod pair;
mod program;

use proptest::prelude::*;

use crate::{
    pair::Pair,
    program::{Step, step},
};

/// Nothing is written into the tree: a failure prints its shortest program.
fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases(512))]

    #[test]
    fn random_programs_do_what_the_naive_model_does(
        capacity in 1..9_u32,
        steps in prop::collection::vec(step(), 1..150),
    ) {
        let mut pair = Pair::new(capacity);
        for step in &steps {
            pair.run(step);
        }
        // Whatever happened, releasing all that is held lets everybody in, and then all is free.
        while !pair.model.holders.is_empty() || !pair.model.waiters.is_empty() {
            if pair.model.upgrade_pending() {
                pair.cancel(pair.model.waiters[0].id);
            }
            pair.run(&Step::Release { holder: 0 });
        }
        prop_assert!(pair.queue.is_idle());
    }
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn a_deep_queue_does_what_the_naive_model_does(
        weights in prop::collection::vec(1..4_u32, 100..300),
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let mut pair = Pair::new(4);
        for weight in weights {
            pair.run(&Step::Enqueue { weight, upgradable: false });
        }
        for step in &steps {
            pair.run(step);
        }
        pair.run(&Step::Drain);
        // The slab is reset here (it was large); nothing old may shine through.
        for step in &steps {
            pair.run(step);
        }
    }
}
