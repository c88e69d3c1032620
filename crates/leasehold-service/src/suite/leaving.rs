//! Callers that leave: they affect themselves and nobody else.

use futures_util::future::join_all;

use super::{
    Bench, Case,
    bench::{LONG, NOW, poll},
    case,
};
use crate::ErrorKind;

pub(super) const CASES: &[Case] = &[
    case!(n23_a_cancelled_try_is_not_busy),
    case!(n25_a_cancelled_waiter_leaves_the_others_as_they_are),
    case!(n26_cancelled_before_the_call_fails_even_when_free),
    case!(n27_a_cancellation_after_delivery_changes_nothing),
    case!(n28_a_waiter_that_left_is_skipped_and_runs_nothing),
    case!(n29_a_release_is_done_once_for_all_who_ask),
];

fn cancelled(error: &crate::Error) -> bool {
    matches!(error.kind(), ErrorKind::Cancelled { reason } if reason == "changed my mind")
}

async fn n23_a_cancelled_try_is_not_busy(bench: Bench) {
    let (service, manager) = bench.service().await;
    let orders = manager.lock("orders").unwrap();
    let held = orders.lock().await.unwrap();
    let (cancel, signal) = futures_channel::oneshot::channel::<()>();
    let signal = async move {
        signal.await.unwrap();
        "changed my mind"
    };
    let mut attempt = orders.try_lock(LONG).cancel_on(signal);
    assert!(poll(&mut attempt).is_pending());
    cancel.send(()).unwrap();
    assert!(cancelled(&attempt.await.unwrap_err()));
    held.release().await.unwrap();
    service.shutdown().await.unwrap();
}

async fn n25_a_cancelled_waiter_leaves_the_others_as_they_are(bench: Bench) {
    let (service, manager) = bench.service().await;
    let orders = manager.lock("orders").unwrap();
    let held = orders.lock().await.unwrap();
    let (cancel, signal) = futures_channel::oneshot::channel::<&str>();
    let order = std::sync::Mutex::new(Vec::new());
    let enter = |turn: u32, waiter: crate::Locking| {
        let order = &order;
        async move {
            let lease = waiter.await.unwrap();
            order.lock().unwrap().push(turn);
            lease.release().await.unwrap();
        }
    };
    let mut waiters = [orders.lock(), orders.lock(), orders.lock()];
    for waiter in &mut waiters {
        assert!(poll(waiter).is_pending());
    }
    let mut leaver = orders.lock().cancel_on(async move { signal.await.unwrap() });
    assert!(poll(&mut leaver).is_pending());
    let mut last = orders.lock();
    assert!(poll(&mut last).is_pending());
    cancel.send("changed my mind").unwrap();
    assert!(cancelled(&leaver.await.unwrap_err()));
    held.release().await.unwrap();
    let waiters =
        waiters.into_iter().chain([last]).zip(0..).map(|(waiter, turn)| enter(turn, waiter));
    join_all(waiters).await;
    let mut order = order.into_inner().unwrap();
    if !bench.is_fair() {
        order.sort_unstable();
    }
    assert_eq!(order, [0, 1, 2, 3]);
    service.shutdown().await.unwrap();
}

async fn n26_cancelled_before_the_call_fails_even_when_free(bench: Bench) {
    let (service, manager) = bench.service().await;
    let orders = manager.lock("orders").unwrap();
    let already = || std::future::ready("changed my mind");
    assert!(cancelled(&orders.lock().cancel_on(already()).await.unwrap_err()));
    assert!(cancelled(&orders.try_lock(NOW).cancel_on(already()).await.unwrap_err()));
    let executor = manager.executor("orders").unwrap();
    let never = async { panic!("the work must not run") };
    assert!(cancelled(&executor.run(never).cancel_on(already()).await.unwrap_err()));
    service.shutdown().await.unwrap();
}

async fn n27_a_cancellation_after_delivery_changes_nothing(bench: Bench) {
    let (service, manager) = bench.service().await;
    let orders = manager.lock("orders").unwrap();
    let (cancel, signal) = futures_channel::oneshot::channel::<()>();
    let lease =
        orders.lock().cancel_on(async move { signal.await.map_or("gone", |()| "cancelled") });
    let lease = lease.await.unwrap();
    // Nobody listens to it any more.
    let _ = cancel.send(());
    assert!(lease.is_held());
    assert!(orders.try_lock(NOW).await.unwrap().is_none());
    lease.release().await.unwrap();

    let (cancel, signal) = futures_channel::oneshot::channel::<()>();
    let work = async move {
        let _ = cancel.send(());
        super::bench::breathe().await;
        "done"
    };
    let executor = manager.executor("orders").unwrap();
    let ran =
        executor.run(work).cancel_on(async move { signal.await.map_or("gone", |()| "cancelled") });
    assert_eq!(ran.await.unwrap(), "done");
    service.shutdown().await.unwrap();
}

async fn n28_a_waiter_that_left_is_skipped_and_runs_nothing(bench: Bench) {
    let (service, manager) = bench.service().await;
    let orders = manager.lock("orders").unwrap();
    let executor = manager.executor("orders").unwrap();
    let held = orders.lock().await.unwrap();
    let never = || async { panic!("the work must not run") };
    let (cancel, signal) = futures_channel::oneshot::channel::<&str>();
    let mut leaver =
        executor.run(never()).cancel_on(async move { signal.await.unwrap() }).into_future();
    let mut dropped = executor.run(never()).into_future();
    let mut next = orders.lock();
    assert!(poll(&mut leaver).is_pending());
    assert!(poll(&mut dropped).is_pending());
    assert!(poll(&mut next).is_pending());
    cancel.send("changed my mind").unwrap();
    assert!(cancelled(&leaver.await.unwrap_err()));
    drop(dropped);
    held.release().await.unwrap();
    next.await.unwrap().release().await.unwrap();
    service.shutdown().await.unwrap();
}

async fn n29_a_release_is_done_once_for_all_who_ask(bench: Bench) {
    let (service, manager) = bench.service().await;
    let orders = manager.lock("orders").unwrap();
    let lease = orders.lock().await.unwrap();
    let released = join_all((0..4).map(|_| lease.release())).await;
    assert!(released.into_iter().all(|released| released.unwrap()));
    assert!(lease.release().await.unwrap(), "a later call repeats the result");
    let next = orders.try_lock(LONG).await.unwrap().expect("given back");
    lease.release().await.unwrap();
    assert!(next.is_held());
    next.release().await.unwrap();
    service.shutdown().await.unwrap();
}
