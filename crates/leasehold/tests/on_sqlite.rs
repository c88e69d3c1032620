//! The acceptance lines that concern the handle alone, on SQLite too: S7 to S10, SL14, R8 to R11, R21,
//! G2, G8, G9, G11.

#![cfg(feature = "sqlite")]

use std::{panic::AssertUnwindSafe, time::Duration};

use leasehold::{ErrorKind, LockKind, LockManager};
use pollster::block_on;

fn store() -> (tempfile::TempDir, LockManager) {
    let directory = tempfile::Builder::new().prefix("leasehold").tempdir().unwrap();
    let url = format!("sqlite:{}", directory.path().join("locks.db").display());
    let locks = block_on(leasehold::connect(&url)).unwrap();
    (directory, locks)
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
