//! No acquisition allocates: not from a free lock, not from a queue. Alone in its binary, as it
//! counts every allocation of its thread.
#![cfg(not(leasehold_loom))]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    future::Future,
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
    time::Duration,
};

use leasehold_sync::{Mutex, RwLock, Semaphore};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: everything is handed to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's duties are the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's duties are the same.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn allocations_of(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    work();
    ALLOCATIONS.get() - before
}

fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

fn ready<F: Future>(future: F) -> F::Output {
    match poll(pin!(future)) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("not ready at once"),
    }
}

#[test]
fn the_counter_counts() {
    assert!(allocations_of(|| drop(std::hint::black_box(Box::new(1)))) > 0);
}

#[test]
fn a_free_lock_allocates_nothing() {
    let (mutex, lock) = (Mutex::new(0), RwLock::new(0));
    let semaphore = Semaphore::new(3).unwrap();
    let minute = Duration::from_secs(60);
    let allocated = allocations_of(|| {
        for _ in 0..1000 {
            *ready(mutex.lock()) += 1;
            *ready(mutex.lock().timeout(minute)).unwrap() += 1;
            *mutex.blocking_lock() += 1;
            drop(ready(lock.read()));
            drop(ready(lock.write()).downgrade());
            drop(ready(ready(lock.upgradable_read()).upgrade()));
            drop(ready(semaphore.acquire()));
            drop(ready(semaphore.acquire_many(3)));
        }
    });
    assert_eq!(allocated, 0);
}

#[test]
fn a_queue_allocates_nothing() {
    let mutex = Mutex::new(0);
    let allocated = allocations_of(|| {
        for _ in 0..1000 {
            let held = ready(mutex.lock());
            let mut first = pin!(mutex.lock());
            let mut second = pin!(mutex.lock());
            let mut leaver = pin!(mutex.lock());
            assert!(poll(first.as_mut()).is_pending());
            assert!(poll(leaver.as_mut()).is_pending());
            assert!(poll(second.as_mut()).is_pending());
            leaver.set(mutex.lock());
            drop(held);
            drop(ready(first));
            drop(ready(second));
        }
    });
    assert_eq!(allocated, 0);
}

#[test]
fn a_long_run_of_reads_allocates_a_handful() {
    let lock = RwLock::new(0);
    let mut reads: Vec<_> = (0..1000).map(|_| Box::pin(lock.read())).collect();
    let writing = lock.try_write();
    for read in &mut reads {
        assert!(poll(read.as_mut()).is_pending());
    }
    // A thousand wakers of one step need a place; it doubles, so it is nothing per reader.
    let allocated = allocations_of(|| drop(writing));
    assert!(allocated <= 12, "{allocated} allocations for 1000 readers");
}

#[test]
fn a_blocking_thread_allocates_once_and_no_more() {
    let mutex = std::sync::Arc::new(Mutex::new(0));
    let waits = |mutex: &std::sync::Arc<Mutex<i32>>| {
        let held = mutex.clone().blocking_lock_owned();
        let other = mutex.clone();
        let thread = std::thread::spawn(move || {
            while other.queued() == 0 {
                std::thread::yield_now();
            }
            drop(held);
        });
        let allocated = allocations_of(|| *mutex.blocking_lock() += 1);
        thread.join().unwrap();
        allocated
    };
    waits(&mutex);
    assert_eq!(waits(&mutex), 0);
}
