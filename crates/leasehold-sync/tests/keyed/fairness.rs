//! In the order of arrival, and nobody starves (rule K2).

use std::sync::{
    Arc, Mutex as Plain,
    atomic::{AtomicU32, Ordering},
};

use leasehold_sync::KeyedLock;
use smol::future::yield_now;

use crate::{poll, ready};

/// acceptance AK9
#[test]
fn ak9_fifty_writes_of_a_key_enter_in_order_one_at_a_time() {
    let lock = Arc::new(KeyedLock::<u8>::new());
    let held = lock.try_write(1);
    let (order, inside) = (Arc::new(Plain::new(Vec::new())), Arc::new(AtomicU32::new(0)));
    let executor = smol::LocalExecutor::new();
    let tasks: Vec<_> = (0..50)
        .map(|number| {
            let (lock, order, inside) = (lock.clone(), order.clone(), inside.clone());
            executor.spawn(async move {
                let guard = lock.write(1).await;
                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                order.lock().unwrap().push(number);
                yield_now().await;
                inside.fetch_sub(1, Ordering::SeqCst);
                drop(guard);
            })
        })
        .collect();
    while executor.try_tick() {}
    assert_eq!(lock.queued(), 50);
    drop(held);
    smol::block_on(executor.run(async {
        for task in tasks {
            task.await;
        }
    }));
    assert_eq!(*order.lock().unwrap(), (0..50).collect::<Vec<_>>());
    assert!(lock.is_empty());
}

/// acceptance AK10
#[test]
fn ak10_sixty_mixed_requests_on_two_keys_exclude_as_they_must() {
    let lock = Arc::new(KeyedLock::<&str>::new());
    let inside = Arc::new([const { AtomicU32::new(0) }; 2]);
    let overlaps = Arc::new(AtomicU32::new(0));
    let executor = smol::Executor::new();
    let tasks: Vec<_> = (0..60)
        .map(|number| {
            let (lock, inside, overlaps) = (lock.clone(), inside.clone(), overlaps.clone());
            executor.spawn(async move {
                let (key, place) = if number % 2 == 0 { ("a", 0) } else { ("b", 1) };
                let writes = number % 3 == 0;
                let guard = if writes { lock.write(key).await } else { lock.read(key).await };
                // A write counts as a thousand.
                let weight = if writes { 1000 } else { 1 };
                let before = inside[place].fetch_add(weight, Ordering::SeqCst);
                assert!(if writes { before == 0 } else { before < 1000 });
                overlaps.fetch_add(u32::from(before > 0), Ordering::SeqCst);
                yield_now().await;
                inside[place].fetch_sub(weight, Ordering::SeqCst);
                drop(guard);
            })
        })
        .collect();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                smol::block_on(executor.run(std::future::poll_fn(|cx| {
                    cx.waker().wake_by_ref();
                    match executor.is_empty() {
                        true => std::task::Poll::Ready(()),
                        false => std::task::Poll::Pending,
                    }
                })))
            });
        }
    });
    for task in tasks {
        smol::block_on(task);
    }
    assert!(overlaps.load(Ordering::SeqCst) > 0, "neighbouring reads are together");
    assert!(lock.is_empty());
}

#[test]
fn neither_try_nor_a_later_request_barges() {
    let lock = KeyedLock::<u8>::new();
    let held = ready(lock.read(1));
    let mut write = Box::pin(lock.write(1));
    assert!(poll(write.as_mut()).is_pending());
    assert!(lock.try_read(1).is_none(), "behind the queued write");
    assert!(lock.try_write(2).is_some(), "nothing to do with it");
    assert!(lock.try_read_all().is_none(), "the queued write conflicts");
    drop(held);
    assert!(lock.try_read(1).is_none(), "handed over in the same step");
    drop(ready(write));
    assert!(lock.try_read(1).is_some());
}

/// Threads that mix everything: nobody is lost, nobody overlaps.
#[test]
fn threads_exclude_each_other() {
    let lock = Arc::new(KeyedLock::<usize>::new());
    let cells: Arc<Vec<AtomicU32>> = Arc::new((0..4).map(|_| AtomicU32::new(0)).collect());
    let threads: Vec<_> = (0..4)
        .map(|thread| {
            let (lock, cells) = (lock.clone(), cells.clone());
            std::thread::spawn(move || {
                for turn in 0..3000 {
                    let key = (turn * 7 + thread) % 4;
                    if turn % 50 == 49 {
                        let _all = lock.write_all().blocking();
                        assert!(cells.iter().all(|cell| cell.load(Ordering::Relaxed) == 0));
                    } else if turn % 50 == 20 {
                        let _all = lock.read_all().blocking();
                        assert!(cells.iter().all(|cell| cell.load(Ordering::Relaxed) == 0));
                    } else {
                        let _guard = lock.write(key).blocking();
                        assert_eq!(cells[key].swap(1, Ordering::Relaxed), 0);
                        std::thread::yield_now();
                        cells[key].store(0, Ordering::Relaxed);
                    }
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert!(lock.is_empty() && lock.queued() == 0);
}
