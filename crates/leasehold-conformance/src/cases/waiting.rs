//! Waiters that leave, are rejected or race with their grant (rules Q4, W5, W7).

use std::{
    sync::{
        Arc, Barrier, Mutex, RwLock,
        atomic::{AtomicU32, Ordering::SeqCst},
    },
    task::{Context, Wake as WakeByStd, Waker},
    thread,
};

use leasehold_core::{Acquired, Confirmed, Released, WatchFor};

use crate::{
    Bench,
    bench::{Ask, Client, Held, Lock, Queued, WAKE_BOUND, block::eventually, client::cancelled},
    case::theme,
};

theme! {
    Nothing, "Q4", q4_a_waiter_that_leaves_is_told_so;
    Nothing, "Q4", q4_a_waiter_that_left_is_never_granted;
    Nothing, "Q4, field report 37", q4_a_grant_that_races_with_the_leave_is_passed_on;
    Nothing, "Q4", q4_a_claim_that_is_given_up_lets_several_in;
    Nothing, "L5, field report 9", l5_a_wake_without_a_cause_is_harmless;
    Nothing, "Q4", q4_all_waiters_leave_in_any_order;
    Nothing, "Q4", q4_release_and_leave_at_the_same_moment_lose_no_permit;
    Nothing, "Q1, Q4", q4_threads_on_one_mutex_never_overlap;
    Nothing, "Q1, Q4, acceptance S6, S11", q4_threads_on_a_semaphore_are_never_more_than_its_permits;
    Nothing, "Q1, Q4, acceptance R15", q4_threads_that_read_and_write_never_meet;
    Nothing, "Q4, Q6", q4_ten_thousand_waiters_leave_nothing;
    Nothing, "W7, field report 39", w7_an_abandoned_grant_is_passed_on;
    Nothing, "W7, field report 39", w7_an_abandoned_waiter_is_never_granted;
    Nothing, "W7, L7, field report 40", w7_an_acquisition_abandoned_on_its_way_leaves_nothing;
    Nothing, "W7", w7_an_abandoned_wait_on_its_way_leaves_nothing;
    Nothing, "W5, acceptance S4, R13", w5_cancel_all_rejects_every_waiter_with_the_reason;
    Nothing, "W5", w5_cancel_all_rejects_in_queue_order;
    Nothing, "W5, acceptance S16, R17", w5_cancel_all_leaves_holders_and_the_lock_alone;
    Nothing, "W5, U2, acceptance S18", w5_cancel_all_leaves_watchers_waiting;
    Nothing, "W5", w5_cancel_all_of_an_idle_lock_does_nothing;
    Nothing, "W5", w5_a_rejection_is_told_once;
    Nothing, "W5", w5_a_waiter_that_comes_after_cancel_all_is_not_rejected;
}

fn q4_a_waiter_that_leaves_is_told_so(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.mutex("leave"));
    let held = a.acquire(&lock).held();
    let waiter = a.acquire(&lock).queued();
    waiter.leave();
    assert_eq!(waiter.try_leave(), Released::Unknown, "the second time it finds nothing");
    assert_eq!(waiter.confirm(), Confirmed::Unknown);
    assert_eq!(a.used_and_queued(&lock), (1, 0));
    held.release();
    a.assert_empty();
}

fn q4_a_waiter_that_left_is_never_granted(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.mutex("left"));
    let held = a.acquire(&lock).held();
    let (leaves, stays) = (a.acquire(&lock).queued(), b.acquire(&lock).queued());
    leaves.leave();
    held.release();
    stays.granted().release();
    assert_eq!(leaves.confirm(), Confirmed::Unknown);
    a.assert_empty();
}

/// The waiter gives up when the grant is there already but it has not heard of it.
fn q4_a_grant_that_races_with_the_leave_is_passed_on(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.mutex("race"));
    let held = a.acquire(&lock).held();
    let (first, second) = (a.acquire(&lock).queued(), b.acquire(&lock).queued());
    held.release();
    assert_eq!(first.try_leave(), Released::Holder, "it had been granted");
    second.granted().release();
    a.assert_empty();
}

fn q4_a_claim_that_is_given_up_lets_several_in(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.rw_lock("race", 4));
    let held = a.acquire(&lock).whole().held();
    let write = a.acquire(&lock).whole().queued();
    let reads = [a.acquire(&lock).queued(), a.acquire(&lock).queued()];
    held.release();
    write.abandon();
    reads.map(|read| read.granted()).iter().for_each(Held::release);
    a.eventually_unused(&lock, WAKE_BOUND);
}

fn l5_a_wake_without_a_cause_is_harmless(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.mutex("spurious"));
    let held = a.acquire(&lock).held();
    let waiter = a.acquire(&lock).queued();
    for _ in 0..3 {
        waiter.place().wake.notify();
        waiter.woken();
        waiter.waits();
    }
    held.release();
    waiter.granted().release();
    a.assert_empty();
}

