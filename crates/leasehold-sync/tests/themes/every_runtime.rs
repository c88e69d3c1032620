//! The same behaviour wherever it is polled (rule W8).

use std::{
    future::Future,
    pin::pin,
    sync::Arc,
    task::Poll,
    thread,
    time::{Duration, Instant},
};

use leasehold_sync::{Mutex, RwLock, Semaphore};
use smol::future::{yield_now, zip};

use crate::{HOUR, poll};

/// Every place that a future may run in.
fn everywhere<F>(body: fn() -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    pollster::block_on(body());
    thread::spawn(move || pollster::block_on(body())).join().unwrap();
    smol::block_on(body());
    let executor = smol::Executor::new();
    smol::block_on(executor.run(executor.spawn(body())));
    #[cfg(feature = "tokio")]
    tokio_runtimes(body);
}

#[cfg(feature = "tokio")]
fn tokio_runtimes<F>(body: fn() -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    use tokio::runtime::Builder;

    let multi = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    multi.block_on(multi.spawn(body())).unwrap();
    multi.block_on(body());
    Builder::new_current_thread().enable_all().build().unwrap().block_on(body());
    let paused = Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    paused.block_on(body());
    let timeless = Builder::new_multi_thread().worker_threads(2).build().unwrap();
    timeless.block_on(timeless.spawn(body())).unwrap();
    Builder::new_current_thread().build().unwrap().block_on(body());
}

#[test]
fn a_lock_is_handed_over() {
    everywhere(|| async {
        let mutex = Mutex::new(0);
        let held = mutex.lock().await;
        zip(
            async {
                *mutex.lock().await += 1;
            },
            async {
                yield_now().await;
                drop(held);
            },
        )
        .await;
        assert_eq!(mutex.into_inner(), 1);
    });
}

#[test]
fn a_wait_ends_at_its_timeout() {
    everywhere(|| async {
        let mutex = Arc::new(Mutex::new(()));
        let held = mutex.clone().lock_owned().await;
        let error = mutex.lock().timeout(Duration::from_millis(20)).await.unwrap_err();
        assert!(error.is_timeout() && error.is_retryable());
        assert_eq!(error.to_string(), "mutex: not granted within 20ms");
        assert_eq!(mutex.queued(), 0);
        drop(held);
        assert!(mutex.lock().timeout(HOUR).await.is_ok());
    });
}

#[test]
fn a_grant_before_the_timeout_is_delivered() {
    everywhere(|| async {
        let lock = RwLock::new(5);
        let held = lock.write().await;
        let (read, ()) = zip(lock.read().timeout(HOUR), async {
            yield_now().await;
            drop(held);
        })
        .await;
        assert_eq!(*read.unwrap(), 5);
    });
}

#[test]
fn a_thread_and_a_task_meet_in_one_queue() {
    everywhere(|| async {
        let semaphore = Arc::new(Semaphore::new(1).unwrap());
        let held = semaphore.acquire().await;
        let other = semaphore.clone();
        let thread = thread::spawn(move || drop(other.blocking_acquire()));
        crate::until("the thread queues", || semaphore.queued() == 1);
        drop(held);
        drop(semaphore.acquire().await);
        thread.join().unwrap();
    });
}

#[test]
fn tasks_that_take_turns_lose_no_update() {
    everywhere(|| async {
        let mutex = Arc::new(Mutex::new(0_u32));
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let mutex = mutex.clone();
                thread::spawn(move || {
                    for _ in 0..1000 {
                        *mutex.blocking_lock() += 1;
                    }
                })
            })
            .collect();
        for _ in 0..1000 {
            *mutex.lock().await += 1;
        }
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(*mutex.lock().await, 5000);
    });
}

#[test]
fn a_watcher_sees_the_unlock() {
    everywhere(|| async {
        let mutex = Mutex::new(());
        let held = mutex.lock().await;
        zip(mutex.wait_for_unlock(), async {
            yield_now().await;
            drop(held);
        })
        .await;
    });
}

#[test]
fn no_executor_at_all_but_polls_by_hand() {
    let mutex = Mutex::new(());
    let held = mutex.try_lock();
    let mut waiter = pin!(mutex.lock().timeout(Duration::from_millis(10)));
    let start = Instant::now();
    loop {
        match poll(waiter.as_mut()) {
            Poll::Ready(outcome) => break assert!(outcome.unwrap_err().is_timeout()),
            Poll::Pending => thread::yield_now(),
        }
    }
    assert!(start.elapsed() >= Duration::from_millis(10));
    drop(held);
}
