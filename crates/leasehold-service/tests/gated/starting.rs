//! Boot, start and first use.

use leasehold_service::{ErrorKind, LockService, Result, ServiceManager, What};

use super::{
    adapter::{Event, Mode, Step, failure},
    stage::{Stage, Task},
};

fn manager(stage: &Stage) -> Task<Result<ServiceManager>> {
    let service = stage.service.clone();
    Task::new(async move { service.manager("jobs").await })
}

#[test]
fn n12_concurrent_first_uses_share_one_start() {
    let mut stage = Stage::started();
    stage.gated.set(Step::Start, Mode::Slow);
    let (mut one, mut other) = (manager(&stage), manager(&stage));
    stage.settle(&mut [&mut one, &mut other]);
    assert!(!one.is_done() && !other.is_done());
    stage.gated.open(Step::Start);
    stage.settle(&mut [&mut one, &mut other]);
    let (one, other) = (one.output().unwrap(), other.output().unwrap());
    assert_eq!(one.as_ref().unwrap(), other.as_ref().unwrap(), "N11: one manager");
    assert_eq!(stage.gated.count(Event::Begun(Step::Start)), 1);
}

#[test]
fn n12_who_began_the_start_may_leave() {
    let mut stage = Stage::started();
    stage.gated.set(Step::Start, Mode::Slow);
    let (mut one, mut other) = (manager(&stage), manager(&stage));
    stage.settle(&mut [&mut one, &mut other]);
    one.drop_it();
    stage.gated.open(Step::Start);
    stage.settle(&mut [&mut other]);
    assert!(matches!(other.output(), Some(Ok(_))));
    assert_eq!(
        stage.gated.events(),
        [Event::Created, Event::Begun(Step::Start), Event::Ended(Step::Start),]
    );
}

#[test]
fn n13_n15_only_the_default_entry_starts_eagerly() {
    let mut lazy = Stage::started();
    assert_eq!(lazy.gated.events(), [Event::Created], "boot and start asked nothing of it");
    lazy.run({
        let service = lazy.service.clone();
        async move { service.shutdown().await }
    })
    .unwrap();
    assert_eq!(lazy.gated.events(), [Event::Created], "what was not opened is not closed");

    let mut eager = Stage::with(|config| config.with_default("jobs"));
    assert_eq!(eager.gated.events(), [Event::Created], "N15: boot does no I/O");
    let service = eager.service.clone();
    eager.run(async move { service.start().await }).unwrap();
    assert_eq!(eager.gated.count(Event::Ended(Step::Start)), 1);
}

#[test]
fn n1_before_the_start_it_is_not_ready() {
    let mut stage = Stage::new();
    let is_not_ready = |error: &leasehold_service::Error| *error.kind() == ErrorKind::NotReady;
    assert!(is_not_ready(&stage.service.default_manager().unwrap_err()));
    let mut early = manager(&stage);
    stage.settle(&mut [&mut early]);
    assert!(is_not_ready(early.output().unwrap().as_ref().unwrap_err()));
    assert_eq!(stage.gated.events(), [Event::Created]);
}

#[test]
fn n4_an_entry_that_is_not_there_is_named_with_those_that_are() {
    let mut stage = Stage::started();
    let service = stage.service.clone();
    let error = stage.run(async move { service.manager("job").await }).unwrap_err();
    assert_eq!(error.to_string(), "no enabled entry is called \"job\"; there are jobs, local");
    assert!(matches!(error.kind(), ErrorKind::InvalidArgument { .. }));
}

#[test]
fn n12_a_failed_start_is_told_and_does_not_poison_the_next() {
    let mut stage = Stage::started();
    stage.gated.set(Step::Start, Mode::Error);
    let mut first = manager(&stage);
    stage.settle(&mut [&mut first]);
    assert_eq!(first.output().unwrap().as_ref().unwrap_err(), &failure());
    assert!(
        matches!(stage.told()[..], [ref told] if matches!(told.what(), What::StartFailed { .. }))
    );
    stage.gated.set(Step::Start, Mode::Ok);
    let mut second = manager(&stage);
    stage.settle(&mut [&mut second]);
    assert!(second.output().unwrap().is_ok());
    assert_eq!(stage.gated.count(Event::Begun(Step::Start)), 2);
}

#[test]
fn n38_an_instance_is_there_before_its_start_and_a_failed_start_can_be_shut_down() {
    let mut stage = Stage::with(|config| config.with_default("jobs"));
    stage.gated.set(Step::Start, Mode::Error);
    let service = stage.service.clone();
    assert_eq!(stage.run(async move { service.start().await.map(drop) }), Err(failure()));
    let service = stage.service.clone();
    stage.run(async move { service.shutdown().await }).unwrap();
    assert_eq!(
        stage.gated.events(),
        [
            Event::Created,
            Event::Begun(Step::Start),
            Event::Failed(Step::Start),
            Event::Begun(Step::Close),
            Event::Ended(Step::Close),
        ]
    );
}

#[test]
fn n35_a_start_that_meets_a_shutdown_opens_nothing() {
    let mut stage = Stage::started();
    stage.gated.set(Step::Start, Mode::Slow);
    let mut first = manager(&stage);
    stage.settle(&mut [&mut first]);
    let service = stage.service.clone();
    let mut shutdown = Task::new(async move { service.shutdown().await });
    stage.settle(&mut [&mut first, &mut shutdown]);
    assert_eq!(shutdown.output(), Some(&Ok(())));
    let error = first.output().unwrap().as_ref().unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::ShutDown);
    stage.gated.open(Step::Start);
    let mut late = manager(&stage);
    stage.settle(&mut [&mut late]);
    assert_eq!(*late.output().unwrap().as_ref().unwrap_err().kind(), ErrorKind::ShutDown);
    assert_eq!(
        stage.gated.events()[1..],
        [
            Event::Begun(Step::Start),
            Event::Dropped(Step::Start),
            Event::Begun(Step::Close),
            Event::Ended(Step::Close),
        ]
    );
}

#[test]
fn n35_a_shutdown_before_the_start_is_final() {
    let mut stage = Stage::new();
    let service: LockService = stage.service.clone();
    stage.run(async move { service.shutdown().await }).unwrap();
    let service = stage.service.clone();
    let error = stage.run(async move { service.start().await }).unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::ShutDown);
    assert_eq!(stage.gated.events(), [Event::Created]);
}
