//! The acceptance lines that concern the handle alone, on SQLite too: S7 to S10, SL14, R8 to R11, R21,
//! G2, G8, G9, G11; and what becomes of a lease while the store cannot be asked (rule L3).

#![cfg(feature = "sqlite")]

use std::{
    fs::File,
    panic::AssertUnwindSafe,
    time::{Duration, Instant},
};

use leasehold::{ErrorKind, LockKind, LockManager, RunError};
use pollster::block_on;

fn store() -> (tempfile::TempDir, LockManager) {
    let directory = tempfile::Builder::new().prefix("leasehold").tempdir().unwrap();
    let locks = block_on(leasehold::connect(&url(&directory))).unwrap();
    (directory, locks)
}

fn url(directory: &tempfile::TempDir) -> String {
    format!("sqlite:{}", directory.path().join("locks.db").display())
}

#[test]
fn s7_to_s10_r8_to_r11_run_gives_the_value_and_frees() {
    let (_directory, locks) = store();
    let (exports, catalog) =
        (locks.semaphore("exports", 1).unwrap(), locks.rw_lock("catalog").unwrap());
    let inside = async |_: &leasehold::Lease| exports.free_permits().await.unwrap();
    assert_eq!(block_on(exports.run_exclusive(inside)).unwrap(), 0);
    let failing = block_on(exports.run_exclusive(async |_| Err::<(), _>("no")));
    assert_eq!(failing.unwrap(), Err("no"));
    let panicking = AssertUnwindSafe(|| block_on(exports.run_exclusive(async |_| panic!("work"))));
    assert!(std::panic::catch_unwind(panicking).is_err());
    // The drop of a lease hands its release to the store's own thread; the next one waits for it.
    drop(exports.acquire().blocking().unwrap());

    let readers = async |_: &leasehold::Lease| catalog.active_readers().await.unwrap();
    assert_eq!(block_on(catalog.run_shared(readers)).unwrap(), 1);
    let writing = async |_: &leasehold::Lease| catalog.is_write_locked().await.unwrap();
    assert!(block_on(catalog.run_exclusive(writing)).unwrap());
    assert!(!block_on(catalog.is_write_locked()).unwrap());
    assert_eq!(block_on(catalog.active_readers()).unwrap(), 0);
}

#[test]
fn sl14_r21_g8_bad_arguments_take_nothing() {
    let (_directory, locks) = store();
    let exports = locks.semaphore("exports", 1).unwrap();
    for bad in [Duration::ZERO, Duration::from_millis(1 << 31)] {
        let error = exports.acquire().ttl(bad).blocking().unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::InvalidArgument { .. }), "{error}");
    }
    assert_eq!(block_on(exports.free_permits()).unwrap(), 1);
    assert!(locks.mutex("").is_err());
    assert!(locks.semaphore("none", 0).is_err() && locks.rw_lock_with("none", 0).is_err());
}

#[test]
fn g2_g9_g11_has_list_and_cancel_all() {
    let (_directory, locks) = store();
    assert!(!locks.has_mutex("orders"));
    let orders = locks.mutex("orders").unwrap();
    assert!(locks.has_mutex("orders") && !locks.has_semaphore("orders"));
    let list = locks.list();
    assert_eq!((list.len(), list[0].store, list[0].capacity), (1, "sqlite", None));
    assert_eq!(locks.count(LockKind::Mutex), 1);

    let lease = orders.lock().blocking().unwrap();
    let (queued, told) = std::sync::mpsc::channel();
    let waiter = std::thread::spawn({
        let orders = orders.clone();
        move || orders.lock().on_queued(move |_| queued.send(()).unwrap()).blocking()
    });
    told.recv().unwrap();
    // The hook runs just before the wait is registered.
    let start = std::time::Instant::now();
    while locks.cancel_all("Draining") == 0 {
        assert!(start.elapsed() < Duration::from_secs(20), "nobody waits");
        std::thread::yield_now();
    }
    let error = waiter.join().unwrap().unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::Cancelled { reason: "Draining".into() });
    assert!(lease.is_held() && lease.release_blocking().unwrap());
}

/// Rule L3: nothing can be asked while a process is stopped inside the store's guard.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn l3_with_the_guard_held_a_run_is_lost_in_time_and_keeps_its_output() {
    const TTL: Duration = Duration::from_millis(1500);
    // As late as a busy machine wakes whoever waits for it.
    const LATE: Duration = Duration::from_secs(1);
    let (directory, locks) = store();
    let others = leasehold::connect(&url(&directory)).await.unwrap();
    let (tell, told) = tokio::sync::oneshot::channel();
    let leader = locks.mutex("leader").unwrap();
    let working = leader.lock().ttl(TTL).renew().run(async |lease| {
        // One renewal has come through, so that it is the renewed deadline that counts.
        let (first, begun) = (lease.certain_for().unwrap(), Instant::now());
        while lease.certain_for().unwrap() + begun.elapsed() <= first + TTL / 10 {
            tokio::task::yield_now().await;
        }
        let guard = File::options().write(true).open(directory.path().join("locks.db.d/guard"));
        let guard = guard.unwrap();
        guard.lock().unwrap();
        let (since, certain_for) = (Instant::now(), lease.certain_for().unwrap());
        assert!(certain_for < TTL, "{certain_for:?}");
        tell.send(()).unwrap();
        lease.lost().await;
        let lost_after = since.elapsed();
        assert!(lost_after >= certain_for, "already after {lost_after:?}");
        assert!(lost_after <= certain_for + LATE, "only after {lost_after:?}");
        drop(guard);
        since + certain_for
    });
    let waiting = async {
        told.await.unwrap();
        let next = others.mutex("leader").unwrap().lock().await.unwrap();
        (Instant::now(), next)
    };
    let (worked, (granted, next)) = tokio::join!(working, waiting);
    let Err(RunError::Lost { output: Some(deadline), error }) = worked else {
        panic!("not lost, or without what the work gave: {worked:?}");
    };
    assert!(error.to_string().contains("TTL ran out"), "{error}");
    assert!(deadline < granted, "granted {:?} before the deadline", deadline - granted);
    assert!(next.release().await.unwrap());
}
