//! One at a time: who gets in, who waits, who is told "busy".

use std::time::Instant;

use futures_util::future::{join, join_all};

use super::{
    Bench, Case,
    bench::{LONG, NOW, breathe, ms, pass, poll},
    case,
};
use crate::adapter::Reach;

pub(super) const CASES: &[Case] = &[
    case!(nl1_a_second_lock_waits_for_the_release),
    case!(nl2_a_late_release_is_harmless),
    case!(nl5_n20_a_try_of_a_held_resource_is_busy),
    case!(nl6_of_two_tries_at_once_one_wins),
    case!(nl7_n22_a_budget_waits_for_the_release),
    case!(nl8_n22_busy_comes_after_the_budget),
    case!(nl9_after_the_release_it_works_again),
    case!(nl11_a_dropped_lease_is_given_back),
    case!(n11_all_who_ask_share_one_manager),
    case!(n16_locks_and_executors_of_one_resource_exclude_each_other),
    case!(n17_different_names_do_not_exclude_each_other),
    case!(n18_different_namespaces_do_not_exclude_each_other, Some(Reach::Shared)),
    case!(n18_services_on_one_store_exclude_each_other, Some(Reach::Shared)),
    case!(n19_a_lock_waits_without_a_deadline),
    case!(n21_a_release_may_win_within_the_zero_budget_and_exclusion_holds),
];

async fn nl1_a_second_lock_waits_for_the_release(bench: Bench) {
    let (service, manager) = bench.service().await;
    let orders = manager.lock("orders").unwrap();
    let first = orders.lock().await.unwrap();
    let mut second = orders.lock();
    assert!(poll(&mut second).is_pending());
    assert!(first.is_held());
    assert!(first.release().await.unwrap());
    assert!(!first.is_held());
    let second = second.await.unwrap();
    assert!(second.is_held());
    if let (Some(first), Some(second)) = (first.fencing_token(), second.fencing_token()) {
        assert!(first < second, "fencing tokens grow");
    }
    assert!(second.release().await.unwrap());
    service.shutdown().await.unwrap();
}

async fn nl2_a_late_release_is_harmless(bench: Bench) {
    let (service, manager) = bench.service().await;
    let orders = manager.lock("orders").unwrap();
    let first = orders.lock().await.unwrap();
    first.release().await.unwrap();
    let second = orders.lock().await.unwrap();
    first.release().await.unwrap();
    drop(first);
    assert!(second.is_held());
    assert!(orders.try_lock(NOW).await.unwrap().is_none(), "the second lease still stands");
    second.release().await.unwrap();
    service.shutdown().await.unwrap();
}

async fn nl5_n20_a_try_of_a_held_resource_is_busy(bench: Bench) {
    let (service, manager) = bench.service().await;
    let orders = manager.lock("orders").unwrap();
    let first = orders.try_lock(NOW).await.unwrap().expect("it is free");
    assert!(orders.try_lock(NOW).await.unwrap().is_none());
    let ran = manager.executor("orders").unwrap().try_run(NOW, async { "never" }).await;
    assert_eq!(ran.unwrap(), None, "the work did not run");
    first.release().await.unwrap();
    service.shutdown().await.unwrap();
}

async fn nl6_of_two_tries_at_once_one_wins(bench: Bench) {
    let (service, manager) = bench.service().await;
    let orders = manager.lock("orders").unwrap();
    let (one, other) = join(orders.try_lock(NOW), orders.try_lock(NOW)).await;
    let (one, other) = (one.unwrap(), other.unwrap());
    assert!(one.is_some() ^ other.is_some(), "exactly one of them");
    one.or(other).unwrap().release().await.unwrap();
    service.shutdown().await.unwrap();
}

async fn nl7_n22_a_budget_waits_for_the_release(bench: Bench) {
    let (service, manager) = bench.service().await;
    let orders = manager.lock("orders").unwrap();
    let first = orders.lock().await.unwrap();
    let mut second = orders.try_lock(LONG);
    assert!(poll(&mut second).is_pending());
    first.release().await.unwrap();
    let second = second.await.unwrap().expect("it was released within the budget");
    second.release().await.unwrap();
    service.shutdown().await.unwrap();
}

async fn nl8_n22_busy_comes_after_the_budget(bench: Bench) {
    let (service, manager) = bench.service().await;
    let orders = manager.lock("orders").unwrap();
    let held = orders.lock().await.unwrap();
    let begun = Instant::now();
    assert!(orders.try_lock(ms(60)).await.unwrap().is_none());
    let took = begun.elapsed();
    assert!(took >= ms(60) && took < LONG, "{took:?} for a budget of 60 ms");
    held.release().await.unwrap();
    service.shutdown().await.unwrap();
}

async fn nl9_after_the_release_it_works_again(bench: Bench) {
    let (service, manager) = bench.service().await;
    let orders = manager.lock("orders").unwrap();
    for _ in 0..5 {
        let lease = orders.try_lock(NOW).await.unwrap().expect("it is free again");
        assert!(orders.try_lock(NOW).await.unwrap().is_none());
        assert!(lease.release().await.unwrap());
    }
    service.shutdown().await.unwrap();
}

async fn nl11_a_dropped_lease_is_given_back(bench: Bench) {
    let (service, manager) = bench.service().await;
    let orders = manager.lock("orders").unwrap();
    drop(orders.lock().await.unwrap());
    let again = orders.try_lock(LONG).await.unwrap().expect("it was given back");
    again.release().await.unwrap();
    service.shutdown().await.unwrap();
    let dropped = |told: &crate::Diagnostic| matches!(told.what(), crate::What::Dropped { .. });
    assert_eq!(bench.told().iter().filter(|told| dropped(told)).count(), 1);
}

