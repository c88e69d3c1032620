//! Shutdown, call by call.

use std::{sync::Arc, time::Duration};

use leasehold_service::{ErrorKind, Result, ServiceLease, ServiceManager, What};

use super::{
    adapter::{Event, Mode, Step, failure},
    stage::{Stage, Task},
};

fn started() -> (Stage, ServiceManager) {
    let mut stage = Stage::started();
    let service = stage.service.clone();
    let manager = stage.run(async move { service.manager("jobs").await }).unwrap();
    (stage, manager)
}

fn shutdown(stage: &Stage) -> Task<Result<()>> {
    let service = stage.service.clone();
    Task::new(async move { service.shutdown().await })
}

fn hold(stage: &mut Stage, manager: &ServiceManager, name: &str) -> ServiceLease {
    stage.run(manager.lock(name).unwrap().lock()).unwrap()
}

#[test]
fn n33_one_failing_release_does_not_stop_the_others() {
    let (mut stage, manager) = started();
    let leases: Vec<_> =
        ["a", "b", "c"].into_iter().map(|name| hold(&mut stage, &manager, name)).collect();
    stage.gated.fail_release_of("shop/mutex/b");
    let mut ended = shutdown(&stage);
    stage.settle(&mut [&mut ended]);
    assert_eq!(ended.output(), Some(&Ok(())));
    assert_eq!(stage.gated.held(), 1, "the one that failed");
    assert_eq!(stage.gated.count(Event::Begun(Step::Release)), 3);
    let failed = |what: &What| matches!(what, What::ReleaseFailed { lock, .. } if lock.name().as_str() == "b");
    assert_eq!(stage.told().iter().filter(|told| failed(told.what())).count(), 1);
    drop(leases);
}

#[test]
fn n31_n33_a_shutdown_gives_back_under_running_work_after_telling_the_loss() {
    let (mut stage, manager) = started();
    let lease = Arc::new(hold(&mut stage, &manager, "orders"));
    stage.gated.set(Step::Release, Mode::Slow);
    let watched = Arc::clone(&lease);
    let mut lost = Task::new(async move { watched.lost().await });
    let mut ended = shutdown(&stage);
    stage.settle(&mut [&mut lost, &mut ended]);
    let why = lost.output().expect("told before the release has come back");
    assert!(matches!(why.kind(), ErrorKind::Lost { .. }));
    assert!(!ended.is_done() && !lease.is_held());
    stage.gated.open(Step::Release);
    stage.settle(&mut [&mut ended]);
    assert_eq!(ended.output(), Some(&Ok(())));
}

#[test]
fn n34_concurrent_shutdowns_share_one_close_and_a_failed_one_is_retried() {
    let (mut stage, _manager) = started();
    stage.gated.set(Step::Close, Mode::Never);
    let (mut one, mut other) = (shutdown(&stage), shutdown(&stage));
    stage.settle(&mut [&mut one, &mut other]);
    stage.gated.set(Step::Close, Mode::Error);
    stage.settle(&mut [&mut one, &mut other]);
    assert_eq!(one.output(), Some(&Err(failure())));
    assert_eq!(other.output(), Some(&Err(failure())));
    assert_eq!(stage.gated.count(Event::Begun(Step::Close)), 1);
    stage.gated.set(Step::Close, Mode::Ok);
    for _ in 0..2 {
        let mut again = shutdown(&stage);
        stage.settle(&mut [&mut again]);
        assert_eq!(again.output(), Some(&Ok(())));
    }
    assert_eq!(stage.gated.count(Event::Begun(Step::Close)), 2, "a success is final");
}

#[test]
fn n34_who_began_the_shutdown_may_leave() {
    let (mut stage, _manager) = started();
    stage.gated.set(Step::Close, Mode::Slow);
    let mut one = shutdown(&stage);
    stage.settle(&mut [&mut one]);
    one.drop_it();
    stage.gated.open(Step::Close);
    let mut other = shutdown(&stage);
    stage.settle(&mut [&mut other]);
    assert_eq!(other.output(), Some(&Ok(())));
    assert_eq!(stage.gated.count(Event::Begun(Step::Close)), 1);
}

#[test]
fn n36_requests_settle_before_leases_are_released_and_the_store_is_closed() {
    let (mut stage, manager) = started();
    let lease = hold(&mut stage, &manager, "held");
    stage.gated.set(Step::Request, Mode::Slow);
    let mut late = Task::new(manager.lock("late").unwrap().lock());
    stage.settle(&mut [&mut late]);
    let before = stage.gated.events().len();
    let mut ended = shutdown(&stage);
    stage.settle(&mut [&mut late, &mut ended]);
    let told = late.output().expect("its caller is told at once").as_ref().unwrap_err();
    assert_eq!(*told.kind(), ErrorKind::ShutDown);
    assert!(lease.is_held(), "nothing is given back while a request is on its way");
    assert_eq!(stage.gated.events().len(), before);
    stage.gated.open(Step::Request);
    stage.settle(&mut [&mut ended]);
    assert_eq!(ended.output(), Some(&Ok(())));
    assert_eq!(
        stage.gated.events()[before..],
        [
            Event::Ended(Step::Request),
            Event::Begun(Step::Release),
            Event::Ended(Step::Release),
            Event::Begun(Step::Release),
            Event::Ended(Step::Release),
            Event::Begun(Step::Close),
            Event::Ended(Step::Close),
        ]
    );
}

#[test]
fn n33_what_never_settles_is_left_behind_and_told() {
    let (mut stage, manager) = started();
    stage.gated.set(Step::Request, Mode::Never);
    let mut waiting = Task::new(manager.lock("orders").unwrap().lock());
    stage.settle(&mut [&mut waiting]);
    let mut ended = shutdown(&stage);
    stage.settle(&mut [&mut waiting, &mut ended]);
    for _ in 0..2 {
        assert!(!ended.is_done());
        stage.clock.advance(Duration::from_secs(5));
        stage.settle(&mut [&mut ended]);
    }
    assert_eq!(ended.output(), Some(&Ok(())));
    let left = |what: &What| matches!(what, What::Unsettled { count: 1 });
    assert_eq!(stage.told().iter().filter(|told| left(told.what())).count(), 1);
}

#[test]
fn n33_a_close_that_never_ends_is_a_failure() {
    let (mut stage, _manager) = started();
    stage.gated.set(Step::Close, Mode::Never);
    let mut ended = shutdown(&stage);
    stage.settle(&mut [&mut ended]);
    stage.clock.advance(Duration::from_secs(5));
    stage.settle(&mut [&mut ended]);
    let error = ended.output().unwrap().as_ref().unwrap_err();
    assert!(error.to_string().contains("did not close within 5s"), "{error}");
}
