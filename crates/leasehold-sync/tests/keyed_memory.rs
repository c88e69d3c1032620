//! What held keys cost, and that nothing is left of them (rule K3). Alone in its binary, as it
//! counts every byte of its thread.
#![cfg(not(leasehold_loom))]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    future::Future,
    pin::Pin,
    task::{Context, Waker},
};

use leasehold_sync::KeyedLock;

/// For one key of eight bytes.
const BYTES_PER_KEY_MAX: isize = 64;
/// What a lock may keep that was used a lot: a little for each of its shards.
const BYTES_LEFT_MAX: isize = 256 * 1024;

struct Counting;

thread_local! {
    static BYTES: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    let _ = BYTES.try_with(|count| count.set(count.get() + bytes));
}

// SAFETY: everything is handed to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        // SAFETY: the caller's duties are the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-layout.size().cast_signed());
        // SAFETY: the caller's duties are the same.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// How many bytes more there are after `work`, the room that it already has not counted.
fn grown_by(work: impl FnOnce()) -> isize {
    let before = BYTES.get();
    work();
    BYTES.get() - before
}

#[test]
fn the_counter_counts() {
    let mut bytes = Vec::<u8>::new();
    assert_eq!(grown_by(|| bytes.reserve_exact(1000)), 1000);
    assert_eq!(grown_by(|| drop(bytes)), -1000);
}

fn a_held_key_costs_little_and_leaves_nothing(keys: u64) {
    let lock = KeyedLock::<u64>::new();
    let mut guards = Vec::with_capacity(usize::try_from(keys).expect("it fits"));
    let held = grown_by(|| guards.extend((0..keys).filter_map(|key| lock.try_write(key))));
    assert_eq!(lock.len(), guards.len());
    let count = isize::try_from(keys).expect("it fits");
    assert_eq!(guards.len(), count.unsigned_abs());
    assert!(held <= BYTES_PER_KEY_MAX * count, "{held} bytes for {keys} keys");
    let freed = grown_by(|| guards.clear());
    assert!(held + freed <= BYTES_LEFT_MAX, "{} bytes are left", held + freed);
    assert!(lock.is_empty());
}

#[test]
fn ten_thousand_held_keys_cost_64_bytes_each_and_leave_nothing() {
    a_held_key_costs_little_and_leaves_nothing(10_000);
}

#[test]
fn a_million_held_keys_cost_64_bytes_each_and_leave_nothing() {
    a_held_key_costs_little_and_leaves_nothing(1_000_000);
}

/// One after another: the table never gets larger than for one key.
#[test]
fn a_million_used_keys_leave_nothing() {
    let lock = KeyedLock::<u64>::new();
    let left = grown_by(|| (0..1_000_000).for_each(|key| drop(lock.try_write(key))));
    assert!(left <= BYTES_LEFT_MAX / 4, "{left} bytes are left");
    assert!(lock.is_empty());
}

#[test]
fn ten_thousand_cancelled_waiters_leave_nothing() {
    let lock = KeyedLock::<u64>::new();
    let left = grown_by(|| {
        let guards: Vec<_> = (0..100).filter_map(|key| lock.try_write(key)).collect();
        let mut waiters: Vec<_> = (0..10_000).map(|n| Box::pin(lock.write(n % 100))).collect();
        let mut cx = Context::from_waker(Waker::noop());
        for waiter in &mut waiters {
            assert!(Pin::new(waiter).poll(&mut cx).is_pending());
        }
        assert_eq!(lock.queued(), 10_000);
        drop(waiters);
        assert_eq!((lock.queued(), lock.len()), (0, 100));
        drop(guards);
    });
    assert!(left <= BYTES_LEFT_MAX, "{left} bytes are left");
    assert!(lock.is_empty());
}
