//! Watching without acquiring (rules U; acceptance S12 to S14, S18, S19).

mod common;

use common::{Probe, manual, ms, now};
use leasehold::ErrorKind;

#[test]
fn s12_u1_completes_on_release_and_by_expiry() {
    let (locks, clock) = manual();
    let exports = locks.semaphore("exports", 1).unwrap();
    now(exports.wait_for_any_permit()).unwrap();
    let slot = now(exports.acquire().ttl(ms(100))).unwrap();
    let watched = exports.clone();
    let mut watcher = Probe::pending(async move { watched.wait_for_any_permit().await });
    clock.advance(ms(100));
    watcher.done().unwrap();
    drop(slot);

    let orders = locks.mutex("orders").unwrap();
    let lease = now(orders.lock()).unwrap();
    let watched = orders.clone();
    let mut watcher = Probe::pending(async move { watched.wait_for_unlock().await });
    now(lease.release()).unwrap();
    watcher.done().unwrap();
    assert!(!now(orders.is_locked()).unwrap(), "a watcher acquires nothing");
}

#[test]
fn s13_s14_any_and_all_permits() {
    let (locks, _) = manual();
    let exports = locks.semaphore("exports", 5).unwrap();
    let mut slots: Vec<_> = (0..5).map(|_| now(exports.acquire()).unwrap()).collect();
    let (one, two) = (exports.clone(), exports.clone());
    let mut any = Probe::pending(async move { one.wait_for_any_permit().await });
    let mut all = Probe::pending(async move { two.wait_for_all_permits().await });
    slots.truncate(2);
    any.done().unwrap();
    assert_eq!(now(exports.free_permits()).unwrap(), 3);
    assert!(all.waits());
    drop(slots);
    all.done().unwrap();
    assert_eq!(now(exports.free_permits()).unwrap(), 5);
}

#[test]
fn u1_a_hand_off_is_no_unlock() {
    let (locks, _) = manual();
    let orders = locks.mutex("orders").unwrap();
    let lease = now(orders.lock()).unwrap();
    let mut waiter = Probe::pending(orders.lock());
    let watched = orders.clone();
    let mut watcher = Probe::pending(async move { watched.wait_for_unlock().await });
    now(lease.release()).unwrap();
    let second = waiter.granted();
    assert!(watcher.waits());
    drop(second);
    watcher.done().unwrap();
}

#[test]
fn u1_readable_means_that_a_read_would_get_in() {
    let (locks, _) = manual();
    let catalog = locks.rw_lock("catalog").unwrap();
    let reader = now(catalog.read()).unwrap();
    now(catalog.wait_for_readable()).unwrap();
    let writer = Probe::pending(catalog.write());
    let watched = catalog.clone();
    let mut readable = Probe::pending(async move { watched.wait_for_readable().await });
    drop(writer);
    readable.done().unwrap();
    let watched = catalog.clone();
    let mut unlocked = Probe::pending(async move { watched.wait_for_unlock().await });
    drop(reader);
    unlocked.done().unwrap();
}

#[test]
fn s18_u2_cancel_all_leaves_watchers_waiting() {
    let (locks, _) = manual();
    let exports = locks.semaphore("exports", 1).unwrap();
    let slot = now(exports.acquire()).unwrap();
    let watched = exports.clone();
    let mut watcher = Probe::pending(async move { watched.wait_for_any_permit().await });
    now(exports.cancel_all("stop")).unwrap();
    locks.cancel_all("stop");
    assert!(watcher.waits());
    drop(slot);
    watcher.done().unwrap();
}

#[test]
fn s19_u2_destroy_completes_watchers_and_refuses_new_ones() {
    let (locks, _) = manual();
    let exports = locks.semaphore("exports", 1).unwrap();
    let _slot = now(exports.acquire()).unwrap();
    let (one, two) = (exports.clone(), exports.clone());
    let mut any = Probe::pending(async move { one.wait_for_any_permit().await });
    let mut all = Probe::pending(async move { two.wait_for_all_permits().await });
    let mut waiter = Probe::pending(exports.acquire());
    now(exports.destroy()).unwrap();
    any.done().unwrap();
    all.done().unwrap();
    assert!(waiter.done().unwrap_err().is_cancelled());
    let refused = now(exports.wait_for_any_permit()).unwrap_err();
    assert_eq!(refused.kind(), &ErrorKind::Destroyed);
}

#[test]
fn n6_shutdown_ends_watchers() {
    let (locks, _) = manual();
    let orders = locks.mutex("orders").unwrap();
    let _lease = now(orders.lock()).unwrap();
    let mut watcher = Probe::pending(async move { orders.wait_for_unlock().await });
    now(locks.shutdown()).unwrap();
    assert_eq!(watcher.done().unwrap_err().kind(), &ErrorKind::ShutDown);
}
