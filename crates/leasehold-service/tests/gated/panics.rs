//! An adapter that panics spoils the call it panics in, and nothing else.

use leasehold_service::{Error, ErrorKind, What};

use super::{
    adapter::{Event, Mode, Step},
    stage::{Stage, Task},
};

fn assert_told(error: &Error) {
    assert!(matches!(error.kind(), ErrorKind::Backend), "{error}");
    assert!(error.to_string().contains("a bug in the gated adapter"), "{error}");
}

#[test]
fn a_start_that_panics_is_shared_and_can_be_tried_again() {
    let mut stage = Stage::started();
    let service = stage.service.clone();
    stage.gated.set(Step::Start, Mode::Panic);
    let first_use = || {
        let service = service.clone();
        Task::new(async move { service.manager("jobs").await.map(drop) })
    };
    let (mut one, mut other) = (first_use(), first_use());
    stage.settle(&mut [&mut one, &mut other]);
    for told in [one, other] {
        assert_told(told.output().expect("it has ended").as_ref().unwrap_err());
    }
    stage.gated.set(Step::Start, Mode::Ok);
    let again = service.clone();
    stage.run(async move { again.manager("jobs").await }).unwrap();
    stage.run(async move { service.shutdown().await }).unwrap();
}

#[test]
fn a_request_that_panics_fails_alone() {
    let mut stage = Stage::started();
    let service = stage.service.clone();
    let manager = stage.run(async move { service.manager("jobs").await }).unwrap();
    stage.gated.set(Step::Request, Mode::Panic);
    assert_told(&stage.run(manager.lock("orders").unwrap().lock()).unwrap_err());
    stage.gated.set(Step::Request, Mode::Ok);
    drop(stage.run(manager.lock("orders").unwrap().lock()).unwrap());
    assert_eq!(stage.gated.held(), 0);
    let service = stage.service.clone();
    stage.run(async move { service.shutdown().await }).unwrap();
}

#[test]
fn releases_and_a_close_that_panic_stop_nothing_of_a_shutdown() {
    let mut stage = Stage::started();
    let service = stage.service.clone();
    let manager = stage.run(async move { service.manager("jobs").await }).unwrap();
    let dropped = stage.run(manager.lock("dropped").unwrap().lock()).unwrap();
    let kept = stage.run(manager.lock("kept").unwrap().lock()).unwrap();
    stage.gated.set(Step::Release, Mode::Panic);
    assert_told(&stage.run(async move { (kept.release().await, kept) }).0.unwrap_err());
    drop(dropped);
    stage.gated.set(Step::Close, Mode::Panic);
    let service = stage.service.clone();
    let error = stage.run({
        let service = service.clone();
        async move { service.shutdown().await }
    });
    assert_told(&error.unwrap_err());
    let failed = stage
        .told()
        .iter()
        .filter(|told| matches!(told.what(), What::ReleaseFailed { .. }))
        .count();
    assert!(failed >= 2, "each is told");
    assert_eq!(stage.gated.count(Event::Ended(Step::Close)), 0);
    stage.gated.set(Step::Close, Mode::Ok);
    stage.run(async move { service.shutdown().await }).unwrap();
}
