//! The acceptance lines for read-write locks, on lease locks in memory.

mod common;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use common::{Probe, manual, ms, now};
use leasehold::{ErrorKind, LockManager, NamedRwLock};

fn catalog(locks: &LockManager) -> NamedRwLock {
    locks.rw_lock("catalog").unwrap()
}

#[test]
fn r1_r2_r3_counts_follow() {
    let (locks, _) = manual();
    let catalog = catalog(&locks);
    let writer = now(catalog.write()).unwrap();
    assert!(now(catalog.is_write_locked()).unwrap());
    assert_eq!(now(catalog.active_readers()).unwrap(), 0);
    now(writer.release()).unwrap();
    assert!(!now(catalog.is_write_locked()).unwrap());
    let mut readers: Vec<_> = (0..3).map(|_| now(catalog.read()).unwrap()).collect();
    for left in (0..3).rev() {
        assert_eq!(now(catalog.active_readers()).unwrap(), left + 1);
        now(readers.pop().unwrap().release()).unwrap();
        assert_eq!(now(catalog.active_readers()).unwrap(), left);
    }
}

#[test]
fn r4_a_writer_waits_for_the_reader() {
    let (locks, clock) = manual();
    let catalog = catalog(&locks);
    let reader = now(catalog.read()).unwrap();
    let mut writer = Probe::pending(catalog.write());
    clock.advance(ms(100));
    assert!(writer.waits());
    now(reader.release()).unwrap();
    let _writer = writer.granted();
    assert!(now(catalog.is_write_locked()).unwrap());
}

#[test]
fn r5_a_reader_waits_for_the_writer() {
    let (locks, _) = manual();
    let catalog = catalog(&locks);
    let writer = now(catalog.write()).unwrap();
    let mut reader = Probe::pending(catalog.read());
    now(writer.release()).unwrap();
    let _reader = reader.granted();
    assert_eq!(now(catalog.active_readers()).unwrap(), 1);
}

#[test]
fn r6_writers_one_after_another_in_order() {
    let (locks, _) = manual();
    let catalog = catalog(&locks);
    let mut holder = now(catalog.write()).unwrap();
    let mut waiting: Vec<_> = (0..3).map(|_| Probe::pending(catalog.write())).collect();
    for next in 0..3 {
        now(holder.release()).unwrap();
        holder = waiting[next].granted();
        assert!(waiting[next + 1..].iter_mut().all(Probe::waits));
    }
}

#[test]
fn r7_a_reader_above_the_limit_waits() {
    let (locks, _) = manual();
    let catalog = locks.rw_lock_with("catalog", 3).unwrap();
    assert_eq!(now(catalog.max_readers()).unwrap(), 3);
    let mut readers: Vec<_> = (0..3).map(|_| now(catalog.read()).unwrap()).collect();
    let mut fourth = Probe::pending(catalog.read());
    now(readers.pop().unwrap().release()).unwrap();
    let _fourth = fourth.granted();
    assert_eq!(now(catalog.active_readers()).unwrap(), 3);
    assert!(!now(catalog.is_write_locked()).unwrap(), "full of readers is not a writer");
}

#[test]
fn r8_to_r11_run_gives_the_value_and_frees() {
    let (locks, _) = manual();
    let catalog = catalog(&locks);
    let inner = catalog.clone();
    let seen = now(async move {
        let reading = inner.run_shared(async |_| inner.active_readers().await.unwrap()).await;
        let writing = inner.run_exclusive(async |_| inner.is_write_locked().await.unwrap()).await;
        let failing = inner.run_exclusive(async |_| Err::<(), _>("no")).await;
        (reading.unwrap(), writing.unwrap(), failing.unwrap())
    });
    assert_eq!(seen, (1, true, Err("no")));
    assert!(!now(catalog.is_read_locked()).unwrap() && !now(catalog.is_write_locked()).unwrap());
}

#[test]
fn r12_readers_share() {
    let (locks, _) = manual();
    let catalog = catalog(&locks);
    let _one = now(catalog.read()).unwrap();
    let _two = now(catalog.read()).unwrap();
    assert!(now(catalog.is_read_locked()).unwrap());
}

