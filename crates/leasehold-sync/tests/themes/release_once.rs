//! What a release object promises elsewhere is what the type system promises here: a guard is
//! given back once, by its drop, and there is no second call to refuse.

use std::sync::Arc;

use leasehold_sync::{Mutex, RwLock, Semaphore};

use crate::ready;

/// AL1, AL2: held until it is given back, once.
#[test]
fn al1_al2_a_guard_holds_until_it_is_dropped() {
    let mutex = Mutex::new(());
    let guard = ready(mutex.lock());
    assert!(mutex.is_locked());
    drop(guard);
    assert!(!mutex.is_locked());
}

/// AL3, AL5: a second release cannot be written, so it can neither fail nor run again. What can
/// be written, moving a guard around, gives it back once.
#[test]
fn al3_al5_a_guard_that_moves_is_given_back_once() {
    let semaphore = Arc::new(Semaphore::new(2).unwrap());
    let other = semaphore.clone().try_acquire_owned();
    let mut place = semaphore.clone().try_acquire_owned();
    let moved = place.take();
    drop(place);
    assert_eq!(semaphore.available_permits(), 0);
    drop(moved);
    assert_eq!(semaphore.available_permits(), 1);
    drop(other);
    assert_eq!(semaphore.available_permits(), 2);
}

/// AL4: giving it back by hand is dropping it.
#[test]
fn al4_dropping_by_hand_releases() {
    let lock = RwLock::new(());
    let (read, write) = (lock.try_read(), lock.try_write());
    assert!(read.is_some() && write.is_none());
    drop(read);
    assert!(lock.try_write().is_some());
}

/// AL6: the end of the scope, and not earlier.
#[test]
fn al6_the_end_of_a_scope_releases() {
    let mutex = Mutex::new(());
    {
        let _guard = ready(mutex.lock());
        assert!(mutex.is_locked());
    }
    assert!(!mutex.is_locked());
}

/// AL7, AL8: there is no callback that could fail; data whose own drop panics still leaves the
/// lock free, once.
#[test]
fn al7_al8_data_that_panics_on_drop_leaves_the_lock_free() {
    struct Panics;
    impl Drop for Panics {
        fn drop(&mut self) {
            panic!("on drop");
        }
    }
    let mutex = Mutex::new(Some(Panics));
    let replace = || *ready(mutex.lock()) = None;
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(replace)).is_err());
    assert!(!mutex.is_locked());
    assert!(ready(mutex.lock()).is_none());
}

/// S15: one of two releases frees one permit.
#[test]
fn s15_one_release_frees_one_permit() {
    let semaphore = Semaphore::new(2).unwrap();
    let first = semaphore.try_acquire();
    let second = semaphore.try_acquire();
    drop(first);
    assert_eq!(semaphore.available_permits(), 1);
    let third = semaphore.try_acquire();
    assert!(third.is_some() && semaphore.try_acquire().is_none());
    drop((second, third));
    assert!(!semaphore.is_locked());
}
