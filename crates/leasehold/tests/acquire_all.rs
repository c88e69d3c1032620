//! Several locks at once (field reports 41 and 42).

mod common;

use std::time::Duration;

use common::{Probe, manual, ms, now};
use leasehold::LockManager;

#[test]
fn all_or_none() {
    let (locks, clock) = manual();
    let (a, b) = (locks.mutex("a").unwrap(), locks.mutex("b").unwrap());
    let held = now(b.lock().ttl(None)).unwrap();
    let mut all = Probe::pending(locks.acquire_all([b.lock(), a.lock()]).timeout(ms(100)));
    assert!(now(a.is_locked()).unwrap(), "in the order of the names, whatever was said");
    clock.advance(ms(100));
    assert!(all.done().unwrap_err().is_timeout());
    assert!(!now(a.is_locked()).unwrap());
    drop(held);
    let leases = now(locks.acquire_all([b.lock(), a.lock()])).unwrap();
    assert_eq!(leases.len(), 2);
}

#[test]
fn dropped_half_way_nothing_stays() {
    let (locks, _) = manual();
    let (a, b) = (locks.mutex("a").unwrap(), locks.mutex("b").unwrap());
    let _held = now(b.lock()).unwrap();
    drop(Probe::pending(locks.acquire_all([a.lock(), b.lock()])));
    assert!(!now(a.is_locked()).unwrap());
    assert!(now(b.inspect()).unwrap().unwrap().waiters.is_empty());
}

#[test]
fn a_lock_that_is_named_twice_is_acquired_once() {
    let (locks, _) = manual();
    let (a, s) = (locks.mutex("a").unwrap(), locks.semaphore("s", 3).unwrap());
    let catalog = locks.rw_lock("catalog").unwrap();
    let requests =
        [a.lock(), s.acquire(), catalog.read(), a.lock(), s.acquire_many(2), catalog.write()];
    let leases = now(locks.acquire_all(requests)).unwrap();
    assert_eq!(leases.len(), 3);
    assert_eq!(now(s.free_permits()).unwrap(), 0);
    assert!(now(catalog.is_write_locked()).unwrap());
    drop(leases);
    // Bad input is told before anything is taken.
    assert!(now(locks.acquire_all([a.lock(), s.acquire_many(2), s.acquire_many(2)])).is_err());
    assert!(!now(a.is_locked()).unwrap());
}

#[test]
fn cancelled_and_zero_timeouts() {
    let (locks, _) = manual();
    let (a, b) = (locks.mutex("a").unwrap(), locks.mutex("b").unwrap());
    let cancelled = locks.acquire_all([a.lock()]).cancel_on(std::future::ready("stop"));
    assert!(now(cancelled).unwrap_err().is_cancelled());
    let _held = now(b.lock()).unwrap();
    let busy = now(locks.acquire_all([a.lock(), b.lock()]).timeout(Duration::ZERO));
    assert!(busy.unwrap_err().is_timeout());
    assert!(!now(a.is_locked()).unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn opposite_orders_do_not_deadlock() {
    let locks = LockManager::in_memory();
    let (a, b) = (locks.mutex("a").unwrap(), locks.mutex("b").unwrap());
    let mut tasks = Vec::new();
    for task in 0..8 {
        let (locks, a, b) = (locks.clone(), a.clone(), b.clone());
        tasks.push(tokio::spawn(async move {
            for _ in 0..100 {
                let requests =
                    if task % 2 == 0 { [a.lock(), b.lock()] } else { [b.lock(), a.lock()] };
                let leases = locks.acquire_all(requests).await.unwrap();
                tokio::task::yield_now().await;
                drop(leases);
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
}

#[test]
fn w6_bad_arguments_are_told_before_anybody_waits() {
    let (locks, _) = manual();
    let (a, s) = (locks.mutex("a").unwrap(), locks.semaphore("s", 2).unwrap());
    let _held = now(a.lock()).unwrap();
    for weight in [0, 3] {
        let error = now(locks.acquire_all([a.lock(), s.acquire_many(weight)])).unwrap_err();
        let kind = error.kind();
        assert!(matches!(kind, leasehold::ErrorKind::InvalidArgument { .. }), "{error}");
    }
}
