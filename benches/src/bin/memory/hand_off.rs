//! Many tasks, one name. The holder yields inside of its section, so everybody else queues up and
//! every release hands the lock over.

use std::{sync::Arc, time::Duration};

use leasehold::{LockManager, NamedMutex};
use leasehold_benches::{Contest, Report, Unit, compete, runtime};
use tokio::{runtime::Runtime, task::yield_now, time::timeout};

use crate::MINUTE;

pub(crate) fn measure(report: &mut Report) {
    for workers in [1, 2] {
        let runtime = runtime(workers);
        for tasks in [8, 64] {
            let threads = if workers == 1 { "thread" } else { "threads" };
            let work = format!("hand-off, {tasks} tasks, {workers} {threads}");
            report.measure(&work, Unit::NS, None, |row| {
                let orders = LockManager::in_memory().mutex("orders").expect("a valid name");
                row.ours({
                    let runtime = &runtime;
                    move |run| hand_off(runtime, run, tasks, &orders).ns_per_turn()
                });
                let peer = Arc::new(tokio::sync::Mutex::new(()));
                let runtime = &runtime;
                row.peer("tokio+timeout", move |run| {
                    let contest = compete(runtime, run, tasks, |_, turns| {
                        let peer = Arc::clone(&peer);
                        async move {
                            while turns.go_on() {
                                let guard = timeout(MINUTE, peer.lock()).await.expect("in time");
                                yield_now().await;
                                drop(guard);
                                turns.done();
                            }
                        }
                    });
                    contest.ns_per_turn()
                });
            });
        }
    }
}

/// `tasks` tasks take turns with the lock.
pub(crate) fn hand_off(
    runtime: &Runtime,
    run: Duration,
    tasks: usize,
    mutex: &NamedMutex,
) -> Contest {
    compete(runtime, run, tasks, |_, turns| {
        let mutex = mutex.clone();
        async move {
            while turns.go_on() {
                let lease = mutex.lock().await.expect("in time");
                yield_now().await;
                lease.release().await.expect("held");
                turns.done();
            }
        }
    })
}
