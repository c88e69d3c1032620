//! Cancelling, destroying, listing (rules N, W5; acceptance G, S4, S16, R13, R17, ST5, RT5, SL17).

mod common;

use std::time::Duration;

use common::{Probe, manual, ms, now, two};
use leasehold::{ErrorKind, LockKind, LockManager};

#[test]
fn g1_g5_the_same_name_is_the_same_lock() {
    let (locks, clock) = manual();
    let _lease = now(locks.mutex("x").unwrap().lock().ttl(None)).unwrap();
    let mut second = Probe::pending(locks.mutex("x").unwrap().lock().timeout(ms(50)));
    clock.advance(ms(50));
    assert!(second.done().unwrap_err().is_timeout());
    drop(now(locks.mutex("y").unwrap().try_lock()).unwrap().unwrap());
}

#[test]
fn g2_g3_g4_has_and_count() {
    let (locks, _) = manual();
    assert!(!locks.has_mutex("x"));
    let mutex = locks.mutex("x").unwrap();
    assert!(locks.has_mutex("x") && !locks.has_semaphore("x") && !locks.has_rw_lock("x"));
    let _semaphore = locks.semaphore("x", 3).unwrap();
    let _rw_lock = locks.rw_lock("x").unwrap();
    assert_eq!((locks.count(None), locks.count(LockKind::Mutex)), (3, 1));
    now(mutex.destroy()).unwrap();
    assert!(!locks.has_mutex("x"));
    assert_eq!(locks.count(None), 2);
}

#[test]
fn n1_an_entry_lives_while_it_is_used() {
    let (locks, _) = manual();
    let lease = now(locks.mutex("x").unwrap().lock()).unwrap();
    assert!(locks.has_mutex("x"), "a lease keeps it");
    drop(lease);
    assert!(!locks.has_mutex("x"));
    for n in 0..10_000 {
        drop(now(locks.mutex(format!("lock {n}")).unwrap().lock()).unwrap());
    }
    assert_eq!(locks.count(None), 0);
}

#[test]
fn g6_g7_g8_mismatches_and_bad_arguments() {
    let (locks, _) = manual();
    let _exports = locks.semaphore("exports", 2).unwrap();
    assert!(matches!(
        locks.semaphore("exports", 5).unwrap_err().kind(),
        ErrorKind::ConfigMismatch { registered, requested }
            if registered.get() == 2 && requested.get() == 5
    ));
    let _catalog = locks.rw_lock_with("catalog", 3).unwrap();
    assert!(locks.rw_lock_with("catalog", 7).is_err());
    assert!(locks.rw_lock("catalog").is_ok() && locks.rw_lock_with("catalog", 3).is_ok());
    for bad in
        [locks.mutex("").err(), locks.semaphore("s", 0).err(), locks.rw_lock_with("r", 0).err()]
    {
        assert!(matches!(bad.unwrap().kind(), ErrorKind::InvalidArgument { .. }));
    }
}

#[test]
fn g9_g16_list_tells_kind_name_and_capacity() {
    let (locks, _) = manual();
    let _keep = (
        locks.mutex("a b").unwrap(),
        locks.semaphore("{s}", 3).unwrap(),
        locks.rw_lock_with("r", 5).unwrap(),
    );
    let list = locks.list();
    let told: Vec<_> = list
        .iter()
        .map(|info| (info.lock.kind(), info.lock.name().as_str(), info.capacity))
        .collect();
    assert_eq!(
        told,
        [
            (LockKind::Mutex, "a b", None),
            (LockKind::Semaphore, "{s}", Some(3)),
            (LockKind::RwLock, "r", Some(5))
        ]
    );
    assert!(list.iter().all(|info| info.store == "memory" && !info.is_destroyed));
}

#[test]
fn g10_snapshot_reads_the_live_state() {
    let (locks, clock) = manual();
    let (orders, exports) =
        (locks.mutex("orders").unwrap(), locks.semaphore("exports", 3).unwrap());
    let catalog = locks.rw_lock("catalog").unwrap();
    let _keep = (
        now(orders.lock().label("night shift")).unwrap(),
        now(exports.acquire()).unwrap(),
        now(catalog.read()).unwrap(),
    );
    let _waiting =
        [Probe::pending(orders.lock().label("one")), Probe::pending(orders.lock().label("two"))];
    clock.advance(ms(5));
    let snapshot = now(locks.snapshot()).unwrap();
    let states: Vec<_> = snapshot.iter().map(|lock| lock.state.as_ref().unwrap()).collect();
    assert_eq!(states[0].holders[0].info.label(), Some("night shift"));
    assert_eq!(states[0].holders[0].held_for, ms(5));
    let labels: Vec<_> = states[0].waiters.iter().map(|waiter| waiter.info.label()).collect();
    assert_eq!(labels, [Some("one"), Some("two")]);
    assert_eq!(states[1].free(), 2);
    assert_eq!((states[2].used, states[2].holders.len()), (1, 1));
}

#[test]
fn g11_the_managers_cancel_all_rejects_its_own_waiters() {
    let (here, there, _) = two();
    let orders = here.mutex("orders").unwrap();
    let (exports, catalog) =
        (here.semaphore("exports", 1).unwrap(), here.rw_lock("catalog").unwrap());
    let lease = now(orders.lock()).unwrap();
    let _others = (now(exports.acquire()).unwrap(), now(catalog.write()).unwrap());
    let mut mine = [
        Probe::pending(orders.lock()),
        Probe::pending(exports.acquire()),
        Probe::pending(catalog.read()),
    ];
    let mut theirs = Probe::pending(there.mutex("orders").unwrap().lock());
    assert_eq!(here.cancel_all("Draining"), 3);
    for waiter in &mut mine {
        let error = waiter.done().unwrap_err();
        assert!(error.is_cancelled() && error.to_string().contains("Draining"), "{error}");
    }
    assert_eq!(here.count(None), 3);
    assert!(lease.is_held() && theirs.waits());
    now(lease.release()).unwrap();
    drop(theirs.granted());
}

