//! Bytes per held key, and what 10,000 cancelled waiters leave.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    pin::pin,
    sync::atomic::{AtomicBool, AtomicIsize, Ordering},
    task::{Context, Poll, Waker},
};

use leasehold_benches::{Report, Row, Unit};

use crate::table::{Dash, Lockable, Ours, Table};

const KEYS: u64 = 10_000;

/// Counts bytes while it is told to: otherwise it must not cost the rows of time anything.
struct Counting;

static COUNTS: AtomicBool = AtomicBool::new(false);
static BYTES: AtomicIsize = AtomicIsize::new(0);

fn count(size: usize, sign: isize) {
    if COUNTS.load(Ordering::Relaxed) {
        BYTES.fetch_add(sign * isize::try_from(size).unwrap_or(0), Ordering::Relaxed);
    }
}

// SAFETY: everything is handed to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 1);
        // SAFETY: the caller's duties are the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(layout.size(), -1);
        // SAFETY: the caller's duties are the same.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

pub(crate) fn measure(report: &mut Report) {
    let mut bytes = Row::new("keyed bytes per held key, 10k", Unit::BYTES).goal(64.0);
    bytes.add_ours(bytes_per_key::<Ours>());
    bytes.add_peer("lockable", bytes_per_key::<Lockable>());
    bytes.add_peer("dashmap+tokio", bytes_per_key::<Dash>());
    report.add(&bytes);
    let mut left = Row::new("keyed entries after 10k cancelled waiters", Unit::COUNT).goal(0.0);
    left.add_ours(entries_left::<Ours>());
    left.add_peer("lockable", entries_left::<Lockable>());
    left.add_peer("dashmap+tokio", entries_left::<Dash>());
    report.add(&left);
}

/// The guards are not counted, nor is the empty table.
fn bytes_per_key<T: Table>() -> f64 {
    let table = T::default();
    let mut guards = Vec::with_capacity(usize::try_from(KEYS).expect("few"));
    BYTES.store(0, Ordering::Relaxed);
    COUNTS.store(true, Ordering::Relaxed);
    guards.extend((0..KEYS).map(|key| pollster::block_on(table.lock(key))));
    COUNTS.store(false, Ordering::Relaxed);
    BYTES.load(Ordering::Relaxed) as f64 / KEYS as f64
}

/// A waiter for each of the held keys that is dropped, and then the holders.
fn entries_left<T: Table>() -> f64 {
    let table = T::default();
    let mut cx = Context::from_waker(Waker::noop());
    let guards: Vec<_> = (0..KEYS).map(|key| pollster::block_on(table.lock(key))).collect();
    let mut waiters: Vec<_> = (0..KEYS).map(|key| Box::pin(table.lock(key))).collect();
    for waiter in &mut waiters {
        assert!(matches!(pin!(waiter).poll(&mut cx), Poll::Pending));
    }
    drop(guards);
    drop(waiters);
    table.entries() as f64
}
