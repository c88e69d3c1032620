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