#[test]
fn s4_s16_r13_r17_cancel_all_of_one_lock() {
    let (here, there, clock) = two();
    let catalog = here.rw_lock("catalog").unwrap();
    let writer = now(catalog.write()).unwrap();
    let mut waiters = [
        Probe::pending(catalog.read()),
        Probe::pending(there.rw_lock("catalog").unwrap().read()),
        Probe::pending(catalog.write()),
    ];
    assert_eq!(now(catalog.cancel_all("Operation cancelled")).unwrap(), 3);
    for waiter in &mut waiters {
        let error = waiter.done().unwrap_err();
        assert_eq!(error.kind(), &ErrorKind::Cancelled { reason: "Operation cancelled".into() });
    }
    assert!(now(catalog.is_write_locked()).unwrap());
    let mut next = Probe::pending(catalog.write().timeout(ms(100)));
    clock.advance(ms(100));
    assert!(next.done().unwrap_err().is_timeout());
    now(writer.release()).unwrap();
    drop(now(catalog.write()).unwrap());
}

#[test]
fn st5_rt5_cancel_all_is_no_busy() {
    let (locks, _) = manual();
    let catalog = locks.rw_lock("catalog").unwrap();
    let _writer = now(catalog.write()).unwrap();
    let mut tries = [
        Probe::pending(catalog.try_read().timeout(ms(500))),
        Probe::pending(catalog.try_write().timeout(ms(500))),
    ];
    now(catalog.cancel_all("stop")).unwrap();
    for attempt in &mut tries {
        assert!(attempt.done().unwrap_err().is_cancelled());
    }
}

#[test]
fn g12_sl17_destroy_ends_a_generation_for_everybody() {
    let (here, there, _) = two();
    let orders = here.mutex("orders").unwrap();
    let theirs = there.mutex("orders").unwrap();
    let lease = now(orders.lock()).unwrap();
    let mut waiter = Probe::pending(theirs.lock());
    now(here.destroy_all("Shutting down")).unwrap();
    let error = waiter.done().unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::Cancelled { reason: "Shutting down".into() });
    assert!(orders.is_destroyed() && theirs.is_destroyed());
    assert_eq!((here.count(None), here.list().len()), (0, 0));
    assert!(!lease.is_held());
    assert!(matches!(now(lease.lost()).kind(), ErrorKind::Lost { .. }));
    for old in [now(orders.lock()).unwrap_err(), now(theirs.lock()).unwrap_err()] {
        assert_eq!(old.kind(), &ErrorKind::Destroyed);
    }
    assert_eq!(now(orders.is_locked()).unwrap_err().kind(), &ErrorKind::Destroyed);
    let fresh = here.mutex("orders").unwrap();
    let next = now(fresh.try_lock()).unwrap().expect("a fresh lock");
    assert!(next.fencing_token() > lease.fencing_token());
    // The old generation's release does not touch the new one.
    assert!(!now(lease.release()).unwrap());
    drop(lease);
    assert!(next.is_held() && now(fresh.is_locked()).unwrap());
}

#[test]
fn n5_a_manager_that_missed_the_destroy_learns_of_it() {
    let (here, there, clock) = two();
    let orders = here.mutex("orders").unwrap();
    let theirs = there.mutex("orders").unwrap();
    let lease = now(orders.lock()).unwrap();
    let mut lost = Probe::pending(async move {
        let why = lease.lost().await;
        (why, lease.is_held())
    });
    // Their handle has met this generation; a waiter that gives up is enough.
    drop(Probe::pending(theirs.lock()));
    now(theirs.destroy()).unwrap();
    let (why, held) = lost.done();
    assert!(why.to_string().contains("destroyed") && !held);
    assert_eq!(now(orders.lock()).unwrap_err().kind(), &ErrorKind::Destroyed);
    clock.advance(Duration::from_secs(1));
    drop(now(there.mutex("orders").unwrap().try_lock()).unwrap().expect("a fresh lock"));
}

#[test]
fn g13_g14_destroying_twice_and_not_handed_out_again() {
    let (locks, _) = manual();
    let orders = locks.mutex("orders").unwrap();
    let _lease = now(orders.lock()).unwrap();
    now(orders.destroy()).unwrap();
    now(orders.destroy()).unwrap();
    now(locks.destroy_all("again")).unwrap();
    now(locks.destroy_all("again")).unwrap();
    assert_eq!(locks.count(None), 0);
    assert!(!locks.mutex("orders").unwrap().is_destroyed());
}

#[test]
fn g15_two_managers_are_independent() {
    let (one, two) = (LockManager::in_memory(), LockManager::in_memory());
    let _lease = now(one.mutex("x").unwrap().lock()).unwrap();
    let theirs = now(two.mutex("x").unwrap().try_lock()).unwrap().expect("another store");
    now(one.destroy_all("mine")).unwrap();
    assert!(theirs.is_held());
}

#[test]
fn n5_a_waiter_that_had_not_seen_its_grant_is_cancelled_like_the_others() {
    let (locks, _) = manual();
    let orders = locks.mutex("orders").unwrap();
    let lease = now(orders.lock()).unwrap();
    let mut waiter = Probe::pending(orders.lock());
    now(lease.release()).unwrap();
    assert!(waiter.is_woken());
    now(orders.destroy()).unwrap();
    let error = waiter.done().unwrap_err();
    assert!(error.is_cancelled() && error.to_string().contains("destroyed"), "{error}");
}
