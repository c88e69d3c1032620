//! What must not grow with what else is in the store. The peers are the same work without it.

use std::time::Duration;

use leasehold::Lease;
use leasehold_benches::{Report, Unit, runtime};
use tokio::runtime::Runtime;

use crate::one_process::{Store, pairs};

const MANY: usize = 10_000;

pub(crate) fn measure(report: &mut Report) {
    let runtime = runtime(2);
    let runtime = &runtime;
    let work = "1 task, 10,000 other names held";
    report.measure(work, Unit::PAIRS_PER_SECOND, None, |row| {
        let (store, alone) = (Store::fresh(runtime), Store::fresh(runtime));
        let held = others(runtime, &store);
        row.ours(move |run| {
            // Moved in, so that they are held as long as this is measured.
            assert_eq!(held.len(), MANY, "the others are held");
            one_task(runtime, run, &store)
        });
        row.peer("alone", move |run| one_task(runtime, run, &alone));
    });
    let work = "1 task, 10,000 names used before";
    report.measure(work, Unit::PAIRS_PER_SECOND, None, |row| {
        let (store, alone) = (Store::fresh(runtime), Store::fresh(runtime));
        drop(others(runtime, &store));
        row.ours(move |run| one_task(runtime, run, &store));
        row.peer("alone", move |run| one_task(runtime, run, &alone));
    });
    let work = "hand-off, 10,000 waiters queued";
    report.measure(work, Unit::PAIRS_PER_SECOND, None, |row| {
        let (many, few) = (Store::fresh(runtime), Store::fresh(runtime));
        row.ours(move |run| queued(runtime, run, &many, MANY));
        row.peer("64 waiters", move |run| queued(runtime, run, &few, 64));
    });
}

fn one_task(runtime: &Runtime, run: Duration, store: &Store) -> f64 {
    pairs(runtime, run, &[store.mutex("orders")]).turns_per_second()
}

fn queued(runtime: &Runtime, run: Duration, store: &Store, tasks: usize) -> f64 {
    pairs(runtime, run, &vec![store.mutex("orders"); tasks]).turns_per_second()
}

fn others(runtime: &Runtime, store: &Store) -> Vec<Lease> {
    let names = (0..MANY).map(|index| format!("other {index}"));
    let mutexes: Vec<_> = names.map(|name| store.mutex(&name)).collect();
    let task = runtime.spawn(async move {
        let mut held = Vec::new();
        for mutex in mutexes {
            held.push(mutex.lock().await.expect("free"));
        }
        held
    });
    runtime.block_on(task).expect("no panic")
}
