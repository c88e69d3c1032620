//! Requests, late grants and releases, call by call.

use std::time::Duration;

use futures_channel::oneshot::channel;
use leasehold_service::{
    EntryConfig, ErrorKind, Result, ServiceLease, ServiceManager, What, adapter::Wait,
};

use super::{
    adapter::{Event, Mode, Step, failure},
    stage::{Stage, Task},
};

const NOW: Duration = Duration::ZERO;

fn started() -> (Stage, ServiceManager) {
    let mut stage = Stage::started();
    let service = stage.service.clone();
    let manager = stage.run(async move { service.manager("jobs").await }).unwrap();
    (stage, manager)
}

fn lock(manager: &ServiceManager) -> Task<Result<ServiceLease>> {
    Task::new(manager.lock("orders").unwrap().lock())
}

fn held(stage: &mut Stage, manager: &ServiceManager) -> ServiceLease {
    stage.run(manager.lock("orders").unwrap().lock()).unwrap()
}

fn release_calls(stage: &Stage) -> usize {
    stage.gated.count(Event::Begun(Step::Release))
}

#[test]
fn n19_n20_n22_the_adapter_is_told_how_long_to_wait() {
    let (mut stage, manager) = started();
    let orders = manager.lock("orders").unwrap();
    for (budget, wait) in [
        (None, Wait::Forever),
        (Some(NOW), Wait::AtMost(NOW)),
        (Some(Duration::from_secs(3)), Wait::AtMost(Duration::from_secs(3))),
    ] {
        let lease = match budget {
            None => stage.run(orders.lock()).unwrap(),
            Some(budget) => stage.run(orders.try_lock(budget)).unwrap().unwrap(),
        };
        assert_eq!(stage.gated.last_request().wait, wait);
        stage.run(async move { lease.release().await }).unwrap();
    }
    stage.run(manager.executor("orders").unwrap().run(async {}).into_future()).unwrap();
    assert_eq!(stage.gated.last_request().wait, Wait::Forever);
}

#[test]
fn n7_the_adapter_is_told_the_resources_ttl_before_the_entrys() {
    let config = |ttl: Option<i64>| {
        let entry = EntryConfig::new("gated");
        ttl.map_or(entry.clone(), |ttl| entry.ttl_ms(ttl))
    };
    let ms = |ttl: leasehold_service::Ttl| ttl.as_millis();
    for (of_entry, own, told) in [
        (None, None, None),
        (Some(500), None, Some(500)),
        (Some(500), Some(200), Some(200)),
        (None, Some(200), Some(200)),
    ] {
        let mut stage = Stage::with(|all| all.entry("jobs", config(of_entry)).with_default("jobs"));
        let service = stage.service.clone();
        let service = stage.run(async move { service.start().await }).unwrap();
        let orders = service.default_manager().unwrap().lock("orders").unwrap();
        let orders = match own {
            Some(own) => orders.ttl(Duration::from_millis(own)).unwrap(),
            None => orders,
        };
        let lease = stage.run(orders.lock()).unwrap();
        assert_eq!(stage.gated.last_request().ttl.map(ms), told);
        stage.run(async move { lease.release().await }).unwrap();
    }
}

#[test]
fn n23_a_failing_store_is_not_busy() {
    let (mut stage, manager) = started();
    stage.gated.set(Step::Request, Mode::Error);
    let tried = stage.run(manager.lock("orders").unwrap().try_lock(NOW));
    assert_eq!(tried.unwrap_err(), failure());
}

#[test]
fn n24_n26_cancelled_already_the_store_is_not_asked() {
    let (mut stage, manager) = started();
    let mut polls = 0;
    let signal = std::future::poll_fn(move |_| {
        polls += 1;
        assert_eq!(polls, 1, "N24: the signal is read once");
        std::task::Poll::Ready("no")
    });
    let error = stage.run(manager.lock("orders").unwrap().lock().cancel_on(signal)).unwrap_err();
    assert!(error.is_cancelled());
    assert_eq!(stage.gated.count(Event::Begun(Step::Request)), 0);
}

#[test]
fn n26_what_was_never_polled_is_never_asked_for() {
    let (mut stage, manager) = started();
    drop(manager.lock("orders").unwrap().lock());
    stage.settle(&mut []);
    assert_eq!(stage.gated.count(Event::Begun(Step::Request)), 0);
}

#[test]
fn n28_a_late_grant_is_given_back_and_the_next_waiter_gets_it() {
    let (mut stage, manager) = started();
    stage.gated.set(Step::Request, Mode::Slow);
    let (cancel, signal) = channel::<&str>();
    let executor = manager.executor("orders").unwrap();
    let never = async { panic!("N28: the work must not run") };
    let run = executor.run(never).cancel_on(async move { signal.await.unwrap() });
    let mut leaver: Task<Result<()>> = Task::new(run.into_future());
    let mut next = lock(&manager);
    stage.settle(&mut [&mut leaver, &mut next]);
    cancel.send("changed my mind").unwrap();
    stage.settle(&mut [&mut leaver, &mut next]);
    let told = leaver.output().expect("it is told at once").as_ref().unwrap_err();
    assert!(told.is_cancelled());
    stage.gated.open(Step::Request);
    // What the leaver left behind goes first: its grant comes, and goes back.
    stage.settle(&mut []);
    assert_eq!((stage.gated.held(), release_calls(&stage)), (0, 1));
    stage.settle(&mut [&mut next]);
    assert!(next.output().unwrap().is_ok());
    let late = |what: &What| matches!(what, What::LateGrant { .. });
    assert_eq!(stage.told().iter().filter(|told| late(told.what())).count(), 1);
    assert_eq!((stage.gated.held(), stage.left()), (1, 0));
}

