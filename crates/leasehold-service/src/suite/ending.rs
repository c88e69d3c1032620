//! Shutdown: new requests are refused, waits end, leases go back also under running work.

use futures_util::future::{join, join_all};

use super::{
    Bench, Case,
    bench::{NOW, poll},
    case,
};
use crate::{ErrorKind, adapter::Reach};

pub(super) const CASES: &[Case] = &[
    case!(n23_n33_a_shutdown_refuses_and_interrupts),
    case!(n31_n33_leases_go_back_under_running_work),
    case!(n33_what_was_held_is_free_for_another_service, Some(Reach::Shared)),
    case!(n33_a_thousand_runs_and_a_thousand_waiters_end),
    case!(n34_concurrent_shutdowns_share_one_result),
];

fn is_shut_down(error: &crate::Error) -> bool {
    *error.kind() == ErrorKind::ShutDown
}

async fn n23_n33_a_shutdown_refuses_and_interrupts(bench: Bench) {
    let (service, manager) = bench.service().await;
    let orders = manager.lock("orders").unwrap();
    let executor = manager.executor("orders").unwrap();
    let held = orders.lock().await.unwrap();
    let mut waiting = orders.lock();
    let mut trying = orders.try_lock(std::time::Duration::from_secs(30));
    let mut running = executor.run(async { panic!("the work must not run") }).into_future();
    assert!(poll(&mut waiting).is_pending());
    assert!(poll(&mut trying).is_pending());
    assert!(poll(&mut running).is_pending());
    let lost = held.lost();
    let mut lost = std::pin::pin!(lost);
    assert!(poll(&mut lost).is_pending());
    service.shutdown().await.unwrap();
    assert!(is_shut_down(&waiting.await.unwrap_err()));
    assert!(is_shut_down(&trying.await.unwrap_err()), "busy is never a shutdown");
    assert!(is_shut_down(&running.await.unwrap_err()));
    assert!(matches!(lost.await.kind(), ErrorKind::Lost { .. }));
    assert!(!held.is_held());
    assert!(is_shut_down(&orders.lock().await.unwrap_err()));
    assert!(is_shut_down(&orders.try_lock(NOW).await.unwrap_err()));
    assert!(is_shut_down(&service.manager(super::bench::ENTRY).await.unwrap_err()));
    assert!(is_shut_down(&service.default_manager().unwrap_err()));
    assert!(is_shut_down(&service.start().await.unwrap_err()));
}

async fn n31_n33_leases_go_back_under_running_work(bench: Bench) {
    let (service, manager) = bench.service().await;
    let executor = manager.executor("orders").unwrap();
    let (go_on, gate) = futures_channel::oneshot::channel::<()>();
    let began = std::sync::atomic::AtomicBool::new(false);
    let work = async {
        began.store(true, std::sync::atomic::Ordering::SeqCst);
        gate.await.map(|()| "done")
    };
    let mut running = executor.run(work).into_future();
    let runs = std::future::poll_fn(|cx| {
        assert!(running.as_mut().poll(cx).is_pending());
        match began.load(std::sync::atomic::Ordering::SeqCst) {
            true => std::task::Poll::Ready(()),
            false => std::task::Poll::Pending,
        }
    });
    runs.await;
    service.shutdown().await.unwrap();
    assert!(poll(&mut running).is_pending(), "the work goes on");
    go_on.send(()).unwrap();
    assert_eq!(running.await.unwrap(), Ok("done"));
}

async fn n33_what_was_held_is_free_for_another_service(bench: Bench) {
    let (one, here) = bench.service().await;
    let (other, there) = bench.service().await;
    let lease = here.lock("orders").unwrap().lock().await.unwrap();
    let orders = there.lock("orders").unwrap();
    assert!(orders.try_lock(NOW).await.unwrap().is_none());
    one.shutdown().await.unwrap();
    let next = orders.try_lock(NOW).await.unwrap().expect("the shutdown gave it back");
    assert!(!lease.release().await.is_ok_and(|held| held && lease.is_held()));
    assert!(next.is_held());
    next.release().await.unwrap();
    other.shutdown().await.unwrap();
}

async fn n33_a_thousand_runs_and_a_thousand_waiters_end(bench: Bench) {
    const MANY: usize = 1_000;
    let (service, manager) = bench.service().await;
    let (open, gate) = futures_channel::oneshot::channel::<()>();
    let gate = futures_util::FutureExt::shared(gate);
    let started = std::sync::atomic::AtomicUsize::new(0);
    let runs = (0..MANY).map(|number| {
        let executor = manager.executor(&format!("orders {number}")).unwrap();
        let gate = gate.clone();
        let started = &started;
        async move {
            let work = async {
                started.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                let _ = gate.await;
                number
            };
            executor.run(work).await.unwrap()
        }
    });
    let mut runs = Box::pin(join_all(runs));
    let pending = std::future::poll_fn(|cx| {
        assert!(runs.as_mut().poll(cx).is_pending());
        match started.load(std::sync::atomic::Ordering::SeqCst) {
            MANY => std::task::Poll::Ready(()),
            _ => std::task::Poll::Pending,
        }
    });
    pending.await;
    let mut waiters: Vec<_> =
        (0..MANY).map(|number| manager.lock(&format!("orders {number}")).unwrap().lock()).collect();
    for waiter in &mut waiters {
        assert!(poll(waiter).is_pending());
    }
    service.shutdown().await.unwrap();
    for waiter in join_all(waiters).await {
        assert!(is_shut_down(&waiter.unwrap_err()));
    }
    assert!(bench.told().is_empty(), "nothing failed and nothing was left: {:?}", bench.told());
    open.send(()).unwrap();
    assert_eq!(runs.await, (0..MANY).collect::<Vec<_>>(), "the work went on to its end");
}

async fn n34_concurrent_shutdowns_share_one_result(bench: Bench) {
    let (service, manager) = bench.service().await;
    let lease = manager.lock("orders").unwrap().lock().await.unwrap();
    let (one, other) = join(service.shutdown(), service.clone().shutdown()).await;
    one.unwrap();
    other.unwrap();
    service.shutdown().await.unwrap();
    assert!(!lease.is_held());
}
