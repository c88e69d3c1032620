//! The acceptance lines for semaphores, on lease locks in memory.

mod common;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use common::{Probe, manual, ms, now};
use leasehold::{Error, ErrorKind, LockManager, NamedSemaphore, Remaining, Token};

fn semaphore(locks: &LockManager, permits: u32) -> NamedSemaphore {
    locks.semaphore("exports", permits).unwrap()
}

#[test]
fn s1_counts_follow_acquire_and_release() {
    let (locks, _) = manual();
    let exports = semaphore(&locks, 1);
    assert!(!now(exports.is_locked()).unwrap());
    assert_eq!(now(exports.free_permits()).unwrap(), 1);
    let slot = now(exports.acquire()).unwrap();
    assert!(now(exports.is_locked()).unwrap());
    assert_eq!(now(exports.free_permits()).unwrap(), 0);
    assert!(now(slot.release()).unwrap());
    assert!(!now(exports.is_locked()).unwrap());
    assert_eq!(now(exports.free_permits()).unwrap(), 1);
}

#[test]
fn s2_waits_until_release() {
    let (locks, _) = manual();
    let exports = semaphore(&locks, 1);
    let slot = now(exports.acquire()).unwrap();
    let mut waiter = Probe::pending(exports.acquire());
    now(slot.release()).unwrap();
    let second = waiter.granted();
    assert!(second.is_held());
    assert!(!slot.is_held());
}

#[test]
fn s3_s14_timeout_names_the_lock_and_the_holder() {
    let (locks, clock) = manual();
    let exports = semaphore(&locks, 1);
    let _slot = now(exports.acquire().label("night shift")).unwrap();
    let mut waiter = Probe::pending(exports.acquire().timeout(ms(100)));
    clock.advance(ms(99));
    assert!(waiter.waits());
    clock.advance(ms(1));
    let error = waiter.done().unwrap_err();
    assert!(error.is_timeout() && error.is_retryable() && !error.is_cancelled());
    let text = error.to_string();
    for part in ["semaphore \"exports\"", "100ms", "night shift", &std::process::id().to_string()] {
        assert!(text.contains(part), "{part} is not in {text:?}");
    }
}

