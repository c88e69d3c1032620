//! Giving up at any point: nothing stays queued, no permit is lost (rules Q4, W4, W7).

mod common;

use std::{future::IntoFuture, sync::Arc, time::Duration};

use common::{Probe, manual, ms, now, two};
use leasehold::{LockManager, ManualClock, MemoryStore};
use tokio_util::sync::CancellationToken;

#[test]
fn a_dropped_waiter_lets_the_next_one_in() {
    let (locks, _) = manual();
    let orders = locks.mutex("orders").unwrap();
    let lease = now(orders.lock()).unwrap();
    let head = Probe::pending(orders.lock());
    let mut next = Probe::pending(orders.lock());
    drop(head);
    now(lease.release()).unwrap();
    drop(next.granted());
}

#[test]
fn a_dropped_head_lets_followers_that_fit_in_at_once() {
    // Field reports 14 and 15.
    let (locks, _) = manual();
    let exports = locks.semaphore("exports", 3).unwrap();
    let _two = now(exports.acquire_many(2)).unwrap();
    let head = Probe::pending(exports.acquire_many(3));
    let mut light = Probe::pending(exports.acquire());
    drop(head);
    drop(light.granted());
}

#[test]
fn a_grant_that_is_dropped_before_it_was_seen_is_passed_on() {
    let (locks, _) = manual();
    let orders = locks.mutex("orders").unwrap();
    let lease = now(orders.lock()).unwrap();
    let first = Probe::pending(orders.lock());
    let mut second = Probe::pending(orders.lock());
    now(lease.release()).unwrap();
    assert!(first.is_woken() && !second.is_woken(), "only the head is woken");
    drop(first);
    drop(second.granted());
}

#[test]
fn an_unpolled_future_asks_for_nothing() {
    let (locks, _) = manual();
    let orders = locks.mutex("orders").unwrap();
    drop(orders.lock().into_future());
    let _ = orders.lock();
    assert!(now(orders.inspect()).unwrap().is_none());
}

#[test]
fn w4_cancelled_already_fails_at_once_even_when_free() {
    let (locks, _) = manual();
    let orders = locks.mutex("orders").unwrap();
    let error = now(orders.lock().cancel_on(std::future::ready("shutting down"))).unwrap_err();
    assert!(error.is_cancelled() && !error.is_timeout());
    assert!(error.to_string().contains("shutting down"), "{error}");
    assert!(now(orders.inspect()).unwrap().is_none());
    // Never "busy" (rule W3).
    let tried = now(orders.try_lock().cancel_on(std::future::ready("stop")));
    assert!(tried.unwrap_err().is_cancelled());
}

#[test]
fn w4_cancelled_while_queued_leaves_alone() {
    let (locks, _) = manual();
    let orders = locks.mutex("orders").unwrap();
    let lease = now(orders.lock()).unwrap();
    let stop = CancellationToken::new();
    let mut before = Probe::pending(orders.lock());
    let mut cancelled = Probe::pending(orders.lock().cancel_on(stop.clone().cancelled_owned()));
    let mut after = Probe::pending(orders.lock());
    stop.cancel();
    assert!(cancelled.done().unwrap_err().is_cancelled());
    now(lease.release()).unwrap();
    let second = before.granted();
    drop(second);
    drop(after.granted());
}

#[test]
fn w4_cancelled_after_the_grant_changes_nothing() {
    let (locks, _) = manual();
    let orders = locks.mutex("orders").unwrap();
    let stop = CancellationToken::new();
    let lease = now(orders.lock().cancel_on(stop.clone().cancelled_owned())).unwrap();
    stop.cancel();
    assert!(lease.is_held());
}

#[test]
fn w7_a_dropped_run_drops_the_work_before_the_grant() {
    struct Work(leasehold::NamedMutex);
    impl Drop for Work {
        fn drop(&mut self) {
            assert!(now(self.0.is_locked()).unwrap(), "the work outlived the grant");
        }
    }
    let (locks, _) = manual();
    let orders = locks.mutex("orders").unwrap();
    let inner = orders.clone();
    let run = Probe::pending(async move {
        inner
            .run_exclusive(async |_| {
                let _work = Work(inner.clone());
                std::future::pending::<()>().await;
            })
            .await
    });
    assert!(now(orders.is_locked()).unwrap());
    drop(run);
    assert!(!now(orders.is_locked()).unwrap());
}