#[test]
fn r14_the_timeout_covers_the_whole_wait() {
    let (locks, clock) = manual();
    let catalog = catalog(&locks);
    let _writer = now(catalog.write()).unwrap();
    let mut reader = Probe::pending(catalog.read().timeout(ms(100)));
    clock.advance(ms(100));
    let error = reader.done().unwrap_err();
    assert!(error.is_timeout());
    assert!(error.to_string().contains("read-write lock \"catalog\""), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r15_a_reader_and_a_writer_are_never_both_inside() {
    let locks = LockManager::in_memory();
    let catalog = catalog(&locks);
    let writing = Arc::new(AtomicBool::new(false));
    let mut tasks = Vec::new();
    for task in 0..8 {
        let (catalog, writing) = (catalog.clone(), Arc::clone(&writing));
        tasks.push(tokio::spawn(async move {
            for _ in 0..200 {
                if task % 4 == 0 {
                    let lease = catalog.write().await.unwrap();
                    assert!(!writing.swap(true, Ordering::SeqCst));
                    tokio::task::yield_now().await;
                    writing.store(false, Ordering::SeqCst);
                    lease.release().await.unwrap();
                } else {
                    let lease = catalog.read().await.unwrap();
                    assert!(!writing.load(Ordering::SeqCst));
                    tokio::task::yield_now().await;
                    assert!(!writing.load(Ordering::SeqCst));
                    drop(lease);
                }
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
}

#[test]
fn r16_a_later_reader_does_not_overtake_a_queued_writer() {
    let (locks, _) = manual();
    let catalog = catalog(&locks);
    let first = now(catalog.read()).unwrap();
    let mut writer = Probe::pending(catalog.write());
    let mut second = Probe::pending(catalog.read());
    assert!(now(catalog.try_read()).unwrap().is_none(), "a try does not barge");
    now(first.release()).unwrap();
    let writer = writer.granted();
    assert!(second.waits());
    assert_eq!(now(catalog.active_readers()).unwrap(), 0);
    now(writer.release()).unwrap();
    let _second = second.granted();
}

#[test]
fn q2_a_queued_writer_that_gives_up_lets_the_readers_in() {
    let (locks, clock) = manual();
    let catalog = catalog(&locks);
    let _first = now(catalog.read()).unwrap();
    let mut writer = Probe::pending(catalog.write().timeout(ms(10)));
    let mut readers: Vec<_> = (0..3).map(|_| Probe::pending(catalog.read())).collect();
    clock.advance(ms(10));
    assert!(writer.done().unwrap_err().is_timeout());
    let leases: Vec<_> = readers.iter_mut().map(Probe::granted).collect();
    assert_eq!(now(catalog.active_readers()).unwrap(), 4);
    drop(leases);
}

#[test]
fn r18_a_second_release_counts_nothing() {
    let (locks, _) = manual();
    let catalog = catalog(&locks);
    let reader = now(catalog.read()).unwrap();
    let _other = now(catalog.read()).unwrap();
    now(reader.release()).unwrap();
    now(reader.release()).unwrap();
    assert_eq!(now(catalog.active_readers()).unwrap(), 1);
}

#[test]
fn r19_max_readers_of_ten() {
    let (locks, _) = manual();
    let catalog = locks.rw_lock_with("catalog", 10).unwrap();
    let reader = now(catalog.read()).unwrap();
    assert!(now(catalog.is_read_locked()).unwrap());
    drop(reader);
    assert!(!now(catalog.is_read_locked()).unwrap());
}

#[test]
fn r20_zero_timeouts() {
    let (locks, _) = manual();
    let catalog = catalog(&locks);
    let _writer = now(catalog.write().timeout(Duration::ZERO)).unwrap();
    assert!(now(catalog.read().timeout(Duration::ZERO)).unwrap_err().is_timeout());
    assert!(now(catalog.write().timeout(Duration::ZERO)).unwrap_err().is_timeout());
}

#[test]
fn r21_max_readers_of_zero_is_refused() {
    let (locks, _) = manual();
    let error = locks.rw_lock_with("catalog", 0).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::InvalidArgument { .. }));
    assert!(error.to_string().contains("max readers must be greater than 0"), "{error}");
}

#[test]
fn rt1_to_rt4_tries() {
    let (locks, clock) = manual();
    let catalog = locks.rw_lock_with("catalog", 2).unwrap();
    let one = now(catalog.try_read()).unwrap().unwrap();
    let two = now(catalog.try_read()).unwrap().unwrap();
    assert!(now(catalog.try_read()).unwrap().is_none(), "the limit is reached");
    assert!(now(catalog.try_write()).unwrap().is_none());
    drop((one, two));
    let writer = now(catalog.try_write()).unwrap().unwrap();
    assert!(now(catalog.try_read()).unwrap().is_none());
    assert!(now(catalog.try_write()).unwrap().is_none());
    let mut short = Probe::pending(catalog.try_write().timeout(ms(30)));
    let mut long = Probe::pending(catalog.try_write().timeout(ms(1000)));
    clock.advance(ms(30));
    assert!(short.done().unwrap().is_none());
    now(writer.release()).unwrap();
    let _writer = long.done().unwrap().unwrap();
    assert!(now(catalog.is_write_locked()).unwrap());
    assert!(!now(catalog.is_read_locked()).unwrap());
}

#[test]
fn n2_no_max_readers_takes_what_is_registered() {
    let (locks, _) = manual();
    let three = locks.rw_lock_with("catalog", 3).unwrap();
    let any = locks.rw_lock("catalog").unwrap();
    assert_eq!(now(any.max_readers()).unwrap(), 3);
    assert!(locks.rw_lock_with("catalog", 7).is_err());
    drop(three);
}
