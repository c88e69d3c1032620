//! Giving up at any point loses no permit, gives none twice and wakes whoever can go on (rule Q4).

use std::{
    future::{pending, ready as now},
    pin::pin,
    task::Context,
};

use leasehold_sync::{Mutex, RwLock, Semaphore};

use crate::{Count, HOUR, poll, ready};

#[test]
fn dropping_a_future_that_was_never_polled_changes_nothing() {
    let mutex = Mutex::new(());
    drop(mutex.lock());
    drop(mutex.lock().timeout(HOUR).cancel_on(pending::<()>()));
    assert!(!mutex.is_locked());
}

#[test]
fn a_dropped_waiter_leaves_the_queue_wherever_it_is() {
    for leaver in 0..3 {
        let mutex = Mutex::new(());
        let held = mutex.try_lock();
        let mut waiters: Vec<_> = (0..3).map(|_| Some(Box::pin(mutex.lock()))).collect();
        for waiter in waiters.iter_mut().flatten() {
            assert!(poll(waiter.as_mut()).is_pending());
        }
        waiters[leaver] = None;
        assert_eq!(mutex.queued(), 2);
        drop(held);
        for waiter in waiters.into_iter().flatten() {
            drop(ready(waiter));
        }
        assert!(!mutex.is_locked() && mutex.queued() == 0);
    }
}

#[test]
fn a_grant_that_is_dropped_is_passed_on() {
    let mutex = Mutex::new(());
    let held = mutex.try_lock();
    let mut first = Box::pin(mutex.lock());
    let mut second = pin!(mutex.lock());
    let (count, waker) = Count::new();
    assert!(poll(first.as_mut()).is_pending());
    assert!(second.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    drop(held);
    assert_eq!(count.get(), 0);
    // Granted, and never looked at again.
    drop(first);
    assert_eq!(count.get(), 1);
    assert!(poll(second.as_mut()).is_ready());
}

#[test]
fn a_queued_write_that_gives_up_lets_the_reads_behind_it_in() {
    let lock = RwLock::new(());
    let reading = lock.try_read();
    let mut write = Box::pin(lock.write());
    assert!(poll(write.as_mut()).is_pending());
    let (count, waker) = Count::new();
    let mut reads: Vec<_> = (0..40).map(|_| Box::pin(lock.read())).collect();
    for read in &mut reads {
        assert!(read.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    }
    drop(write);
    assert_eq!(count.get(), 40);
    let guards: Vec<_> = reads.into_iter().map(ready).collect();
    assert_eq!(lock.readers(), 41);
    drop((guards, reading));
    assert!(!lock.is_locked());
}

#[test]
fn a_heavy_head_that_gives_up_lets_the_light_ones_in() {
    let semaphore = Semaphore::new(3).unwrap();
    let held = semaphore.try_acquire_many(2).unwrap();
    let mut heavy = Box::pin(semaphore.acquire_many(3));
    let mut light = pin!(semaphore.acquire());
    assert!(poll(heavy.as_mut()).is_pending());
    assert!(poll(light.as_mut()).is_pending());
    assert_eq!(semaphore.available_permits(), 1);
    drop(heavy);
    assert!(poll(light.as_mut()).is_ready());
    drop(held);
}

#[test]
fn cancelled_before_the_call_fails_even_when_the_lock_is_free() {
    let mutex = Mutex::new(());
    let error = ready(mutex.lock().cancel_on(now("over"))).unwrap_err();
    assert!(error.is_cancelled());
    assert!(!mutex.is_locked());
}

#[test]
fn cancelled_while_queued_leaves_alone() {
    // acceptance AO7, AO8
    let mutex = Mutex::new(());
    let held = mutex.try_lock();
    let (stop, mut stopped) = oneshot();
    let mut first = pin!(mutex.lock().cancel_on(&mut stopped));
    let mut second = pin!(mutex.lock());
    assert!(poll(first.as_mut()).is_pending());
    assert!(poll(second.as_mut()).is_pending());
    stop.send("Timeout".to_owned());
    match poll(first.as_mut()) {
        std::task::Poll::Ready(Err(error)) => {
            assert_eq!(error.to_string(), "mutex: cancelled: Timeout; 1 waiting");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(mutex.queued(), 1);
    drop(held);
    assert!(poll(second.as_mut()).is_ready());
}

#[test]
fn cancelled_after_the_grant_has_no_effect() {
    let mutex = Mutex::new(());
    let held = mutex.try_lock();
    let (stop, mut stopped) = oneshot();
    let mut waiter = pin!(mutex.lock().cancel_on(&mut stopped));
    assert!(poll(waiter.as_mut()).is_pending());
    drop(held);
    stop.send("late".to_owned());
    assert!(matches!(poll(waiter.as_mut()), std::task::Poll::Ready(Ok(_))));
}

/// A future that is ready once something was sent.
fn oneshot() -> (Send, Sent) {
    let shared = std::sync::Arc::new(std::sync::Mutex::new(None));
    (Send(shared.clone()), Sent(shared))
}

struct Send(std::sync::Arc<std::sync::Mutex<Option<String>>>);
struct Sent(std::sync::Arc<std::sync::Mutex<Option<String>>>);

impl Send {
    fn send(self, reason: String) {
        *self.0.lock().unwrap() = Some(reason);
    }
}

impl Future for Sent {
    type Output = String;

    fn poll(self: std::pin::Pin<&mut Self>, _: &mut Context<'_>) -> std::task::Poll<String> {
        match self.0.lock().unwrap().take() {
            Some(reason) => std::task::Poll::Ready(reason),
            None => std::task::Poll::Pending,
        }
    }
}