#[test]
fn w2_durations_neither_overflow_nor_vanish() {
    let (locks, clock) = manual();
    let orders = locks.mutex("orders").unwrap();
    let _lease = now(orders.lock().ttl(None)).unwrap();
    let mut ever = Probe::pending(orders.lock().timeout(Duration::MAX));
    let mut none = Probe::pending(orders.lock().timeout(None));
    let mut short = Probe::pending(orders.lock().timeout(Duration::from_nanos(1)));
    clock.advance(Duration::from_micros(1));
    assert!(short.done().unwrap_err().is_timeout());
    clock.advance(Duration::from_secs(1_000_000_000));
    assert!(ever.waits() && none.waits());
}

#[test]
fn w1_the_default_timeout_is_sixty_seconds() {
    let (locks, clock) = manual();
    let orders = locks.mutex("orders").unwrap();
    let _lease = now(orders.lock().ttl(None)).unwrap();
    let mut waiter = Probe::pending(orders.lock());
    clock.advance(ms(59_999));
    assert!(waiter.waits());
    clock.advance(ms(1));
    assert!(waiter.done().unwrap_err().is_timeout());

    let quick = {
        let store = MemoryStore::with_clock(Arc::new(clock.clone()));
        LockManager::builder().timeout(ms(5)).backend(store.client())
    };
    let other = quick.mutex("orders").unwrap();
    let _held = now(other.lock()).unwrap();
    let mut waiter = Probe::pending(other.lock());
    clock.advance(ms(5));
    assert!(waiter.done().unwrap_err().is_timeout());
}

#[test]
fn a_waiter_of_another_client_is_served_in_order() {
    let (here, there, _) = two();
    let (orders, theirs) = (here.mutex("orders").unwrap(), there.mutex("orders").unwrap());
    let lease = now(orders.lock()).unwrap();
    let mut first = Probe::pending(theirs.lock());
    let mut second = Probe::pending(orders.lock());
    drop(lease);
    let lease = first.granted();
    assert!(second.waits());
    // Dropping the whole other client ends its grant.
    drop((lease, theirs, first, there));
    drop(second.granted());
}

#[test]
fn dropping_without_a_runtime_is_safe() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let locks = LockManager::in_memory();
    let orders = locks.mutex("orders").unwrap();
    let (lease, waiter) = runtime.block_on(async {
        let lease = orders.lock().await.unwrap();
        let waiter = Probe::pending(orders.lock());
        (lease, waiter)
    });
    drop(runtime);
    drop(waiter);
    drop(lease);
    assert!(!now(orders.is_locked()).unwrap());
}

#[test]
fn a_forgotten_waiter_blocks_nobody_for_longer_than_its_claim() {
    let (locks, clock): (_, ManualClock) = manual();
    let orders = locks.mutex("orders").unwrap();
    let lease = now(orders.lock()).unwrap();
    std::mem::forget(Probe::pending(orders.lock()));
    let mut next = Probe::pending(orders.lock());
    drop(lease);
    assert!(next.waits());
    clock.advance(Duration::from_secs(2));
    drop(next.granted());
}

#[test]
fn a_waiter_that_slept_through_its_claim_is_queued_again() {
    // Field report 31: never waits for what the store has forgotten.
    let (locks, clock) = manual();
    let orders = locks.mutex("orders").unwrap();
    let lease = now(orders.lock()).unwrap();
    let mut sleepy = Probe::pending(orders.lock());
    let mut next = Probe::pending(orders.lock());
    drop(lease);
    clock.advance(Duration::from_secs(2));
    let held = next.granted();
    assert!(sleepy.poll().is_none(), "behind the next one now");
    drop(held);
    drop(sleepy.granted());
}