fn q4_all_waiters_leave_in_any_order(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.semaphore("shuffle", 2));
    let held = a.acquire(&lock).weight(2).held();
    let waiters: Vec<_> = (0..97).map(|n| a.acquire(&lock).weight(1 + n % 2).queued()).collect();
    // 31 and 97 have no common divisor, so every waiter leaves once, far from the one before.
    for n in 0..waiters.len() {
        waiters[n * 31 % waiters.len()].leave();
    }
    assert_eq!(a.used_and_queued(&lock), (2, 0));
    held.release();
    a.assert_empty();
}

fn q4_release_and_leave_at_the_same_moment_lose_no_permit(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.mutex("moment"));
    for _ in 0..100 {
        let held = a.acquire(&lock).held();
        let (leaves, stays) = (b.acquire(&lock).queued(), b.acquire(&lock).queued());
        let start = Barrier::new(2);
        thread::scope(|scope| {
            scope.spawn(|| {
                start.wait();
                held.release();
            });
            start.wait();
            let found = leaves.try_leave();
            assert_ne!(found, Released::Unknown, "it was queued or granted");
        });
        stays.granted().release();
        assert_eq!(a.used_and_queued(&lock), (0, 0));
    }
    a.assert_empty();
}

/// Four threads with a client each; `section` runs in each of their sections, with its number.
fn on_threads(
    bench: &Bench,
    ask: impl Fn(&Client, u32) -> Ask + Sync,
    section: impl Fn(u32) + Sync,
) {
    let (ask, section) = (&ask, &section);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let client = bench.client();
                for number in 0..50 {
                    let held = enter(ask(&client, number));
                    section(number);
                    held.release();
                }
            });
        }
    });
    bench.client().assert_empty();
}

#[track_caller]
fn enter(ask: Ask) -> Held {
    match ask.clone().answer() {
        Acquired::Granted(grant) => ask.granted(grant),
        Acquired::Queued(place) => Queued::resume(ask, place).granted(),
        other => panic!("granted or queued, the store says {other:?}"),
    }
}

fn q4_threads_on_one_mutex_never_overlap(bench: &Bench) {
    let (lock, inside) = (bench.mutex("threads"), Mutex::new(()));
    let ask = |client: &Client, _| client.acquire(&lock);
    on_threads(bench, ask, |_| drop(inside.try_lock().expect("nobody else is inside")));
}

fn q4_threads_on_a_semaphore_are_never_more_than_its_permits(bench: &Bench) {
    let (lock, inside) = (bench.semaphore("threads", 3), AtomicU32::new(0));
    let weight = |number| 1 + number % 2;
    let ask = |client: &Client, number| client.acquire(&lock).weight(weight(number));
    on_threads(bench, ask, |number| {
        let with_us = inside.fetch_add(weight(number), SeqCst) + weight(number);
        assert!(with_us <= 3, "{with_us} permits are used");
        thread::yield_now();
        inside.fetch_sub(weight(number), SeqCst);
    });
}

fn q4_threads_that_read_and_write_never_meet(bench: &Bench) {
    let (lock, data) = (bench.rw_lock("threads", 8), RwLock::new(()));
    let writes = |number| number % 5 == 0;
    let ask = |client: &Client, number| {
        let ask = client.acquire(&lock);
        if writes(number) { ask.whole() } else { ask }
    };
    on_threads(bench, ask, |number| {
        if writes(number) {
            drop(data.try_write().expect("a writer is alone"));
        } else {
            let read = data.try_read().expect("no writer is inside");
            thread::yield_now();
            drop(read);
        }
    });
}

fn q4_ten_thousand_waiters_leave_nothing(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.mutex("ten-thousand"));
    let held = a.acquire(&lock).held();
    let waiters: Vec<_> = (0..10_000).map(|_| a.acquire(&lock).queued()).collect();
    assert_eq!(a.counts(&lock).queued, 10_000);
    waiters.iter().for_each(Queued::leave);
    assert_eq!(a.used_and_queued(&lock), (1, 0));
    held.release();
    a.assert_empty();
}

fn w7_an_abandoned_grant_is_passed_on(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.mutex("drop"));
    let held = a.acquire(&lock).held();
    let next = b.acquire(&lock).queued();
    held.abandon();
    let next = next.granted();
    assert_eq!(held.try_release(), Released::Unknown);
    next.abandon();
    a.eventually_unused(&lock, WAKE_BOUND);
}

fn w7_an_abandoned_waiter_is_never_granted(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.mutex("drop"));
    let held = a.acquire(&lock).held();
    let (dropped, stays) = (b.acquire(&lock).queued(), b.acquire(&lock).queued());
    dropped.abandon();
    held.release();
    stays.granted().release();
    a.eventually_unused(&lock, WAKE_BOUND);
    assert_eq!(dropped.confirm(), Confirmed::Unknown);
}

