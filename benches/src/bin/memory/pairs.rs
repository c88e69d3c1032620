//! One task, nobody else: an acquisition and its release.

use std::{hint::black_box, sync::Arc};

use leasehold::{LockManager, NamedMutex};
use leasehold_benches::{Report, Unit, compete, runtime};
use tokio::{runtime::Runtime, time::timeout};

use crate::{MINUTE, Map};

/// What design allows a pair.
const GOAL_NS: Option<f64> = Some(250.0);

/// Repeats `$operation` with a clone of `$handle` in one spawned task; gives ns per operation.
macro_rules! repeat {
    ($runtime:expr, $handle:ident, $operation:expr) => {
        move |run| {
            let contest = compete($runtime, run, 1, |_, turns| {
                let $handle = $handle.clone();
                async move {
                    while turns.go_on() {
                        $operation;
                        turns.done();
                    }
                }
            });
            contest.ns_per_turn()
        }
    };
}

pub(crate) fn measure(report: &mut Report) {
    let runtime = runtime(1);
    mutex(report, &runtime);
    mutex_variants(report, &runtime);
    semaphore(report, &runtime);
    read_write(report, &runtime);
    busy(report, &runtime);
}

fn orders() -> NamedMutex {
    LockManager::in_memory().mutex("orders").expect("a valid name")
}

fn mutex(report: &mut Report, runtime: &Runtime) {
    report.measure("named mutex pair", Unit::NS, GOAL_NS, |row| {
        let ours = orders();
        row.ours(repeat!(runtime, ours, {
            let lease = ours.lock().await.expect("free");
            lease.release().await.expect("held");
        }));
        let (map, name) = (Map::default(), Arc::<str>::from("orders"));
        let floor = (map, name);
        row.floor(repeat!(runtime, floor, {
            black_box(floor.0.take(&floor.1));
            floor.0.give(&floor.1);
        }));
        let peer = Arc::new(tokio::sync::Mutex::new(()));
        row.peer(
            "tokio+timeout",
            repeat!(runtime, peer, drop(timeout(MINUTE, peer.lock()).await.expect("free"))),
        );
    });
}

fn mutex_variants(report: &mut Report, runtime: &Runtime) {
    let peer = Arc::new(tokio::sync::Mutex::new(()));
    report.measure("named mutex pair, dropped", Unit::NS, GOAL_NS, |row| {
        let (ours, peer) = (orders(), Arc::clone(&peer));
        row.ours(repeat!(runtime, ours, drop(ours.lock().await.expect("free"))));
        row.peer(
            "tokio+timeout",
            repeat!(runtime, peer, drop(timeout(MINUTE, peer.lock()).await.expect("free"))),
        );
    });
    report.measure("named mutex pair, no TTL", Unit::NS, GOAL_NS, |row| {
        let (ours, peer) = (orders(), Arc::clone(&peer));
        row.ours(repeat!(runtime, ours, {
            let lease = ours.lock().ttl(None).await.expect("free");
            lease.release().await.expect("held");
        }));
        row.peer(
            "tokio+timeout",
            repeat!(runtime, peer, drop(timeout(MINUTE, peer.lock()).await.expect("free"))),
        );
    });
    report.measure("named mutex run_exclusive", Unit::NS, GOAL_NS, |row| {
        let (ours, peer) = (orders(), Arc::clone(&peer));
        row.ours(repeat!(runtime, ours, {
            ours.run_exclusive(async |_lease| ()).await.expect("free");
        }));
        row.peer(
            "tokio+timeout",
            repeat!(runtime, peer, drop(timeout(MINUTE, peer.lock()).await.expect("free"))),
        );
    });
}

fn semaphore(report: &mut Report, runtime: &Runtime) {
    report.measure("named semaphore pair", Unit::NS, GOAL_NS, |row| {
        let ours = LockManager::in_memory().semaphore("exports", 3).expect("a valid name");
        row.ours(repeat!(runtime, ours, {
            let slot = ours.acquire().await.expect("free");
            slot.release().await.expect("held");
        }));
        let peer = Arc::new(tokio::sync::Semaphore::new(3));
        row.peer(
            "tokio+timeout",
            repeat!(runtime, peer, drop(timeout(MINUTE, peer.acquire()).await.expect("free"))),
        );
    });
}

fn read_write(report: &mut Report, runtime: &Runtime) {
    let catalog = || LockManager::in_memory().rw_lock("catalog").expect("a valid name");
    let peer = Arc::new(tokio::sync::RwLock::new(()));
    report.measure("rw read pair", Unit::NS, GOAL_NS, |row| {
        let (ours, peer) = (catalog(), Arc::clone(&peer));
        row.ours(repeat!(runtime, ours, {
            let lease = ours.read().await.expect("free");
            lease.release().await.expect("held");
        }));
        row.peer(
            "tokio+timeout",
            repeat!(runtime, peer, drop(timeout(MINUTE, peer.read()).await.expect("free"))),
        );
    });
    report.measure("rw write pair", Unit::NS, GOAL_NS, |row| {
        let (ours, peer) = (catalog(), Arc::clone(&peer));
        row.ours(repeat!(runtime, ours, {
            let lease = ours.write().await.expect("free");
            lease.release().await.expect("held");
        }));
        row.peer(
            "tokio+timeout",
            repeat!(runtime, peer, drop(timeout(MINUTE, peer.write()).await.expect("free"))),
        );
    });
}

fn busy(report: &mut Report, runtime: &Runtime) {
    report.measure("try busy", Unit::NS, None, |row| {
        let ours = orders();
        let held = ours.lock().blocking().expect("free");
        row.ours(repeat!(runtime, ours, {
            black_box(ours.try_lock().await.expect("an answer"));
        }));
        // Held as long as the row is measured.
        std::mem::forget(held);
        let (map, name) = (Map::default(), Arc::<str>::from("orders"));
        map.take(&name);
        let floor = (map, name);
        row.floor(repeat!(runtime, floor, {
            black_box(floor.0.take(&floor.1));
        }));
        let peer = Arc::new(tokio::sync::Mutex::new(()));
        std::mem::forget(Arc::clone(&peer).try_lock_owned());
        row.peer(
            "tokio",
            repeat!(runtime, peer, {
                black_box(peer.try_lock().is_ok());
            }),
        );
    });
}
