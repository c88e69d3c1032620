//! Acquisitions with their releases per second, where nobody else wants the lock.

use std::time::Duration;

use leasehold_benches::{Goal, Report, Unit, compete};
use test_servers::Server;
use tokio::runtime::Runtime;

use crate::{
    locker::{Distributed, Lock as _, Locks, Ours, Rslock, SetNx},
    runtime,
};

struct Work {
    name: &'static str,
    tasks: usize,
    workers: usize,
    /// The goal, as a share of the floor.
    share: f64,
}

const WORKS: [Work; 3] = [
    Work { name: "one task, pairs/s", tasks: 1, workers: 2, share: 0.85 },
    Work { name: "64 tasks, one thread, pairs/s", tasks: 64, workers: 1, share: 0.65 },
    Work { name: "64 tasks, two workers, pairs/s", tasks: 64, workers: 2, share: 0.55 },
];

pub(crate) fn measure(report: &mut Report, server: &Server) {
    let url = server.url();
    for work in WORKS {
        let runtime = runtime(work.workers);
        let goal = Goal::TimesFloor(work.share);
        let (runtime, url) = (&runtime, url.as_str());
        report.measure(work.name, Unit::PAIRS_PER_SECOND, goal, |row| {
            row.ours(contender::<Ours>(runtime, url, work.tasks));
            row.floor(contender::<SetNx>(runtime, url, work.tasks));
            row.peer(Rslock::NAME, contender::<Rslock>(runtime, url, work.tasks));
            row.peer(Distributed::NAME, contender::<Distributed>(runtime, url, work.tasks));
        });
    }
}

/// All tasks of a contender share one client, and each has a name of its own.
fn contender<L: Locks>(runtime: &Runtime, url: &str, tasks: usize) -> impl FnMut(Duration) -> f64 {
    let locks = runtime.block_on(L::connect(url));
    move |run| {
        let names = (0..tasks).map(|index| format!("orders {index}"));
        let each: Vec<_> = names.map(|name| runtime.block_on(locks.lock(&name))).collect();
        let contest = compete(runtime, run, tasks, |index, turns| {
            let mut lock = each[index].clone();
            async move {
                while turns.go_on() {
                    let held = lock.lock().await;
                    lock.unlock(held).await;
                    turns.done();
                }
            }
        });
        contest.turns_per_second()
    }
}
