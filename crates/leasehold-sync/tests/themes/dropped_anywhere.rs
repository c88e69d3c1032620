//! A request of any kind that is dropped at any point leaves no permit taken, nobody queued and
//! nobody stranded (rules Q4, W7).

use std::{future::pending, pin::Pin, sync::Arc, task::Context};

use leasehold_sync::{Mutex, RwLock, Semaphore};

use crate::{Count, HOUR, poll, ready};

/// How far a request has come when it is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Point {
    Unpolled,
    /// Queued, with others before and behind it.
    Between,
    /// Queued, as the first.
    Head,
    /// Granted by a release, and not polled since.
    Granted,
    /// Granted, and polled: the guard is there.
    Held,
}

const POINTS: [Point; 5] =
    [Point::Unpolled, Point::Between, Point::Head, Point::Granted, Point::Held];

type Boxed<'a, G> = Pin<Box<dyn Future<Output = G> + 'a>>;

/// Drops `request` at `point`, while `hold` stands in its way and `other` waits before and behind.
fn dropped_at<'a, H, R, O>(
    point: Point,
    hold: impl FnOnce() -> H,
    request: impl FnOnce() -> Boxed<'a, R>,
    other: impl Fn() -> Boxed<'a, O>,
) {
    let held = hold();
    let mut before = (point == Point::Between).then(&other);
    if let Some(before) = &mut before {
        assert!(poll(before.as_mut()).is_pending());
    }
    let mut request = request();
    let (woken, waker) = Count::new();
    if point > Point::Unpolled {
        assert!(request.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    }
    let mut behind = other();
    assert!(poll(behind.as_mut()).is_pending());
    if point >= Point::Granted {
        drop(held);
        assert_eq!(woken.get(), 1, "the grant wakes");
        if point == Point::Held {
            let guard = ready(request);
            assert!(poll(behind.as_mut()).is_pending(), "the guard stands in the way");
            drop(guard);
        } else {
            drop(request);
        }
    } else {
        drop(request);
        drop(held);
    }
    if let Some(before) = before {
        drop(ready(before));
    }
    drop(ready(behind));
}

/// One test per kind of request: a free lock, what stands in the way of the request, the request,
/// and another one that conflicts with it.
macro_rules! requests {
    ($($test:ident: $lock:expr, $hold:expr, $request:expr, $other:expr;)*) => {$(
        #[test]
        fn $test() {
            for point in POINTS {
                let lock = Arc::new($lock);
                let (hold, request, other) = ($hold, $request, $other);
                dropped_at(
                    point,
                    || hold(&lock),
                    || Box::pin(request(&lock)),
                    || Box::pin(other(&lock)),
                );
                assert!(!lock.is_locked() && lock.queued() == 0, "{point:?} left something");
            }
        }
    )*};
}

// Closures that borrow what they are given need to be told so.
const fn mutex<'a, R>(f: impl Fn(&'a Arc<Mutex<()>>) -> R) -> impl Fn(&'a Arc<Mutex<()>>) -> R {
    f
}

const fn rw_lock<'a, R>(f: impl Fn(&'a Arc<RwLock<()>>) -> R) -> impl Fn(&'a Arc<RwLock<()>>) -> R {
    f
}

const fn semaphore<'a, R>(f: impl Fn(&'a Arc<Semaphore>) -> R) -> impl Fn(&'a Arc<Semaphore>) -> R {
    f
}

fn three() -> Semaphore {
    Semaphore::new(3).unwrap()
}

requests! {
    lock: Mutex::new(()),
        mutex(|l| l.try_lock()), mutex(|l| l.lock()), mutex(|l| l.lock());
    lock_owned: Mutex::new(()),
        mutex(|l| l.try_lock()), mutex(|l| l.clone().lock_owned()), mutex(|l| l.lock());
    lock_with_timeout: Mutex::new(()),
        mutex(|l| l.try_lock()), mutex(|l| l.lock().timeout(HOUR)), mutex(|l| l.lock());
    lock_with_cancellation: Mutex::new(()),
        mutex(|l| l.try_lock()), mutex(|l| l.lock().cancel_on(pending::<()>())),
        mutex(|l| l.lock());
    lock_with_both: Mutex::new(()),
        mutex(|l| l.try_lock()), mutex(|l| l.lock().timeout(HOUR).cancel_on(pending::<()>())),
        mutex(|l| l.lock());
    read: RwLock::new(()),
        rw_lock(|l| l.try_write()), rw_lock(|l| l.read()), rw_lock(|l| l.write());
    read_owned: RwLock::new(()),
        rw_lock(|l| l.try_write()), rw_lock(|l| l.clone().read_owned()), rw_lock(|l| l.write());
    write: RwLock::new(()),
        rw_lock(|l| l.try_read()), rw_lock(|l| l.write()), rw_lock(|l| l.write());
    write_owned: RwLock::new(()),
        rw_lock(|l| l.try_read()), rw_lock(|l| l.clone().write_owned().timeout(HOUR)),
        rw_lock(|l| l.write());
    upgradable_read: RwLock::new(()),
        rw_lock(|l| l.try_write()), rw_lock(|l| l.upgradable_read()), rw_lock(|l| l.write());
    acquire: three(),
        semaphore(|s| s.try_acquire_many(3).unwrap()), semaphore(|s| s.acquire()),
        semaphore(|s| s.acquire_many(3));
    acquire_many: three(),
        semaphore(|s| s.try_acquire_many(2).unwrap()), semaphore(|s| s.acquire_many(2)),
        semaphore(|s| s.acquire_many(3));
    acquire_many_owned: three(),
        semaphore(|s| s.try_acquire_many(2).unwrap()),
        semaphore(|s| s.clone().acquire_many_owned(3).timeout(HOUR)),
        semaphore(|s| s.acquire_many(3));
}

/// An upgrade goes before the queue (rule Q7), so it is never between others.
#[test]
fn upgrade() {
    for point in [Point::Unpolled, Point::Head, Point::Granted, Point::Held] {
        let lock = RwLock::new(());
        let reading = lock.try_read();
        let mut behind = Box::pin(lock.write());
        let mut upgrade = Box::pin(ready(lock.upgradable_read()).upgrade());
        if point > Point::Unpolled {
            assert!(poll(upgrade.as_mut()).is_pending());
        }
        assert!(poll(behind.as_mut()).is_pending());
        if point >= Point::Granted {
            drop(reading);
            if point == Point::Held {
                let write = ready(upgrade);
                assert!(poll(behind.as_mut()).is_pending());
                drop(write);
            } else {
                drop(upgrade);
            }
        } else {
            drop(upgrade);
            assert_eq!(lock.readers(), 1, "{point:?}: the upgradable read is gone");
            drop(reading);
        }
        drop(ready(behind));
        assert!(!lock.is_locked() && lock.queued() == 0, "{point:?} left something");
    }
}

/// A watcher takes nothing, and leaves nothing.
#[test]
fn watcher() {
    for polled in [false, true] {
        let lock = Mutex::new(());
        let held = lock.try_lock();
        let mut watcher = Box::pin(lock.wait_for_unlock());
        let mut stays = Box::pin(lock.wait_for_unlock());
        assert!(poll(stays.as_mut()).is_pending());
        if polled {
            assert!(poll(watcher.as_mut()).is_pending());
        }
        drop(watcher);
        drop(held);
        ready(stays);
        assert!(!lock.is_locked() && lock.queued() == 0);
    }
}
