//! Nothing is left of what is over (rule K3), whatever panics.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    task::{Context, Wake, Waker},
};

use leasehold_sync::KeyedLock;

use crate::{poll, ready};

#[test]
fn ten_thousand_cancelled_waiters_leave_no_entry() {
    let lock = KeyedLock::<u32>::new();
    for whole in [false, true] {
        let held = whole.then(|| ready(lock.write_all()));
        let keys: Vec<_> = (0..10_000).filter_map(|key| lock.try_write(key)).collect();
        let mut waiters: Vec<_> = (0..10_000).map(|key| Box::pin(lock.read(key))).collect();
        for waiter in &mut waiters {
            assert!(poll(waiter.as_mut()).is_pending());
        }
        assert_eq!((lock.len(), lock.queued()), (10_000, 10_000));
        drop(keys);
        if !whole {
            // Granted by that, and cancelled without having seen it.
            assert_eq!((lock.len(), lock.queued()), (10_000, 0));
        }
        drop(waiters);
        assert_eq!((lock.len(), lock.queued()), (0, 0));
        drop(held);
        assert!(lock.is_empty());
    }
    let held = ready(lock.write(1));
    let mut waiters: Vec<_> = (0..10_000).map(|_| Box::pin(lock.write(1))).collect();
    for waiter in &mut waiters {
        assert!(poll(waiter.as_mut()).is_pending());
    }
    drop(held);
    drop(waiters);
    assert!(lock.is_empty());
}

#[test]
fn a_million_used_keys_leave_no_entry() {
    let lock = KeyedLock::<u32>::new();
    for key in 0..1_000_000 {
        drop(lock.try_write(key).expect("free"));
    }
    assert!(lock.is_empty());
}

#[test]
fn a_panic_inside_releases() {
    let lock = KeyedLock::<u8>::new();
    let inside = catch_unwind(AssertUnwindSafe(|| {
        let _guard = (ready(lock.write(1)), ready(lock.read(2)));
        panic!("inside");
    }));
    assert!(inside.is_err() && lock.is_empty());
}

#[test]
fn a_waker_that_panics_costs_nobody_else_the_wake_up() {
    struct Panics;
    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            panic!("a waker");
        }
    }
    let lock = KeyedLock::<u8>::new();
    let held = ready(lock.write(1));
    let mut first = Box::pin(lock.read(1));
    let panics = Waker::from(Arc::new(Panics));
    assert!(first.as_mut().poll(&mut Context::from_waker(&panics)).is_pending());
    let mut second = Box::pin(lock.read(1));
    let (woken, waker) = crate::Count::new();
    assert!(second.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    assert!(catch_unwind(AssertUnwindSafe(|| drop(held))).is_err());
    assert_eq!(woken.get(), 1);
    drop((ready(first), ready(second)));
    assert!(lock.is_empty());
}

/// Comparing keys is foreign code that runs under the lock of a shard.
#[test]
fn a_comparison_that_panics_changes_nothing() {
    #[derive(Clone, Copy, Debug)]
    struct Key(bool);
    impl PartialEq for Key {
        fn eq(&self, other: &Self) -> bool {
            assert!(!self.0 && !other.0, "not to be compared");
            true
        }
    }
    impl Eq for Key {}
    impl std::hash::Hash for Key {
        fn hash<H: std::hash::Hasher>(&self, _: &mut H) {}
    }
    let lock = KeyedLock::new();
    let held = ready(lock.read(Key(false)));
    assert!(catch_unwind(AssertUnwindSafe(|| lock.try_read(Key(true)).is_some())).is_err());
    assert!(lock.try_read(Key(false)).is_some());
    drop(held);
    assert!(lock.is_empty() && lock.try_write_all().is_some());
}

/// A key that uses the lock when it is dropped.
#[test]
fn a_key_is_dropped_outside_of_the_lock() {
    #[derive(Clone)]
    struct Key(u8, Option<Arc<KeyedLock<Self>>>);
    impl PartialEq for Key {
        fn eq(&self, other: &Self) -> bool {
            self.0 == other.0
        }
    }
    impl Eq for Key {}
    impl std::hash::Hash for Key {
        fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
            state.write_u8(self.0);
        }
    }
    impl Drop for Key {
        fn drop(&mut self) {
            if let Some(lock) = self.1.take() {
                // Would wait for ever if it were dropped under a lock of the table.
                drop(lock.try_write(Self(self.0, None)));
                drop(lock.try_write_all());
            }
        }
    }
    let lock = Arc::new(KeyedLock::new());
    let held = ready(lock.write(Key(1, Some(lock.clone()))));
    let mut waiter = Box::pin(lock.write(Key(1, Some(lock.clone()))));
    assert!(poll(waiter.as_mut()).is_pending());
    drop(held);
    drop(ready(waiter));
    assert!(lock.is_empty());
}
