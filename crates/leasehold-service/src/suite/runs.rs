//! Work under a lease: it runs alone, to its end, and its result is the result.

use std::sync::atomic::{AtomicU32, Ordering};

use futures_util::future::join_all;

use super::{
    Bench, Case,
    bench::{LONG, NOW, breathe, ms, pass, poll},
    case,
};

pub(super) const CASES: &[Case] = &[
    case!(nl3_runs_are_serial),
    case!(nl4_n31_a_ttl_does_not_stop_the_work),
    case!(nl10_a_lease_outlives_its_ttl_until_it_is_released),
    case!(n7_a_ttl_of_the_resource_goes_before_that_of_the_entry),
    case!(n30_a_run_gives_the_works_value_or_error),
    case!(n30_a_panic_of_the_work_frees_the_resource),
];

async fn nl3_runs_are_serial(bench: Bench) {
    let (service, manager) = bench.service().await;
    let orders = manager.executor("orders").unwrap();
    let (inside, ran) = (AtomicU32::new(0), AtomicU32::new(0));
    let runs = (0..10).map(|_| async {
        let work = async {
            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two at once");
            breathe().await;
            inside.fetch_sub(1, Ordering::SeqCst);
            ran.fetch_add(1, Ordering::SeqCst)
        };
        orders.run(work).await.unwrap()
    });
    let mut turns = join_all(runs).await;
    turns.sort_unstable();
    assert_eq!(turns, (0..10).collect::<Vec<_>>(), "each ran once");
    service.shutdown().await.unwrap();
}

async fn nl4_n31_a_ttl_does_not_stop_the_work(bench: Bench) {
    let service = bench.service_with(|entry| entry.ttl_ms(1_000)).await;
    let manager = service.default_manager().unwrap();
    let (lock, executor) = (manager.lock("orders").unwrap(), manager.executor("orders").unwrap());
    let work = async {
        for _ in 0..5 {
            // Longer than the TTL in all; renewed every third of it, which leaves a busy machine time.
            pass(ms(500)).await;
            assert!(lock.try_lock(NOW).await.unwrap().is_none(), "the work is still alone");
        }
        "done"
    };
    assert_eq!(executor.run(work).await.unwrap(), "done");
    let lease = lock.try_lock(NOW).await.unwrap().expect("free after the work");
    lease.release().await.unwrap();
    assert!(bench.told().is_empty(), "{:?}", bench.told());
    service.shutdown().await.unwrap();
}

async fn nl10_a_lease_outlives_its_ttl_until_it_is_released(bench: Bench) {
    let (service, manager) = bench.service().await;
    let orders = manager.lock("orders").unwrap().ttl(ms(1_000)).unwrap();
    let lease = orders.lock().await.unwrap();
    pass(ms(2_500)).await;
    assert!(lease.is_held());
    assert!(orders.try_lock(NOW).await.unwrap().is_none(), "held well after its TTL");
    assert!(lease.release().await.unwrap());
    let again = orders.try_lock(LONG).await.unwrap().expect("free after the release");
    again.release().await.unwrap();
    service.shutdown().await.unwrap();
}

async fn n7_a_ttl_of_the_resource_goes_before_that_of_the_entry(bench: Bench) {
    let service = bench.service_with(|entry| entry.ttl_ms(1_000)).await;
    let manager = service.default_manager().unwrap();
    let own = manager.lock("orders").unwrap().ttl(ms(60_000)).unwrap();
    let of_entry = manager.lock("orders").unwrap();
    let lease = own.lock().await.unwrap();
    let mut waiter = of_entry.lock();
    assert!(poll(&mut waiter).is_pending());
    pass(ms(1_500)).await;
    assert!(poll(&mut waiter).is_pending(), "neither TTL ends a lease that is held");
    lease.release().await.unwrap();
    waiter.await.unwrap().release().await.unwrap();
    for ttl in [ms(0), ms(1 << 31)] {
        let refused = manager.lock("orders").unwrap().ttl(ttl).unwrap_err();
        assert!(refused.to_string().contains("2147483647"), "{refused}");
        assert!(manager.executor("orders").unwrap().ttl(ttl).is_err());
    }
    service.shutdown().await.unwrap();
}

async fn n30_a_run_gives_the_works_value_or_error(bench: Bench) {
    let (service, manager) = bench.service().await;
    let orders = manager.executor("orders").unwrap();
    assert_eq!(orders.run(async { Ok::<_, &str>(7) }).await.unwrap(), Ok(7));
    assert_eq!(orders.run(async { Err::<u8, _>("no stock") }).await.unwrap(), Err("no stock"));
    assert_eq!(orders.try_run(LONG, async { 8 }).await.unwrap(), Some(8));
    let free = manager.lock("orders").unwrap().try_lock(NOW).await.unwrap();
    free.expect("free after each of them").release().await.unwrap();
    service.shutdown().await.unwrap();
}

async fn n30_a_panic_of_the_work_frees_the_resource(bench: Bench) {
    use futures_util::FutureExt;
    let (service, manager) = bench.service().await;
    let orders = manager.executor("orders").unwrap();
    let run = orders.run(async { std::panic::resume_unwind(Box::new("on purpose")) }).into_future();
    let caught = std::panic::AssertUnwindSafe(run).catch_unwind().await;
    let payload = caught.map(|ran: crate::Result<()>| ran).unwrap_err();
    assert_eq!(payload.downcast_ref(), Some(&"on purpose"));
    assert_eq!(orders.try_run(LONG, async { 8 }).await.unwrap(), Some(8));
    service.shutdown().await.unwrap();
}
