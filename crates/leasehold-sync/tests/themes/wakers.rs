//! Wakers are foreign code: they are called, cloned and dropped outside of the lock.

use std::{
    pin::pin,
    sync::Arc,
    task::{Context, RawWaker, RawWakerVTable, Wake, Waker},
};

use leasehold_sync::{Mutex, RwLock, Semaphore};

use crate::{Count, poll, ready};

#[test]
fn a_waker_that_locks_again_does_not_deadlock() {
    struct Locks(Arc<Semaphore>);
    impl Wake for Locks {
        fn wake(self: Arc<Self>) {
            assert!(self.0.try_acquire_many(2).unwrap().is_none());
            assert_eq!(self.0.queued(), 0);
            let mut waiter = Box::pin(self.0.acquire_many(2));
            assert!(poll(waiter.as_mut()).is_pending());
            drop(waiter);
        }
    }
    let semaphore = Arc::new(Semaphore::new(2).unwrap());
    let held = semaphore.try_acquire_many(2).unwrap();
    let waker = Waker::from(Arc::new(Locks(semaphore.clone())));
    let mut waiter = pin!(semaphore.acquire());
    assert!(waiter.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    drop(held);
    drop(ready(waiter));
}

/// Every function of it makes a checked request that is queued, and takes it back.
fn asking() -> Waker {
    static HELD: Mutex<()> = Mutex::new(());
    fn ask(_: *const ()) {
        let held = HELD.try_lock();
        let mut waiter = Box::pin(HELD.run_exclusive(async |()| ()));
        assert!(poll(waiter.as_mut()).is_pending());
        drop((waiter, held));
    }
    static TABLE: RawWakerVTable = RawWakerVTable::new(
        |data| {
            ask(data);
            RawWaker::new(data, &TABLE)
        },
        ask,
        ask,
        ask,
    );
    // SAFETY: there is no data, and every function of the table may be called on any thread.
    unsafe { Waker::new(std::ptr::null(), &TABLE) }
}

#[test]
fn a_waker_whose_clone_and_drop_make_checked_requests_does_not_deadlock() {
    // Read and watched: a further read is granted, though not on the fast path.
    let lock = RwLock::new(());
    let read = lock.try_read();
    let mut watch = pin!(lock.wait_for_unlock());
    assert!(poll(watch.as_mut()).is_pending());
    let waker = asking();
    let mut cx = Context::from_waker(&waker);
    assert!(pin!(lock.run_shared(async |()| ())).poll(&mut cx).is_ready());
    let mut writer = pin!(lock.run_exclusive(async |()| ()));
    assert!(writer.as_mut().poll(&mut cx).is_pending());
    drop(read);
    assert!(writer.poll(&mut cx).is_ready());
    assert!(watch.poll(&mut cx).is_ready());
}

/// A waker whose clone and drop use the lock.
fn nosy(mutex: &'static Mutex<()>) -> Waker {
    fn look(data: *const ()) {
        // SAFETY: every such waker is made below, of a static mutex.
        let mutex = unsafe { &*data.cast::<Mutex<()>>() };
        drop(mutex.try_lock());
        let _ = mutex.queued();
    }
    static TABLE: RawWakerVTable = RawWakerVTable::new(
        |data| {
            look(data);
            RawWaker::new(data, &TABLE)
        },
        look,
        look,
        look,
    );
    // SAFETY: the table never frees its data, which is static, and every function of it may be
    // called on any thread.
    unsafe { Waker::new(std::ptr::from_ref(mutex).cast(), &TABLE) }
}

#[test]
fn a_waker_whose_clone_and_drop_use_the_lock_does_not_deadlock() {
    static MUTEX: Mutex<()> = Mutex::new(());
    let held = MUTEX.try_lock();
    let waker = nosy(&MUTEX);
    let mut cx = Context::from_waker(&waker);
    let mut first = Box::pin(MUTEX.lock());
    let mut second = Box::pin(MUTEX.lock());
    let mut watcher = Box::pin(MUTEX.wait_for_unlock());
    assert!(first.as_mut().poll(&mut cx).is_pending());
    assert!(first.as_mut().poll(&mut cx).is_pending());
    assert!(second.as_mut().poll(&mut cx).is_pending());
    assert!(watcher.as_mut().poll(&mut cx).is_pending());
    drop(second);
    drop(held);
    drop(ready(first));
    drop(watcher);
    assert!(!MUTEX.is_locked());
}

#[test]
fn the_last_waker_is_the_one_that_is_woken() {
    let mutex = Mutex::new(());
    let held = mutex.try_lock();
    let (old, old_waker) = Count::new();
    let (new, new_waker) = Count::new();
    let mut waiter = pin!(mutex.lock());
    assert!(waiter.as_mut().poll(&mut Context::from_waker(&old_waker)).is_pending());
    assert!(waiter.as_mut().poll(&mut Context::from_waker(&new_waker)).is_pending());
    drop(held);
    assert_eq!((old.get(), new.get()), (0, 1));
    drop(ready(waiter));
}

#[test]
fn only_the_granted_waiter_is_woken() {
    let lock = RwLock::new(());
    let held = lock.try_write();
    let counts: Vec<_> = (0..50).map(|_| Count::new()).collect();
    let mut waiters: Vec<_> = (0..50).map(|_| Box::pin(lock.write())).collect();
    for (waiter, (_, waker)) in waiters.iter_mut().zip(&counts) {
        assert!(waiter.as_mut().poll(&mut Context::from_waker(waker)).is_pending());
    }
    drop(held);
    let woken: usize = counts.iter().map(|(count, _)| count.get()).sum();
    assert_eq!((woken, counts[0].0.get()), (1, 1));
}

#[test]
fn no_waker_is_kept_by_a_waiter_that_left() {
    let mutex = Mutex::new(());
    let held = mutex.try_lock();
    let (count, waker) = Count::new();
    let mut waiter = Box::pin(mutex.lock());
    assert!(waiter.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    assert_eq!(Arc::strong_count(&count), 3);
    drop(waiter);
    assert_eq!(Arc::strong_count(&count), 2);
    drop(held);
}