#[test]
fn n27_a_delivered_lease_is_not_touched_by_its_cancellation() {
    let (mut stage, manager) = started();
    let (cancel, signal) = channel::<&str>();
    let signal = async move { signal.await.unwrap_or("gone") };
    let lease = stage.run(manager.lock("orders").unwrap().lock().cancel_on(signal)).unwrap();
    assert!(cancel.send("too late").is_err(), "nobody listens any more");
    assert!(lease.is_held());
    assert_eq!((stage.gated.held(), release_calls(&stage)), (1, 0));
}

#[test]
fn n29_concurrent_releases_share_one_call_and_a_failed_one_is_retried() {
    let (mut stage, manager) = started();
    let lease = std::sync::Arc::new(held(&mut stage, &manager));
    let release = || {
        let lease = std::sync::Arc::clone(&lease);
        Task::new(async move { lease.release().await })
    };
    stage.gated.set(Step::Release, Mode::Never);
    let (mut one, mut other) = (release(), release());
    stage.settle(&mut [&mut one, &mut other]);
    stage.gated.set(Step::Release, Mode::Error);
    stage.settle(&mut [&mut one, &mut other]);
    assert_eq!(one.output(), Some(&Err(failure())));
    assert_eq!(other.output(), Some(&Err(failure())));
    assert_eq!(release_calls(&stage), 1);

    stage.gated.set(Step::Release, Mode::Ok);
    let mut again = release();
    stage.settle(&mut [&mut again]);
    assert_eq!(again.output(), Some(&Ok(true)));
    let mut repeated = release();
    stage.settle(&mut [&mut repeated]);
    assert_eq!(repeated.output(), Some(&Ok(true)));
    assert_eq!(release_calls(&stage), 2, "a success is final");
}

#[test]
fn n29_after_the_shutdown_nothing_is_retried() {
    let (mut stage, manager) = started();
    let lease = held(&mut stage, &manager);
    stage.gated.set(Step::Release, Mode::Error);
    let service = stage.service.clone();
    stage.run(async move { service.shutdown().await }).unwrap();
    assert_eq!(release_calls(&stage), 1);
    stage.gated.set(Step::Release, Mode::Ok);
    let lease = stage.run(async move {
        assert_eq!(lease.release().await, Err(failure()));
        lease
    });
    drop(lease);
    stage.settle(&mut []);
    assert_eq!(release_calls(&stage), 1);
}

#[test]
fn n30_a_failed_release_is_told_and_replaces_nothing() {
    for value in [Ok(7), Err("no stock")] {
        let (mut stage, manager) = started();
        let executor = manager.executor("orders").unwrap();
        stage.gated.set(Step::Release, Mode::Error);
        let ran = stage.run(executor.run(async move { value }).into_future());
        assert_eq!(ran.unwrap(), value);
        let failed = |what: &What| matches!(what, What::ReleaseFailed { .. });
        assert!(stage.told().iter().all(|told| failed(told.what())));
        assert!(!stage.told().is_empty());
        // Nobody is there to ask again; the shutdown does, and then it is given back.
        assert_eq!(stage.gated.held(), 1);
        stage.gated.set(Step::Release, Mode::Ok);
        let service = stage.service.clone();
        stage.run(async move { service.shutdown().await }).unwrap();
        assert_eq!(stage.gated.held(), 0);
    }
}

#[test]
fn n37_the_registry_knows_a_grant_before_its_caller_does() {
    let (mut stage, manager) = started();
    stage.gated.set(Step::Request, Mode::Slow);
    let mut waiting = lock(&manager);
    stage.settle(&mut [&mut waiting]);
    stage.gated.open(Step::Request);
    // The shutdown drives the request: it is granted, and its caller has not been polled since.
    let service = stage.service.clone();
    let mut shutdown = Task::new(async move { service.shutdown().await });
    stage.settle(&mut [&mut shutdown]);
    assert_eq!(shutdown.output(), Some(&Ok(())));
    assert_eq!((stage.gated.held(), release_calls(&stage)), (0, 1));
    stage.settle(&mut [&mut waiting]);
    let told = waiting.output().unwrap().as_ref().unwrap_err();
    assert_eq!(*told.kind(), ErrorKind::ShutDown);
}

#[test]
fn s6_a_loss_under_running_work_is_told_once_and_at_once_and_the_work_goes_on() {
    let (mut stage, manager) = started();
    let (go_on, told_to) = channel::<u32>();
    let executor = manager.executor("orders").unwrap();
    let mut running = Task::new(executor.run(async move { told_to.await.unwrap() }).into_future());
    stage.settle(&mut [&mut running]);
    stage.gated.lose();
    stage.settle(&mut [&mut running]);
    let losses = |stage: &Stage| {
        stage.told().iter().filter(|told| matches!(told.what(), What::Lost { .. })).count()
    };
    assert_eq!((losses(&stage), running.is_done()), (1, false));
    go_on.send(42).unwrap();
    stage.settle(&mut [&mut running]);
    assert_eq!(running.output(), Some(&Ok(42)));
    assert_eq!(losses(&stage), 1);
}

#[test]
fn s5_a_cancellation_that_is_added_while_it_waits_counts() {
    let (mut stage, manager) = started();
    let held = stage.run(manager.lock("orders").unwrap().lock()).unwrap();
    let mut locking = manager.lock("orders").unwrap().lock();
    let waker = std::task::Waker::noop();
    let mut cx = std::task::Context::from_waker(waker);
    assert!(std::pin::Pin::new(&mut locking).poll(&mut cx).is_pending());
    let cancelled = locking.cancel_on(std::future::ready("enough"));
    let error = stage.run(cancelled).unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::Cancelled { reason: "enough".into() });
    drop(held);
    stage.settle(&mut []);
    assert_eq!(stage.gated.held(), 0);
}
