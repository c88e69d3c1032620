//! Giving up at any point loses nothing, and lets in whoever stood behind (rules Q4, W4, W7).

use std::{
    future::{pending, ready as now},
    pin::Pin,
    sync::{Arc, Mutex as Plain},
    task::{Context, Poll},
    time::Duration,
};

use leasehold_sync::KeyedLock;

use crate::{Count, HOUR, poll, ready};

type Lock = Arc<KeyedLock<u8>>;

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

type Boxed<G> = Pin<Box<dyn Future<Output = G>>>;

/// Drops `request` at `point`, while a write of the key stands in its way and whole-set writes
/// wait before and behind.
fn dropped_at<R>(point: Point, request: impl FnOnce(&Lock) -> Boxed<R>) {
    let lock = Lock::default();
    let held = lock.clone().try_write_owned(1).expect("free");
    let mut before = (point == Point::Between).then(|| Box::pin(lock.write_all()));
    if let Some(before) = &mut before {
        assert!(poll(before.as_mut()).is_pending());
    }
    let mut request = request(&lock);
    let (woken, waker) = Count::new();
    if point > Point::Unpolled {
        assert!(request.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    }
    let mut behind = Box::pin(lock.write_all());
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
    assert!(lock.is_empty() && lock.queued() == 0, "{point:?} left something");
}

#[test]
fn a_request_of_any_kind_dropped_at_any_point() {
    for point in POINTS {
        dropped_at(point, |lock| Box::pin(lock.clone().read_owned(1)));
        dropped_at(point, |lock| Box::pin(lock.clone().write_owned(1)));
        dropped_at(point, |lock| Box::pin(lock.clone().read_all_owned()));
        dropped_at(point, |lock| Box::pin(lock.clone().write_all_owned()));
        dropped_at(point, |lock| Box::pin(lock.clone().write_owned(1).timeout(HOUR)));
        dropped_at(point, |lock| {
            Box::pin(lock.clone().read_all_owned().cancel_on(pending::<()>()).timeout(HOUR))
        });
    }
}

/// acceptance AK8
#[test]
fn ak8_a_cancelled_waiter_for_the_whole_set_gets_the_given_reason() {
    let lock = KeyedLock::<u8>::new();
    let _held = ready(lock.write_all());
    let (stop, stopped) = signal();
    let mut waiter = Box::pin(lock.write_all().cancel_on(stopped));
    assert!(poll(waiter.as_mut()).is_pending());
    stop("gone home");
    let Poll::Ready(Err(error)) = poll(waiter.as_mut()) else { panic!("not cancelled") };
    assert!(error.is_cancelled());
    assert_eq!(error.to_string(), "keyed lock (write of all): cancelled: gone home");
    assert_eq!(lock.queued(), 0);
}

/// acceptance AK11
#[test]
fn ak11_without_checking_a_nested_write_waits_and_can_be_cancelled() {
    let lock = KeyedLock::<u8>::new();
    let held = ready(lock.write(1));
    let (stop, stopped) = signal();
    let mut nested = Box::pin(lock.write(1).cancel_on(stopped));
    assert!(poll(nested.as_mut()).is_pending());
    stop("enough");
    let Poll::Ready(Err(error)) = poll(nested.as_mut()) else { panic!("not cancelled") };
    assert_eq!(error.to_string(), "keyed lock (write): cancelled: enough");
    drop(held);
    assert!(lock.is_empty());
}

#[test]
fn cancelled_before_the_call_fails_even_when_it_is_free() {
    let lock = KeyedLock::<u8>::new();
    assert!(ready(lock.write(1).cancel_on(now("over"))).unwrap_err().is_cancelled());
    assert!(ready(lock.read_all().cancel_on(now("over"))).unwrap_err().is_cancelled());
    assert!(lock.is_empty());
}

#[test]
fn a_grant_that_comes_before_the_cancellation_is_delivered() {
    let lock = KeyedLock::<u8>::new();
    let held = ready(lock.write(1));
    let (stop, stopped) = signal();
    let mut waiter = Box::pin(lock.write(1).cancel_on(stopped));
    assert!(poll(waiter.as_mut()).is_pending());
    drop(held);
    stop("late");
    assert!(matches!(poll(waiter.as_mut()), Poll::Ready(Ok(_))));
}

#[test]
fn a_queued_write_that_gives_up_lets_the_reads_behind_it_in() {
    let lock = KeyedLock::<u8>::new();
    let reading = ready(lock.read(1));
    let mut write = Box::pin(lock.write(1));
    assert!(poll(write.as_mut()).is_pending());
    let (woken, waker) = Count::new();
    let mut reads: Vec<_> = (0..40).map(|_| Box::pin(lock.read(1))).collect();
    for read in &mut reads {
        assert!(read.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    }
    drop(write);
    assert_eq!(woken.get(), 40);
    let reads: Vec<_> = reads.into_iter().map(ready).collect();
    drop((reads, reading));
    assert!(lock.is_empty());
}

#[test]
fn a_barrier_that_gives_up_lets_everybody_behind_it_in() {
    let lock = KeyedLock::<u8>::new();
    let reading = ready(lock.read_all());
    let mut barrier = Box::pin(lock.write_all());
    assert!(poll(barrier.as_mut()).is_pending());
    let (read, write) = (lock.read(1), lock.write(2));
    let (mut read, mut write) = (Box::pin(read), Box::pin(write));
    assert!(poll(read.as_mut()).is_pending() && poll(write.as_mut()).is_pending());
    drop(barrier);
    assert!(poll(read.as_mut()).is_ready());
    assert!(poll(write.as_mut()).is_pending(), "the read of the whole set holds it up");
    drop(reading);
    assert!(poll(write.as_mut()).is_ready());
}

#[test]
fn a_timeout_takes_one_waiter_out() {
    let lock = KeyedLock::<u8>::new();
    let held = ready(lock.write(1));
    let short = Duration::from_millis(20);
    let error = pollster::block_on(lock.read(1).timeout(short)).unwrap_err();
    assert!(error.is_timeout() && error.is_retryable());
    assert_eq!(error.to_string(), "keyed lock (read): not granted within 20ms");
    let error = lock.read_all().timeout(short).blocking().unwrap_err();
    assert_eq!(error.to_string(), "keyed lock (read of all): not granted within 20ms");
    assert_eq!(lock.queued(), 0);
    drop(held);
    assert!(lock.is_empty());
    assert!(ready(lock.write(1).timeout(Duration::MAX)).is_ok());
}

#[test]
fn a_waiter_that_moves_to_another_task_wakes_that_one() {
    let lock = KeyedLock::<u8>::new();
    for whole in [false, true] {
        let held = ready(lock.write(1));
        let mut waiter = Box::pin(if whole { lock.write_all() } else { lock.write(1) });
        let ((first, one), (second, other)) = (Count::new(), Count::new());
        for waker in [&one, &other] {
            assert!(waiter.as_mut().poll(&mut Context::from_waker(waker)).is_pending());
        }
        drop(held);
        assert_eq!((first.get(), second.get()), (0, 1));
        drop(ready(waiter));
    }
}

type Sent = Arc<Plain<Option<&'static str>>>;

/// A future that is ready once something was sent.
fn signal() -> (impl FnOnce(&'static str), impl Future<Output = &'static str>) {
    let sent = Sent::default();
    let received = sent.clone();
    let stop = move |reason| *sent.lock().unwrap() = Some(reason);
    let received = std::future::poll_fn(move |_| match received.lock().unwrap().take() {
        Some(reason) => Poll::Ready(reason),
        None => Poll::Pending,
    });
    (stop, received)
}

#[test]
fn e2_an_error_says_how_many_wait_for_the_same() {
    let lock = KeyedLock::new();
    let held = (lock.try_write(1), lock.try_write(2));
    let mut others = [1, 1, 2].map(|key| Box::pin(lock.read(key)));
    for other in &mut others {
        assert!(poll(other.as_mut()).is_pending());
    }
    let told = |error: leasehold_sync::Error, waiting: &str| {
        assert!(error.to_string().ends_with(waiting), "{error}");
    };
    told(ready(lock.write(1).timeout(Duration::ZERO)).unwrap_err(), "not free; 2 waiting");
    let mut woken = 0;
    let second = std::future::poll_fn(|_| {
        woken += 1;
        if woken > 2 { Poll::Ready("enough") } else { Poll::Pending }
    });
    let mut gives_up = Box::pin(lock.write(2).cancel_on(second));
    assert!(poll(gives_up.as_mut()).is_pending());
    told(ready(gives_up).unwrap_err(), "cancelled: enough; 1 waiting");
    let mut all = Box::pin(lock.write_all());
    assert!(poll(all.as_mut()).is_pending());
    told(ready(lock.read_all().timeout(Duration::ZERO)).unwrap_err(), "not free; 1 waiting");
    told(ready(lock.write(3).timeout(Duration::ZERO)).unwrap_err(), "not free");
    drop((held, others));
}
