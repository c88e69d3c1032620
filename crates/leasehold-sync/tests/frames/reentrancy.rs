//! A request for what an enclosing frame holds is told at once (rule R2).

use std::{pin::pin, sync::Arc, time::Duration};

use leasehold_sync::{Error, LockKind, Mutex, RwLock, scope};

use crate::{done, pause, ready, reentrant, waits};

#[test]
fn ao15_a_write_within_a_write_is_told_with_both_places() {
    let lock = RwLock::new(1);
    let again = async || {
        pause().await;
        lock.run_exclusive(async |_| ()).await
    };
    let inner = line!() - 2;
    let mut told = pin!(lock.run_exclusive(async |_| again().await));
    let outer = line!() - 1;
    waits(told.as_mut());
    let told = done(told);
    let error = told.unwrap().unwrap_err();
    assert_eq!(reentrant(&error), (outer, inner));
    assert_eq!(error.lock_kind(), LockKind::Write);
    assert!(error.to_string().starts_with("read-write lock (write): asked for at "), "{error}");
    // Nothing is left behind: the lock is free.
    assert!(lock.try_write().is_some());
}

#[test]
fn ao16_ao17_a_read_within_a_write_and_a_write_within_a_read_are_told() {
    let lock = RwLock::new(1);
    let told = ready(lock.run_exclusive(async |_| lock.run_shared(async |_| ()).await));
    assert_eq!(told.unwrap().unwrap_err().lock_kind(), LockKind::Read);
    let told = ready(lock.run_shared(async |_| lock.run_exclusive(async |_| ()).await));
    assert_eq!(told.unwrap().unwrap_err().lock_kind(), LockKind::Write);
    assert!(!lock.is_locked());
}

#[test]
fn a_mutex_within_itself_is_told_and_the_outer_work_goes_on() {
    let mutex = Mutex::new(1);
    let told = ready(mutex.run_exclusive(async |n| {
        let inner = mutex.run_exclusive(async |n| *n).await;
        *n += 1;
        inner
    }));
    assert!(told.unwrap().unwrap_err().is_reentrant());
    assert_eq!(mutex.into_inner(), 2);
}

#[test]
fn ao20_reentrancy_is_told_after_an_await() {
    let mutex = Mutex::new(1);
    let mut work = pin!(mutex.run_exclusive(async |_| {
        pause().await;
        mutex.run_exclusive(async |_| ()).await
    }));
    waits(work.as_mut());
    assert!(done(work).unwrap().unwrap_err().is_reentrant());
}

#[test]
fn ao21_reentrancy_is_told_across_several_objects() {
    struct Account {
        lock: Mutex<u32>,
    }
    impl Account {
        async fn pay(&self, to: &Self, back: bool) -> Result<u32, Error> {
            let inner = async |n: &mut u32| {
                *n += 1;
                match back {
                    true => Box::pin(to.pay(self, true)).await,
                    false => Ok(*n),
                }
            };
            self.lock.run_exclusive(inner).await?
        }
    }
    let (a, b) = (Account { lock: Mutex::new(0) }, Account { lock: Mutex::new(0) });
    // A pays B, which pays back into A, which is held by the chain.
    assert!(ready(a.pay(&b, true)).unwrap_err().is_reentrant());
    assert_eq!(ready(b.pay(&a, false)), Ok(2));
}

#[test]
fn the_outer_of_several_locks_is_found_too() {
    let (a, b, c) = (Mutex::new(0), RwLock::new(0), Mutex::new(0));
    let told = ready(a.run_exclusive(async |_| {
        let inner = b.run_shared(async |_| {
            scope(c.run_exclusive(async |_| a.run_exclusive(async |_| ()).await)).await
        });
        inner.await
    }));
    assert!(told.unwrap().unwrap().unwrap().unwrap_err().is_reentrant());
}

#[test]
fn another_lock_of_the_same_type_is_granted() {
    let (a, b) = (Mutex::new(1), Mutex::new(2));
    let sum = ready(a.run_exclusive(async |a| b.run_exclusive(async |b| *a + *b).await));
    assert_eq!(sum, Ok(Ok(3)));
}

#[test]
fn after_the_release_it_is_granted_again() {
    let mutex = Mutex::new(1);
    ready(scope(async {
        mutex.run_exclusive(async |n| *n += 1).await.unwrap();
        mutex.run_exclusive(async |n| *n += 1).await.unwrap();
    }));
    assert_eq!(mutex.into_inner(), 3);
}

#[test]
fn two_tasks_are_no_reentrancy() {
    let mutex = Mutex::new(1);
    let mut one = pin!(mutex.run_exclusive(async |_| pause().await));
    let mut two = pin!(mutex.run_exclusive(async |_| ()));
    waits(one.as_mut());
    waits(two.as_mut());
    assert_eq!(done(one), Ok(()));
    assert_eq!(done(two), Ok(()));
}

#[test]
fn the_options_of_a_request_are_checked_too() {
    let lock = Arc::new(RwLock::new(1));
    let mutex = Mutex::new(1);
    let told = ready(mutex.run_exclusive(async |_| {
        let timed = mutex.lock().timeout(Duration::ZERO).run(async |_| ()).await;
        let cancelled = mutex.lock().cancel_on(std::future::ready("why")).run(async |_| ()).await;
        let wished = mutex.lock().cancel_on(std::future::pending::<()>()).run(async |_| ()).await;
        (timed, cancelled, wished, mutex.lock().run(async |_| ()).await)
    }));
    let (timed, cancelled, wished, plain) = told.unwrap();
    assert!(timed.unwrap_err().is_reentrant() && wished.unwrap_err().is_reentrant());
    assert!(cancelled.unwrap_err().is_cancelled() && plain.unwrap_err().is_reentrant());
    let read = ready(
        lock.write()
            .timeout(Duration::ZERO)
            .run(async |_| lock.read().timeout(Duration::ZERO).run(async |n| *n).await),
    );
    assert!(read.unwrap().unwrap_err().is_reentrant());
}

#[test]
fn a_panic_takes_the_frame_along() {
    let mutex = Mutex::new(1);
    let panics = std::panic::AssertUnwindSafe(|| {
        ready(mutex.run_exclusive(async |_| panic!("on purpose"))).unwrap_or(())
    });
    assert!(std::panic::catch_unwind(panics).is_err());
    assert_eq!(ready(mutex.run_exclusive(async |n| *n)), Ok(1));
}

#[test]
fn ae1_the_errors_are_errors_of_the_platform() {
    fn is_an_error<E: std::error::Error + Send + Sync + 'static>(_: &E) {}
    let mutex = Mutex::new(1);
    let told = ready(mutex.run_exclusive(async |_| mutex.run_exclusive(async |_| ()).await));
    let error = told.unwrap().unwrap_err();
    is_an_error(&error);
    assert!(!error.is_timeout() && !error.is_cancelled() && error.clone() == error);
}

#[test]
fn a_work_that_can_be_spawned_can_be_spawned_in_its_frames() {
    fn is_send<F: Send>(future: F) -> F {
        future
    }
    let (lock, mutex) = (RwLock::new(1), Mutex::new(1));
    let mut nested = pin!(is_send(scope(async {
        let inner = lock.run_shared(async |n| {
            pause().await;
            mutex.run_exclusive(async |m| *m + *n).await
        });
        inner.await
    })));
    waits(nested.as_mut());
    assert_eq!(done(nested), Ok(Ok(2)));
}
