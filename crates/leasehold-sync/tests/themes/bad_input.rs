//! Arguments that no lock can grant are refused at once, and change nothing (rules Q5 and W6).

use leasehold_sync::{CapacityError, Error, ErrorKind, LockKind, Mutex, RwLock, Semaphore};

use crate::ready;

fn message(error: &Error) -> &str {
    match error.kind() {
        ErrorKind::InvalidArgument { message } => message,
        kind => panic!("{kind:?}"),
    }
}

#[test]
fn capacities() {
    assert_eq!(Semaphore::new(0).unwrap_err(), CapacityError::NoPermits);
    let above = CapacityError::AboveMax { capacity: 1 << 31 };
    assert_eq!(Semaphore::new(1 << 31).unwrap_err(), above);
    assert!(Semaphore::new((1 << 31) - 1).is_ok());
    // acceptance R21
    let none = RwLock::with_max_readers((), 0).unwrap_err();
    assert_eq!(none.to_string(), "max readers must be greater than 0");
    assert!(RwLock::with_max_readers((), 1 << 31).is_err());
    let error = Error::from(none);
    assert!(!error.is_timeout() && !error.is_cancelled() && !error.is_retryable());
    assert_eq!(message(&error), "max readers must be greater than 0");
}

#[test]
fn weights_on_a_free_semaphore() {
    let semaphore = Semaphore::new(2).unwrap();
    let error = ready(semaphore.acquire_many(0)).unwrap_err();
    assert_eq!(message(&error), "a weight must be greater than 0");
    let error = ready(semaphore.acquire_many(3)).unwrap_err();
    assert_eq!(message(&error), "a weight of 3 is above the capacity of 2");
    assert_eq!(error.lock_kind(), LockKind::Semaphore);
    assert!(semaphore.try_acquire_many(0).is_err());
    assert!(semaphore.try_acquire_many(3).is_err());
    assert_eq!((semaphore.available_permits(), semaphore.queued()), (2, 0));
}

#[test]
fn weights_on_a_busy_semaphore() {
    let semaphore = Semaphore::new(2).unwrap();
    let held = ready(semaphore.acquire_many(2)).unwrap();
    assert!(ready(semaphore.acquire_many(0)).is_err());
    assert!(ready(semaphore.acquire_many(3)).is_err());
    assert!(semaphore.try_acquire_many(3).is_err());
    assert!(semaphore.blocking_acquire_many(3).is_err());
    assert!(semaphore.try_acquire_many(2).unwrap().is_none());
    assert_eq!(semaphore.queued(), 0);
    drop(held);
}

#[test]
fn a_weight_of_zero_is_refused_by_a_semaphore_of_one() {
    let semaphore = Semaphore::new(1).unwrap();
    assert!(ready(semaphore.acquire_many(0)).is_err());
    assert!(semaphore.try_acquire_many(0).is_err());
}

#[test]
fn arguments_come_before_a_cancellation() {
    let semaphore = Semaphore::new(1).unwrap();
    let error = ready(semaphore.acquire_many(2).cancel_on(std::future::ready("stop"))).unwrap_err();
    assert!(!error.is_cancelled());
}

#[test]
fn errors_name_the_lock_by_kind_and_say_what_was_asked() {
    let zero = std::time::Duration::ZERO;
    let mutex = Mutex::new(());
    let held = mutex.try_lock();
    let error = ready(mutex.lock().timeout(zero)).unwrap_err();
    assert_eq!(error.to_string(), "mutex: not free");
    let error = ready(mutex.lock().cancel_on(std::future::ready("going home"))).unwrap_err();
    assert_eq!(error.to_string(), "mutex: cancelled: going home");
    let error = ready(mutex.lock().cancel_on(std::future::ready(()))).unwrap_err();
    assert_eq!(error.to_string(), "mutex: cancelled: by the caller");
    drop(held);

    let semaphore = Semaphore::new(4).unwrap();
    let held = semaphore.try_acquire();
    let error = ready(semaphore.acquire_many(4).timeout(zero)).unwrap_err();
    assert_eq!(error.to_string(), "semaphore: not free (asked for 4 permits)");
    drop(held);

    let lock = RwLock::new(());
    let held = lock.try_write();
    let error = ready(lock.read().timeout(zero)).unwrap_err();
    assert_eq!(error.to_string(), "read-write lock (read): not free");
    let error = ready(lock.write().timeout(zero)).unwrap_err();
    assert_eq!(error.to_string(), "read-write lock (write): not free");
    assert_eq!(error, error.clone());
    let as_std: Box<dyn std::error::Error + Send + Sync + 'static> = error.into();
    assert!(as_std.source().is_none());
    drop(held);
}
