//! The server's wall clock is stepped by hours (rules T3, L8).

use std::sync::Arc;

use test_servers::{Flavor, Server};

use crate::{
    Test, connect, is_free_in_the_end, run,
    witness::{Errors, Witness},
};

pub(crate) const TESTS: &[Test] = &[
    ("fences_grow_whatever_the_clock_says", fences_grow_whatever_the_clock_says),
    ("nobody_is_stranded_by_a_step", nobody_is_stranded_by_a_step),
];

/// Hours ahead, hours back, and back to the truth.
const STEPS: [i64; 6] = [7_200, -7_200, 0, 86_400, 3_600, 0];

fn fences_grow_whatever_the_clock_says(flavor: Flavor) {
    let server = Server::builder(flavor).fake_clock().start().expect("installed");
    run(async {
        let locks = connect(&server.url()).await;
        let (mutex, witness) = (locks.mutex("orders").expect("a name"), Witness::default());
        witness.visit(&mutex, Errors::Hidden).await;
        for step in STEPS {
            server.step_clock(step);
            witness.visit(&mutex, Errors::Hidden).await;
            witness.visit(&mutex, Errors::Hidden).await;
        }
    });
}

/// A step ahead may end leases before their time, and their holders learn it; whoever asks gets in.
/// It also ends what the store remembers of the name, so a step back may be a step behind the last
/// grant (rule L8): the fencing tokens of this are the other test's.
fn nobody_is_stranded_by_a_step(flavor: Flavor) {
    let server = Arc::new(Server::builder(flavor).fake_clock().start().expect("installed"));
    run(async {
        let locks = connect(&server.url()).await;
        let mut tasks = Vec::new();
        for _ in 0..4 {
            let mutex = locks.mutex("orders").expect("a name");
            tasks.push(tokio::spawn(async move {
                for _ in 0..40 {
                    let lease = mutex.lock().await.expect("granted in time");
                    lease.release().await.expect("answers");
                }
            }));
        }
        for step in STEPS {
            server.step_clock(step);
        }
        for task in tasks {
            task.await.expect("every turn was taken");
        }
        is_free_in_the_end(&server.url(), "orders").await;
    });
}
