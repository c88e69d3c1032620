//! One process: acquisitions with their releases per second.

use std::time::{Duration, Instant};

use leasehold::{LockManager, NamedMutex};
use leasehold_benches::{Contest, Report, Unit, compete, runtime};
use tokio::runtime::Runtime;

use crate::{
    folder,
    locker::{Kind, Locker},
    url,
};

const TASKS: usize = 64;

pub(crate) fn measure(report: &mut Report) {
    let runtime = runtime(2);
    let runtime = &runtime;
    report.measure("1 task pairs/s", Unit::PAIRS_PER_SECOND, Some(10_000.0), |row| {
        let store = Store::fresh(runtime);
        row.ours(move |run| pairs(runtime, run, &[store.mutex("orders")]).turns_per_second());
        row.floor(|run| alone(Kind::Flock, run));
        row.peer(Kind::Naive.name(), |run| alone(Kind::Naive, run));
    });
    let work = "64 tasks distinct names pairs/s";
    report.measure(work, Unit::PAIRS_PER_SECOND, Some(15_000.0), |row| {
        let store = Store::fresh(runtime);
        row.ours(move |run| {
            let names = (0..TASKS).map(|index| store.mutex(&format!("orders {index}")));
            pairs(runtime, run, &names.collect::<Vec<_>>()).turns_per_second()
        });
        row.floor(|run| alone(Kind::Flock, run));
    });
    report.measure("64 tasks one name pairs/s", Unit::PAIRS_PER_SECOND, None, |row| {
        let store = Store::fresh(runtime);
        row.ours(move |run| {
            let name = vec![store.mutex("orders"); TASKS];
            pairs(runtime, run, &name).turns_per_second()
        });
        row.floor(|run| alone(Kind::Flock, run));
    });
}

/// A fresh store with a manager.
pub(crate) struct Store {
    locks: LockManager,
    _folder: tempfile::TempDir,
}

impl Store {
    pub(crate) fn fresh(runtime: &Runtime) -> Self {
        let folder = folder().expect("a folder in the target directory");
        let locks = runtime.block_on(leasehold::connect(&url(folder.path())));
        Self { locks: locks.expect("a fresh store opens"), _folder: folder }
    }

    pub(crate) fn mutex(&self, name: &str) -> NamedMutex {
        self.locks.mutex(name).expect("a valid name")
    }
}

/// One task per handle.
pub(crate) fn pairs(runtime: &Runtime, run: Duration, mutexes: &[NamedMutex]) -> Contest {
    compete(runtime, run, mutexes.len(), |index, turns| {
        let mutex = mutexes[index].clone();
        async move {
            while turns.go_on() {
                let lease = mutex.lock().await.expect("in time");
                lease.release().await.expect("held");
                turns.done();
            }
        }
    })
}

/// Pairs per second of a lock that nobody else uses, on a plain thread.
fn alone(kind: Kind, run: Duration) -> f64 {
    let folder = folder().expect("a folder in the target directory");
    let mut locker = Locker::open(kind, folder.path()).expect("opens");
    let (start, mut pairs) = (Instant::now(), 0_u64);
    while start.elapsed() < run {
        for _ in 0..32 {
            locker.lock(|| ()).expect("free");
            locker.unlock().expect("held");
        }
        pairs += 32;
    }
    pairs as f64 / start.elapsed().as_secs_f64()
}
