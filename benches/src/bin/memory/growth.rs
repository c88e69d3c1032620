//! What must not grow with what else is there. The peers are the same work without it.

use std::time::Duration;

use leasehold::{Lease, LockManager, NamedMutex};
use leasehold_benches::{Report, Unit, compete, runtime};
use tokio::runtime::Runtime;

use crate::hand_off::hand_off;

const MANY: usize = 10_000;

pub(crate) fn measure(report: &mut Report) {
    let runtime = runtime(1);
    report.measure("pair with 10,000 other names held", Unit::NS, None, |row| {
        let locks = LockManager::in_memory();
        let held = others(&locks);
        let (ours, alone) = (mutex(&locks), mutex(&LockManager::in_memory()));
        let runtime = &runtime;
        row.ours(move |run| {
            // Moved in, so that they are held as long as this is measured.
            assert_eq!(held.len(), MANY, "the others are held");
            pair(runtime, run, &ours)
        });
        row.peer("alone", move |run| pair(runtime, run, &alone));
    });
    report.measure("pair after 10,000 used names", Unit::NS, None, |row| {
        let locks = LockManager::in_memory();
        drop(others(&locks));
        let (ours, alone) = (mutex(&locks), mutex(&LockManager::in_memory()));
        let runtime = &runtime;
        row.ours(move |run| pair(runtime, run, &ours));
        row.peer("alone", move |run| pair(runtime, run, &alone));
    });
    report.measure("hand-off with 10,000 waiters queued", Unit::NS, None, |row| {
        let (many, few) = (mutex(&LockManager::in_memory()), mutex(&LockManager::in_memory()));
        let runtime = &runtime;
        row.ours(move |run| hand_off(runtime, run, MANY, &many).ns_per_turn());
        row.peer("64 waiters", move |run| hand_off(runtime, run, 64, &few).ns_per_turn());
    });
}

fn mutex(locks: &LockManager) -> NamedMutex {
    locks.mutex("orders").expect("a valid name")
}

fn others(locks: &LockManager) -> Vec<Lease> {
    let names = (0..MANY).map(|index| format!("other {index}"));
    let lease = |name: String| {
        let mutex = locks.mutex(name).expect("a valid name");
        mutex.lock().blocking().expect("free")
    };
    names.map(lease).collect()
}

fn pair(runtime: &Runtime, run: Duration, mutex: &NamedMutex) -> f64 {
    let contest = compete(runtime, run, 1, |_, turns| {
        let mutex = mutex.clone();
        async move {
            while turns.go_on() {
                let lease = mutex.lock().await.expect("free");
                lease.release().await.expect("held");
                turns.done();
            }
        }
    });
    contest.ns_per_turn()
}
