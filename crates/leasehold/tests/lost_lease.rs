//! Renewal and loss (rules L2, L3).

mod common;

use std::{sync::Arc, time::Duration};

use common::{Probe, manual, ms, now};
use leasehold::{
    Backend, ErrorKind, LeaseState, LockManager, ManualClock, MemoryBackend, MemoryStore,
    Remaining, RunError,
};

/// Looks until `done` holds; the renewal thread works beside the test.
fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let start = std::time::Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(20), "{what}: not within 20 s");
        std::thread::yield_now();
    }
}

fn destroy(backend: &MemoryBackend, lock: &leasehold::LockId) {
    now(backend.destroy(&Arc::new(lock.clone()), None, "destroyed by the test")).unwrap();
}

#[test]
fn l2_a_lease_is_renewed_while_it_is_held() {
    let (locks, clock) = manual();
    let orders = locks.mutex("orders").unwrap();
    let lease = now(orders.lock()).unwrap();
    for _ in 0..10 {
        clock.advance(Duration::from_secs(20));
        let full = Remaining::Left(Duration::from_secs(60));
        eventually("renewed", || now(lease.remaining()).unwrap() == full);
    }
    assert_eq!(lease.state(), LeaseState::Held);
}

#[test]
fn l2_a_ttl_of_ones_own_is_not_renewed_unless_asked() {
    let (locks, clock) = manual();
    let orders = locks.mutex("orders").unwrap();
    let lease = now(orders.lock().ttl(Duration::from_secs(60))).unwrap();
    clock.advance(Duration::from_secs(60));
    assert!(!lease.is_held());
    assert_eq!(lease.state(), LeaseState::Lost);
    drop(lease);

    let renewed = now(orders.lock().ttl(Duration::from_secs(6)).renew()).unwrap();
    clock.advance(Duration::from_secs(2));
    let full = Remaining::Left(Duration::from_secs(6));
    eventually("renewed", || now(renewed.remaining()).unwrap() == full);
}

#[test]
fn l2_max_hold_ends_the_renewal() {
    // Field reports 24 and 25.
    let (locks, clock) = manual();
    let orders = locks.mutex("orders").unwrap();
    let lease = now(orders.lock().max_hold(Duration::from_secs(30))).unwrap();
    clock.advance(Duration::from_secs(20));
    eventually("renewed once", || {
        now(lease.remaining()).unwrap() == Remaining::Left(Duration::from_secs(60))
    });
    clock.advance(Duration::from_secs(59));
    assert_eq!(now(lease.remaining()).unwrap(), Remaining::Left(Duration::from_secs(1)));
    clock.advance(Duration::from_secs(1));
    assert_eq!(now(lease.remaining()).unwrap(), Remaining::Gone);
}

#[test]
fn l2_later_renewals_use_the_extension() {
    let (locks, clock) = manual();
    let orders = locks.mutex("orders").unwrap();
    let lease = now(orders.lock()).unwrap();
    assert!(now(lease.extend(Duration::from_secs(300))).unwrap());
    clock.advance(Duration::from_secs(100));
    eventually("renewed with the extended TTL", || {
        now(lease.remaining()).unwrap() == Remaining::Left(Duration::from_secs(300))
    });
}

#[test]
fn l3_the_local_deadline_comes_before_the_stores() {
    let (locks, clock) = manual();
    let orders = locks.mutex("orders").unwrap();
    let lease = now(orders.lock().ttl(Duration::from_secs(10))).unwrap();
    let mut lost = Probe::boxed_lost(lease);
    clock.advance(ms(9_899));
    assert!(lost.waits());
    clock.advance(ms(1));
    assert!(now(orders.is_locked()).unwrap(), "the store gives it 1 % longer");
    let error = lost.done();
    assert!(matches!(error.kind(), ErrorKind::Lost { .. }));
    assert!(error.to_string().contains("TTL ran out"), "{error}");
}

#[test]
fn l3_lost_completes_when_the_lock_is_destroyed() {
    let clock = ManualClock::new();
    let store = MemoryStore::with_clock(Arc::new(clock));
    let locks = LockManager::new(store.client());
    let orders = locks.mutex("orders").unwrap();
    let lease = now(orders.lock().ttl(None)).unwrap();
    let mut lost = Probe::boxed_lost(lease);
    destroy(&store.client(), orders.lock_id());
    assert!(lost.done().to_string().contains("destroyed"));
}

#[test]
fn l3_a_run_under_a_lost_lease_keeps_its_output() {
    let (locks, clock) = manual();
    let orders = locks.mutex("orders").unwrap();
    let run = {
        let (orders, clock) = (orders.clone(), clock.clone());
        now(async move {
            orders
                .lock()
                .ttl(ms(100))
                .run(async |_| {
                    clock.advance(ms(200));
                    42
                })
                .await
        })
    };
    let Err(RunError::Lost { output: Some(42), error }) = run else {
        panic!("expected the loss, with the output: {run:?}");
    };
    assert!(matches!(error.kind(), ErrorKind::Lost { .. }));
    // Without `Debug` of the output, and as a plain error.
    let plain: leasehold::Error =
        RunError::Lost { output: Some(std::cell::Cell::new(1)), error }.into();
    assert!(plain.to_string().contains("mutex \"orders\""));
}

#[test]
fn l3_an_unknown_token_is_lost_at_the_next_renewal() {
    let clock = ManualClock::new();
    let store = MemoryStore::with_clock(Arc::new(clock.clone()));
    let locks = LockManager::new(store.client());
    let orders = locks.mutex("orders").unwrap();
    let lease = now(orders.lock()).unwrap();
    let lock = Arc::new(orders.lock_id().clone());
    now(store.client().release(&lock, lease.token())).unwrap();
    assert!(lease.is_held(), "not known here yet");
    clock.advance(Duration::from_secs(20));
    eventually("lost", || lease.state() == LeaseState::Lost);
    // Field report 28: the release of a lost lease returns at once.
    assert!(!now(lease.release()).unwrap());
}

#[test]
fn a_released_lease_is_not_renewed() {
    // Field reports 20 and 23: a grant that somebody else brings about with the same token later
    // must not be kept alive by the first one's renewal.
    let (locks, clock) = manual();
    let orders = locks.mutex("orders").unwrap();
    let token = leasehold::Token::new("mine").unwrap();
    let first = now(orders.lock().token(token.clone())).unwrap();
    now(first.release()).unwrap();
    let second = now(orders.lock().token(token).ttl(Duration::from_secs(60))).unwrap();
    let canary = now(locks.mutex("canary").unwrap().lock()).unwrap();
    clock.advance(Duration::from_secs(20));
    let full = Remaining::Left(Duration::from_secs(60));
    eventually("the renewal ran", || now(canary.remaining()).unwrap() == full);
    assert_eq!(now(second.remaining()).unwrap(), Remaining::Left(Duration::from_secs(40)));
}

impl Probe<leasehold::Error> {
    fn boxed_lost(lease: leasehold::Lease) -> Self {
        Self::pending(async move { lease.lost().await })
    }
}