/// The future was dropped before the answer was there, polled or not.
fn w7_an_acquisition_abandoned_on_its_way_leaves_nothing(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.mutex("on-its-way"));
    for polls in [0, 1] {
        let ask = a.acquire(&lock);
        let mut call = a.backend().acquire(ask.request());
        for _ in 0..polls {
            let _ = std::pin::Pin::new(&mut call).poll(&mut Context::from_waker(Waker::noop()));
        }
        drop(call);
        a.backend().abandon(&lock.id, &ask.request().token);
        // Whatever the order in which the store saw the two: the lock is free for the next.
        eventually("the lock is free", WAKE_BOUND, || match a.acquire(&lock).try_only().answer() {
            Acquired::Granted(_) => true,
            Acquired::Busy(_) => false,
            other => panic!("granted or busy, the store says {other:?}"),
        });
        let left = a.inspect(&lock).holders;
        assert_eq!(left.len(), 1, "one grant is the try's, nobody else holds: {left:?}");
        destroy(&a, &lock);
    }
}

fn destroy(client: &Client, lock: &Lock) {
    client.destroy(lock, None, "next round");
}

fn w7_an_abandoned_wait_on_its_way_leaves_nothing(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.mutex("on-its-way"));
    let held = a.acquire(&lock).held();
    let ask = b.acquire(&lock);
    drop(b.backend().acquire(ask.request()));
    b.backend().abandon(&lock.id, &ask.request().token);
    let next = b.acquire(&lock).queued();
    held.release();
    next.granted().release();
    a.eventually_unused(&lock, WAKE_BOUND);
}

fn w5_cancel_all_rejects_every_waiter_with_the_reason(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.rw_lock("cancel", 4));
    let _write = a.acquire(&lock).whole().held();
    let waiters =
        [a.acquire(&lock).queued(), b.acquire(&lock).queued(), b.acquire(&lock).whole().queued()];
    assert_eq!(b.cancel_all(&lock, "Operation cancelled"), 3);
    for waiter in &waiters {
        assert_eq!(waiter.rejected(), cancelled("Operation cancelled"));
    }
    assert_eq!(a.used_and_queued(&lock), (4, 0));
}

/// Notes when a waiter was woken.
struct Note(usize, Arc<Mutex<Vec<usize>>>);

impl WakeByStd for Note {
    fn wake(self: Arc<Self>) {
        self.1.lock().expect("no panic while noting").push(self.0);
    }
}

fn w5_cancel_all_rejects_in_queue_order(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.mutex("order"));
    let _held = a.acquire(&lock).held();
    let waiters: Vec<_> = (0..20).map(|_| a.acquire(&lock).queued()).collect();
    let woken = Arc::new(Mutex::new(Vec::new()));
    for (n, waiter) in waiters.iter().enumerate() {
        let waker = Waker::from(Arc::new(Note(n, Arc::clone(&woken))));
        assert!(waiter.place().wake.poll_notified(&Context::from_waker(&waker)).is_pending());
    }
    assert_eq!(a.cancel_all(&lock, "draining"), 20);
    eventually("everybody is woken", WAKE_BOUND, || woken.lock().expect("no panic").len() == 20);
    assert_eq!(*woken.lock().expect("no panic"), (0..20).collect::<Vec<_>>());
    for waiter in &waiters {
        assert_eq!(waiter.confirm(), Confirmed::Rejected(cancelled("draining")));
    }
}

fn w5_cancel_all_leaves_holders_and_the_lock_alone(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.mutex("stays"));
    let held = a.acquire(&lock).held();
    let waiter = b.acquire(&lock).queued();
    assert_eq!(a.cancel_all(&lock, "draining"), 1);
    assert_eq!(waiter.rejected(), cancelled("draining"));
    assert!(held.is_held());
    b.acquire(&lock).busy();
    held.release();
    b.acquire(&lock).held().release();
    a.assert_empty();
}

fn w5_cancel_all_leaves_watchers_waiting(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.semaphore("watched", 5));
    let held = a.acquire(&lock).weight(5).held();
    let mut any = b.watches(&lock, WatchFor::AnyPermit);
    let mut all = b.watches(&lock, WatchFor::Unlocked);
    let waiter = b.acquire(&lock).queued();
    assert_eq!(a.cancel_all(&lock, "draining"), 1);
    assert_eq!(waiter.rejected(), cancelled("draining"));
    any.waits();
    all.waits();
    held.release();
    any.done();
    all.done();
}

fn w5_cancel_all_of_an_idle_lock_does_nothing(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.mutex("idle"));
    assert_eq!(a.cancel_all(&lock, "nobody"), 0);
    a.assert_empty();
    let held = a.acquire(&lock).held();
    assert_eq!(a.cancel_all(&lock, "nobody"), 0);
    held.release();
}

fn w5_a_rejection_is_told_once(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.mutex("once"));
    let held = a.acquire(&lock).held();
    let waiter = a.acquire(&lock).queued();
    a.cancel_all(&lock, "told");
    assert_eq!(waiter.rejected(), cancelled("told"));
    assert_eq!(waiter.confirm(), Confirmed::Unknown);
    held.release();
    a.assert_empty();
}

fn w5_a_waiter_that_comes_after_cancel_all_is_not_rejected(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.mutex("after"));
    let held = a.acquire(&lock).held();
    let before = a.acquire(&lock).queued();
    a.cancel_all(&lock, "before");
    let after = a.acquire(&lock).queued();
    assert_eq!(before.rejected(), cancelled("before"));
    after.waits();
    held.release();
    after.granted().release();
    a.assert_empty();
}
