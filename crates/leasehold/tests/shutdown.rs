//! The end of a manager (rule N6) and what keeps a process alive (rule W9).

mod common;

use std::{
    process::Command,
    time::{Duration, Instant},
};

use common::{Probe, manual, ms, now, two};
use leasehold::{ErrorKind, LockManager};

#[test]
fn n6_shutdown_ends_its_own_and_nothing_else() {
    let (here, there, _) = two();
    let (mine, theirs) = (here.mutex("mine").unwrap(), there.mutex("theirs").unwrap());
    let lease = now(mine.lock()).unwrap();
    let other = now(theirs.lock()).unwrap();
    let mut waiter = Probe::pending(here.mutex("theirs").unwrap().lock());
    let mut behind = Probe::pending(there.mutex("mine").unwrap().lock());
    let mut shutdown = Probe::new(here.shutdown());
    shutdown.poll().expect("inline in memory").unwrap();
    assert_eq!(waiter.done().unwrap_err().kind(), &ErrorKind::ShutDown);
    assert!(!lease.is_held());
    assert!(matches!(now(lease.lost()).kind(), ErrorKind::Lost { .. }));
    drop(behind.granted());
    assert!(other.is_held());
    assert!(now(theirs.is_locked()).unwrap());
    // Refused from now on; repeated shutdowns do nothing.
    assert_eq!(now(mine.lock()).unwrap_err().kind(), &ErrorKind::ShutDown);
    assert_eq!(now(mine.try_lock()).unwrap_err().kind(), &ErrorKind::ShutDown);
    assert_eq!(here.mutex("new").unwrap_err().kind(), &ErrorKind::ShutDown);
    now(here.shutdown()).unwrap();
    assert!(!now(lease.release()).unwrap());
}

#[test]
fn n6_drain_waits_for_the_leases_up_to_its_limit() {
    let (locks, clock) = manual();
    let orders = locks.mutex("orders").unwrap();
    let lease = now(orders.lock()).unwrap();
    let mut first = Probe::pending(locks.shutdown().drain(Duration::from_secs(10)));
    let mut second = Probe::pending(locks.shutdown().drain(Duration::from_secs(10)));
    assert!(lease.is_held());
    assert_eq!(now(orders.lock()).unwrap_err().kind(), &ErrorKind::ShutDown);
    now(lease.release()).unwrap();
    first.done().unwrap();
    second.done().unwrap();

    let (locks, limit) = manual();
    let lease = now(locks.mutex("orders").unwrap().lock()).unwrap();
    let mut shutdown = Probe::pending(locks.shutdown().drain(ms(50)));
    limit.advance(ms(50));
    shutdown.done().unwrap();
    assert!(!lease.is_held());
    drop(clock);
}

#[test]
fn dropping_the_last_handle_ends_its_grants() {
    let (here, there, _) = two();
    let lease = now(here.mutex("orders").unwrap().lock()).unwrap();
    let mut waiter = Probe::pending(there.mutex("orders").unwrap().lock());
    drop(here);
    assert!(waiter.waits(), "a lease keeps its manager");
    drop(lease);
    drop(waiter.granted());
}

/// Acceptance P1 to P4: this test runs itself as a child that must end by itself.
#[test]
fn p1_to_p4_nothing_keeps_the_process_alive() {
    if std::env::var_os("LEASEHOLD_TEST_KEEP_ALIVE").is_some() {
        let locks = LockManager::in_memory();
        let exports = locks.semaphore("exports", 1).unwrap();
        std::mem::forget(exports.acquire().ttl(None).blocking().unwrap());
        std::mem::forget(
            locks.rw_lock("catalog").unwrap().write().ttl(Duration::from_secs(30)).blocking(),
        );
        let pending = (exports.acquire(), locks.rw_lock("catalog").unwrap().read());
        std::thread::spawn(move || pending.0.blocking());
        let mut waiting = Probe::pending(pending.1);
        assert!(waiting.waits());
        // P4: a thread that waits for an expiry is woken by it, without any runtime.
        let orders = locks.mutex("orders").unwrap();
        std::mem::forget(orders.lock().ttl(ms(200)).blocking().unwrap());
        drop(orders.lock().blocking().unwrap());
        std::process::exit(0);
    }
    let start = Instant::now();
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "p1_to_p4_nothing_keeps_the_process_alive"])
        .env("LEASEHOLD_TEST_KEEP_ALIVE", "1")
        .output()
        .unwrap();
    assert!(child.status.success(), "{child:?}");
    assert!(child.stderr.is_empty(), "{child:?}");
    assert!(start.elapsed() < Duration::from_secs(10));
}

#[test]
fn p5_a_pending_acquisition_still_times_out() {
    let locks = LockManager::in_memory();
    let orders = locks.mutex("orders").unwrap();
    let _lease = orders.lock().blocking().unwrap();
    let error = orders.lock().timeout(ms(100)).blocking().unwrap_err();
    assert!(error.is_timeout());
}