#[test]
fn s5_s15_a_second_release_gives_nothing_back() {
    let (locks, _) = manual();
    let exports = semaphore(&locks, 2);
    let (one, _two) = (now(exports.acquire()).unwrap(), now(exports.acquire()).unwrap());
    assert!(now(one.release()).unwrap());
    assert!(now(one.release()).unwrap(), "the result is repeated");
    assert_eq!(now(exports.free_permits()).unwrap(), 1);
    drop(one);
    let _three = now(exports.acquire()).unwrap();
    assert!(now(exports.acquire().timeout(Duration::ZERO)).unwrap_err().is_timeout());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s6_s11_no_more_than_the_permits_at_once() {
    let locks = LockManager::in_memory();
    let exports = semaphore(&locks, 3);
    let (inside, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let mut tasks = Vec::new();
    for _ in 0..10 {
        let (exports, inside, most) = (exports.clone(), inside.clone(), most.clone());
        tasks.push(tokio::spawn(async move {
            for _ in 0..100 {
                let work = async |_lease: &leasehold::Lease| {
                    let now = inside.fetch_add(1, Ordering::SeqCst) + 1;
                    most.fetch_max(now, Ordering::SeqCst);
                    tokio::task::yield_now().await;
                    inside.fetch_sub(1, Ordering::SeqCst);
                };
                exports.run_exclusive(work).await.unwrap();
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    assert!((1..=3).contains(&most.load(Ordering::SeqCst)));
    assert_eq!(exports.free_permits().await.unwrap(), 3);
}

#[test]
fn s7_s8_s9_run_gives_the_value_and_frees() {
    let (locks, _) = manual();
    let exports = semaphore(&locks, 1);
    let exports_too = exports.clone();
    let value = now(async move {
        exports_too.run_exclusive(async |slot| slot.fencing_token().get() > 0).await
    });
    assert!(value.unwrap());
    assert_eq!(now(exports.free_permits()).unwrap(), 1);
}

#[test]
fn s10_a_failing_or_panicking_work_frees() {
    let (locks, _) = manual();
    let exports = semaphore(&locks, 1);
    let exports_too = exports.clone();
    let failed: Result<u32, &str> =
        now(async move { exports_too.run_exclusive(async |_| Err("no")).await.unwrap() });
    assert_eq!(failed, Err("no"));
    let panicking = exports.clone();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        pollster::block_on(panicking.run_exclusive(async |_| panic!("work")))
    }));
    assert!(panicked.is_err());
    assert_eq!(now(exports.free_permits()).unwrap(), 1);
}

#[test]
fn s17_a_timeout_of_zero_is_one_attempt() {
    let (locks, _) = manual();
    let exports = semaphore(&locks, 1);
    let _slot = now(exports.acquire().timeout(Duration::ZERO)).unwrap();
    assert!(now(exports.acquire().timeout(Duration::ZERO)).unwrap_err().is_timeout());
    let state = now(exports.inspect()).unwrap().unwrap();
    assert!(state.waiters.is_empty());
}

#[test]
fn s20_s21_a_given_token_is_kept() {
    let (locks, _) = manual();
    let exports = semaphore(&locks, 1);
    let slot = now(exports.acquire()).unwrap();
    assert!(!slot.token().to_string().is_empty());
    let mine = Token::new("mine").unwrap();
    let mut waiter = Probe::pending(exports.acquire().token(mine.clone()));
    now(slot.release()).unwrap();
    assert_eq!(waiter.granted().token(), &mine);
}

#[test]
fn st1_try_gives_none_for_busy() {
    let (locks, _) = manual();
    let exports = semaphore(&locks, 2);
    let one = now(exports.try_acquire()).unwrap().unwrap();
    let two = now(exports.try_acquire()).unwrap().unwrap();
    assert_ne!(one.token(), two.token());
    assert!(now(exports.try_acquire()).unwrap().is_none());
    now(one.release()).unwrap();
    let three = now(exports.try_acquire()).unwrap().unwrap();
    drop((two, three));
    assert_eq!(now(exports.free_permits()).unwrap(), 2);
}

#[test]
fn st2_a_failed_try_leaves_nothing_queued() {
    let (locks, _) = manual();
    let exports = semaphore(&locks, 1);
    let slot = now(exports.acquire()).unwrap();
    assert!(now(exports.try_acquire()).unwrap().is_none());
    now(slot.release()).unwrap();
    assert_eq!(now(exports.free_permits()).unwrap(), 1);
}

#[test]
fn st3_st4_try_with_a_timeout_waits_that_long() {
    let (locks, clock) = manual();
    let exports = semaphore(&locks, 1);
    let slot = now(exports.acquire()).unwrap();
    let mut short = Probe::pending(exports.try_acquire().timeout(ms(30)));
    let mut long = Probe::pending(exports.try_acquire().timeout(ms(1000)));
    clock.advance(ms(30));
    assert!(short.done().unwrap().is_none());
    now(slot.release()).unwrap();
    assert!(long.done().unwrap().is_some());
}

#[test]
fn sl4_a_token_that_is_held_is_refused() {
    let (locks, _) = manual();
    let exports = semaphore(&locks, 2);
    let token = Token::new("mine").unwrap();
    let _slot = now(exports.acquire().token(token.clone())).unwrap();
    let error = now(exports.acquire().token(token.clone())).unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::TokenInUse);
    assert!(!error.to_string().contains("mine"));
    assert_eq!(now(exports.free_permits()).unwrap(), 1);
}

#[test]
fn sl6_without_a_ttl_it_never_ends() {
    let (locks, clock) = manual();
    let exports = semaphore(&locks, 1);
    let slot = now(exports.acquire().ttl(None)).unwrap();
    clock.advance(Duration::from_secs(1_000_000));
    assert_eq!(now(slot.remaining()).unwrap(), Remaining::Never);
    now(slot.release()).unwrap();
    assert_eq!(now(slot.remaining()).unwrap(), Remaining::Gone);
}

#[test]
fn sl7_sl8_the_ttl_runs_out() {
    let (locks, clock) = manual();
    let exports = semaphore(&locks, 1);
    let slot = now(exports.acquire().ttl(ms(1000))).unwrap();
    clock.advance(ms(50));
    assert_eq!(now(slot.remaining()).unwrap(), Remaining::Left(ms(950)));
    clock.advance(ms(950));
    assert_eq!(now(slot.remaining()).unwrap(), Remaining::Gone);
    assert!(!slot.is_held());
    assert!(!now(exports.is_locked()).unwrap());
}

#[test]
fn sl9_a_late_release_of_an_expired_grant_is_harmless() {
    let (locks, clock) = manual();
    let exports = semaphore(&locks, 1);
    let slot = now(exports.acquire().ttl(ms(50))).unwrap();
    let mut waiter = Probe::pending(exports.acquire());
    clock.advance(ms(50));
    let second = waiter.granted();
    assert!(!now(slot.release()).unwrap());
    drop(slot);
    assert!(second.is_held());
    assert!(now(exports.is_locked()).unwrap());
    now(second.release()).unwrap();
    assert!(!now(exports.is_locked()).unwrap());
}

#[test]
fn sl10_the_ttl_counts_from_the_grant() {
    let (locks, clock) = manual();
    let exports = semaphore(&locks, 1);
    let slot = now(exports.acquire()).unwrap();
    let mut waiter = Probe::pending(exports.acquire().ttl(ms(100)));
    clock.advance(ms(80));
    now(slot.release()).unwrap();
    let second = waiter.granted();
    assert_eq!(now(second.remaining()).unwrap(), Remaining::Left(ms(100)));
}

#[test]
fn sl11_sl12_sl16_extend_moves_the_end() {
    let (locks, clock) = manual();
    let exports = semaphore(&locks, 1);
    let slot = now(exports.acquire().ttl(ms(50))).unwrap();
    clock.advance(ms(30));
    assert!(now(slot.extend(ms(100))).unwrap());
    clock.advance(ms(40));
    assert!(slot.is_held());
    clock.advance(ms(90));
    assert!(!slot.is_held());
    assert!(!now(slot.extend(ms(100))).unwrap());

    let endless = now(exports.acquire().ttl(None)).unwrap();
    assert!(now(endless.extend(ms(50))).unwrap());
    clock.advance(ms(80));
    assert!(!now(exports.is_locked()).unwrap());

    let freed = now(exports.acquire().ttl(ms(50))).unwrap();
    assert!(now(freed.extend(None)).unwrap());
    clock.advance(ms(80));
    assert!(freed.is_held());
    assert_eq!(now(freed.remaining()).unwrap(), Remaining::Never);
}

#[test]
fn sl13_the_ttl_passes_through_try() {
    let (locks, clock) = manual();
    let exports = semaphore(&locks, 1);
    let slot = now(exports.try_acquire().ttl(ms(50))).unwrap().unwrap();
    clock.advance(ms(50));
    assert!(!slot.is_held());
}

#[test]
fn sl14_bad_ttls_take_no_permit() {
    let (locks, _) = manual();
    let exports = semaphore(&locks, 1);
    for bad in [Duration::ZERO, Duration::from_micros(999), ms(1 << 31), Duration::MAX] {
        let error = now(exports.acquire().ttl(bad)).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::InvalidArgument { .. }), "{bad:?}: {error}");
        assert!(now(exports.try_acquire().ttl(bad)).is_err());
        assert_eq!(now(exports.free_permits()).unwrap(), 1);
    }
    let slot = now(exports.acquire()).unwrap();
    // Validated on a busy lock too (rule W6).
    assert!(now(exports.try_acquire().ttl(Duration::ZERO)).is_err());
    let error: Error = now(slot.extend(Duration::ZERO)).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::InvalidArgument { .. }));
    assert!(slot.is_held());
}

#[test]
fn q5_bad_weights_and_capacities_are_refused_at_once() {
    let (locks, _) = manual();
    let exports = semaphore(&locks, 3);
    assert!(now(locks.rw_lock("rw").unwrap().read().weight(2)).is_err());
    for weight in [0, 4, u32::MAX] {
        let error = now(exports.acquire().weight(weight)).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::InvalidArgument { .. }), "{error}");
        assert!(now(exports.try_acquire().weight(weight)).is_err());
    }
    assert!(locks.semaphore("none", 0).is_err());
    assert!(locks.semaphore("many", 1 << 31).is_err());
    assert!(locks.semaphore("", 1).is_err());
    assert!(now(locks.mutex("one").unwrap().lock().weight(2)).is_err());
}

#[test]
fn n2_another_capacity_of_a_live_name_is_a_mismatch() {
    let (locks, _) = manual();
    let _two = locks.semaphore("exports", 2).unwrap();
    let error = locks.semaphore("exports", 5).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error.kind(), ErrorKind::ConfigMismatch { .. }));
    assert!(text.contains('2') && text.contains('5'), "{text}");
}
