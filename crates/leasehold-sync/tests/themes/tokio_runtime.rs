//! What is promised on Tokio alone: its budget and its clock (rule W8).

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use leasehold_sync::Mutex;

use crate::HOUR;

#[test]
fn paused_time_is_followed_and_costs_no_real_time() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let (real, paused) = (Instant::now(), tokio::time::Instant::now());
        let mutex = Mutex::new(());
        let held = mutex.lock().await;
        assert!(mutex.lock().timeout(HOUR).await.unwrap_err().is_timeout());
        assert!(paused.elapsed() >= HOUR && paused.elapsed() < HOUR + Duration::from_secs(1));
        assert!(real.elapsed() < HOUR / 60);
        drop(held);
    });
}

#[test]
fn a_runtime_without_time_is_found_out_without_a_word() {
    static SEEN: AtomicUsize = AtomicUsize::new(0);
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if info.to_string().contains("timers are disabled") {
            SEEN.fetch_add(1, Ordering::SeqCst);
        }
        before(info);
    }));
    for _ in 0..3 {
        let timeless = tokio::runtime::Builder::new_current_thread().build().unwrap();
        timeless.block_on(async {
            let mutex = Mutex::new(());
            let held = mutex.lock().await;
            let short = Duration::from_millis(2);
            assert!(mutex.lock().timeout(short).await.unwrap_err().is_timeout());
            drop(held);
        });
    }
    assert_eq!(SEEN.load(Ordering::SeqCst), 0);
}

#[test]
fn a_task_whose_budget_is_spent_does_not_hold_the_lock_while_it_yields() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let polls = Arc::new(AtomicUsize::new(0));
    let seen = polls.clone();
    runtime.block_on(async move {
        let mutex = Arc::new(Mutex::new(()));
        let busy = tokio::spawn({
            let mutex = mutex.clone();
            async move {
                for _ in 0..10_000 {
                    drop(mutex.lock().await);
                }
            }
        });
        let watcher = tokio::spawn(async move {
            // Runs only because the other task yields; whenever it does, the lock must be free.
            while !busy.is_finished() {
                assert!(!mutex.is_locked());
                polls.fetch_add(1, Ordering::SeqCst);
                tokio::task::yield_now().await;
            }
        });
        watcher.await.unwrap();
    });
    assert!(seen.load(Ordering::SeqCst) > 10, "a loop over a free lock starves other tasks");
}

fn current_thread() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

#[test]
fn a_blocked_thread_of_a_runtime_that_is_gone_times_out_all_the_same() {
    let runtime = current_thread();
    let mutex = Arc::new(Mutex::new(()));
    let held = mutex.clone().blocking_lock_owned();
    let waits = mutex.clone();
    let thread = runtime.spawn_blocking(move || {
        waits.lock().timeout(Duration::from_millis(200)).blocking().map(drop)
    });
    crate::until("the thread queues", || mutex.queued() == 1);
    runtime.shutdown_background();
    // Without a panic, that is, and without anybody who turns the timers of that runtime.
    assert!(pollster::block_on(thread).unwrap().unwrap_err().is_timeout());
    drop(held);
}

#[test]
fn a_wait_that_is_taken_out_of_its_runtime_times_out_there() {
    for shut_down in [false, true] {
        let runtime = current_thread();
        let mutex = Mutex::new(());
        let held = mutex.try_lock();
        let timeout = Duration::from_millis(50);
        let (begun, mut wait) = (Instant::now(), Box::pin(mutex.lock().timeout(timeout)));
        runtime.block_on(async { assert!(crate::poll(wait.as_mut()).is_pending()) });
        // Alive, but turned by nobody; or gone, with its context still here.
        let kept = if shut_down { None } else { Some(runtime) };
        assert!(pollster::block_on(wait).unwrap_err().is_timeout());
        assert!(begun.elapsed() >= timeout);
        drop((held, kept));
    }
}

#[test]
fn a_wait_in_the_context_of_a_runtime_that_is_gone_times_out() {
    let runtime = current_thread();
    let handle = runtime.handle().clone();
    let mutex = Mutex::new(());
    let held = mutex.try_lock();
    let short = Duration::from_millis(2);
    // It is known to have timers.
    assert!(runtime.block_on(mutex.lock().timeout(short)).unwrap_err().is_timeout());
    drop(runtime);
    let _entered = handle.enter();
    assert!(pollster::block_on(mutex.lock().timeout(short)).unwrap_err().is_timeout());
    drop(held);
}

#[test]
fn a_local_set_that_is_blocked_on_follows_paused_time() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    let (real, local) = (Instant::now(), tokio::task::LocalSet::new());
    local.block_on(&runtime, async {
        let mutex = std::rc::Rc::new(Mutex::new(()));
        let held = mutex.lock().await;
        let other = mutex.clone();
        let task = tokio::task::spawn_local(async move {
            other.lock().timeout(HOUR).await.map(drop).unwrap_err().is_timeout()
        });
        assert!(task.await.unwrap());
        drop(held);
    });
    assert!(real.elapsed() < HOUR / 60);
}