async fn n11_all_who_ask_share_one_manager(bench: Bench) {
    let (service, one) = bench.service().await;
    let other = service.manager(super::bench::ENTRY).await.unwrap();
    assert_eq!(one, other);
    let lease = one.lock("orders").unwrap().lock().await.unwrap();
    assert!(other.lock("orders").unwrap().try_lock(NOW).await.unwrap().is_none());
    lease.release().await.unwrap();
    service.shutdown().await.unwrap();
}

async fn n16_locks_and_executors_of_one_resource_exclude_each_other(bench: Bench) {
    let (service, manager) = bench.service().await;
    let lock = manager.lock("orders").unwrap().ttl(ms(60_000)).unwrap();
    let executor = manager.executor("orders").unwrap().ttl(ms(90_000)).unwrap();
    let lease = lock.lock().await.unwrap();
    assert_eq!(executor.try_run(NOW, async {}).await.unwrap(), None);
    lease.release().await.unwrap();
    let inside = executor.run(async { lock.try_lock(NOW).await.unwrap().is_none() }).await;
    assert!(inside.unwrap(), "the lock is busy while the work runs");
    service.shutdown().await.unwrap();
}

async fn n17_different_names_do_not_exclude_each_other(bench: Bench) {
    let (service, manager) = bench.service().await;
    let names =
        ["orders", "orders:sync", "orders%3Async", "orders/sync", "ORDERS", " orders", "🦀"];
    let mut leases = Vec::new();
    for name in names {
        let lock = manager.lock(name).unwrap();
        leases.push(lock.try_lock(NOW).await.unwrap().expect("a lock of its own"));
    }
    for lease in &leases {
        assert!(lease.release().await.unwrap());
    }
    service.shutdown().await.unwrap();
}

async fn n18_different_namespaces_do_not_exclude_each_other(bench: Bench) {
    let one = bench.service_with(|entry| entry.namespace("a/b")).await;
    let other = bench.service_with(|entry| entry.namespace("a")).await;
    let here = one.default_manager().unwrap().lock("c").unwrap();
    let there = other.default_manager().unwrap().lock("b/c").unwrap();
    let same = other.default_manager().unwrap().lock("c").unwrap();
    let lease = here.lock().await.unwrap();
    for lock in [there, same] {
        let lease = lock.try_lock(NOW).await.unwrap().expect("another namespace");
        lease.release().await.unwrap();
    }
    lease.release().await.unwrap();
    one.shutdown().await.unwrap();
    other.shutdown().await.unwrap();
}

async fn n18_services_on_one_store_exclude_each_other(bench: Bench) {
    let (one, here) = bench.service().await;
    let (other, there) = bench.service().await;
    let lease = here.lock("orders").unwrap().lock().await.unwrap();
    let there = there.lock("orders").unwrap();
    assert!(there.try_lock(NOW).await.unwrap().is_none());
    let mut waiter = there.lock();
    assert!(poll(&mut waiter).is_pending());
    // N33: what the other service holds and waits for is nothing of this one's.
    one.shutdown().await.unwrap();
    assert!(!lease.is_held());
    waiter.await.unwrap().release().await.unwrap();
    other.shutdown().await.unwrap();
}

async fn n19_a_lock_waits_without_a_deadline(bench: Bench) {
    let (service, manager) = bench.service().await;
    let lock = manager.lock("orders").unwrap();
    let executor = manager.executor("orders").unwrap();
    let held = lock.lock().await.unwrap();
    let mut waiting = lock.lock();
    let mut running = executor.run(async { 7 }).into_future();
    assert!(poll(&mut waiting).is_pending());
    assert!(poll(&mut running).is_pending());
    // Longer than a wait that is short by mistake.
    pass(ms(300)).await;
    assert!(poll(&mut waiting).is_pending());
    assert!(poll(&mut running).is_pending());
    held.release().await.unwrap();
    if bench.is_fair() {
        waiting.await.unwrap().release().await.unwrap();
        assert_eq!(running.await.unwrap(), 7);
    } else {
        let (waiting, running) = join(async { waiting.await?.release().await }, running).await;
        assert!(waiting.unwrap());
        assert_eq!(running.unwrap(), 7);
    }
    service.shutdown().await.unwrap();
}

async fn n21_a_release_may_win_within_the_zero_budget_and_exclusion_holds(bench: Bench) {
    let (service, manager) = bench.service().await;
    let orders = manager.lock("orders").unwrap();
    let inside = std::sync::atomic::AtomicU32::new(0);
    let (entered, busy) =
        (std::sync::atomic::AtomicU32::new(0), std::sync::atomic::AtomicU32::new(0));
    let order = std::sync::atomic::Ordering::SeqCst;
    let tasks = (0..8).map(|_| async {
        for _ in 0..20 {
            match orders.try_lock(NOW).await.unwrap() {
                Some(lease) => {
                    assert_eq!(inside.fetch_add(1, order), 0, "two at once");
                    breathe().await;
                    inside.fetch_sub(1, order);
                    entered.fetch_add(1, order);
                    lease.release().await.unwrap();
                }
                None => {
                    busy.fetch_add(1, order);
                    breathe().await;
                }
            }
        }
    });
    join_all(tasks).await;
    assert!(entered.into_inner() > 0);
    assert!(busy.into_inner() > 0, "they met");
    service.shutdown().await.unwrap();
}
