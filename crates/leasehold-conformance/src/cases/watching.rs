//! Watching without acquiring (rule U1).

use leasehold_core::WatchFor;

use crate::{Bench, case::theme};

theme! {
    Nothing, "U1", u1_what_is_true_already_is_done_at_once;
    Nothing, "U1, acceptance S12", u1_a_release_completes_the_watchers;
    Nothing, "U1", u1_watchers_acquire_nothing;
    Nothing, "U1, acceptance S13, S14", u1_any_permit_and_all_permits_differ;
    Nothing, "U1, Q3", u1_a_hand_off_is_no_unlock;
    Nothing, "U1, T3", u1_an_expiry_completes_the_watchers;
    Nothing, "U1", u1_readable_means_that_a_read_would_be_granted;
    Nothing, "U1, Q2", u1_a_leaving_waiter_may_make_a_lock_readable;
    Nothing, "U1", u1_what_became_true_stays_told;
    Nothing, "U1", u1_a_watcher_that_was_told_is_forgotten;
    Nothing, "U1", u1_an_unwatched_watcher_leaves_nothing;
    Proof, "U1, L4", u1_a_dead_watcher_leaves_nothing;
    Proof, "U1, T8", u1_a_death_completes_the_watchers;
}

const PERMITS: [WatchFor; 3] = [WatchFor::Unlocked, WatchFor::AnyPermit, WatchFor::Readable];

fn u1_what_is_true_already_is_done_at_once(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.semaphore("free", 3));
    for what in PERMITS {
        assert!(a.sees(&lock, what), "{what:?} of a lock that nobody uses");
    }
    let held = a.acquire(&lock).held();
    assert!(!a.sees(&lock, WatchFor::Unlocked));
    assert!(a.sees(&lock, WatchFor::AnyPermit) && a.sees(&lock, WatchFor::Readable));
    held.release();
    a.assert_empty();
}

fn u1_a_release_completes_the_watchers(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.mutex("release"));
    let held = a.acquire(&lock).held();
    let mut watchers = PERMITS.map(|what| b.watches(&lock, what));
    watchers.iter_mut().for_each(crate::bench::Watcher::waits);
    held.release();
    for watcher in watchers {
        watcher.done();
    }
    a.assert_empty();
}

fn u1_watchers_acquire_nothing(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.mutex("nothing"));
    let held = a.acquire(&lock).held();
    let watcher = b.watches(&lock, WatchFor::Unlocked);
    assert_eq!(a.used_and_queued(&lock), (1, 0));
    held.release();
    a.acquire(&lock).try_only().held().release();
    watcher.done();
}

fn u1_any_permit_and_all_permits_differ(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.semaphore("differ", 5));
    let (three, two) = (a.acquire(&lock).weight(3).held(), a.acquire(&lock).weight(2).held());
    let any = b.watches(&lock, WatchFor::AnyPermit);
    let mut all = b.watches(&lock, WatchFor::Unlocked);
    three.release();
    any.done();
    assert_eq!(b.inspect(&lock).free(), 3, "all of the release is visible");
    all.waits();
    two.release();
    all.done();
    a.assert_empty();
}

fn u1_a_hand_off_is_no_unlock(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.mutex("hand-off"));
    let held = a.acquire(&lock).held();
    let mut watchers = PERMITS.map(|what| b.watches(&lock, what));
    let waiter = a.acquire(&lock).queued();
    held.release();
    let last = waiter.granted();
    watchers.iter_mut().for_each(crate::bench::Watcher::waits);
    last.release();
    for watcher in watchers {
        watcher.done();
    }
}

fn u1_an_expiry_completes_the_watchers(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.mutex("expiry"));
    let _held = a.acquire(&lock).ttl(bench.steps(2)).held();
    let watchers = PERMITS.map(|what| b.watches(&lock, what));
    bench.pass(2);
    for watcher in watchers {
        watcher.done();
    }
    a.assert_empty();
}

/// A permit is free, but a queued write stands before a new read.
fn u1_readable_means_that_a_read_would_be_granted(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.rw_lock("readable", 4));
    let read = a.acquire(&lock).held();
    let write = a.acquire(&lock).whole().queued();
    assert!(b.sees(&lock, WatchFor::AnyPermit));
    let mut readable = b.watches(&lock, WatchFor::Readable);
    read.release();
    let write = write.granted();
    readable.waits();
    write.release();
    readable.done();
}

fn u1_a_leaving_waiter_may_make_a_lock_readable(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.rw_lock("leaves", 4));
    let _read = a.acquire(&lock).held();
    let write = a.acquire(&lock).whole().queued();
    let readable = b.watches(&lock, WatchFor::Readable);
    write.leave();
    readable.done();
}

fn u1_what_became_true_stays_told(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.mutex("stays"));
    let held = a.acquire(&lock).held();
    let watcher = b.watches(&lock, WatchFor::Unlocked);
    held.release();
    let again = a.acquire(&lock).held();
    // The lock is held again before the watcher asks.
    watcher.done();
    again.release();
}

fn u1_a_watcher_that_was_told_is_forgotten(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.mutex("told"));
    for _ in 0..50 {
        let held = a.acquire(&lock).held();
        let watcher = b.watches(&lock, WatchFor::Unlocked);
        held.release();
        watcher.done();
    }
    a.assert_empty();
    assert_eq!(a.counts_if_used(&lock), None);
}

fn u1_an_unwatched_watcher_leaves_nothing(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.mutex("unwatched"));
    let held = a.acquire(&lock).held();
    for _ in 0..50 {
        b.watches(&lock, WatchFor::Unlocked).unwatch();
    }
    held.release();
    a.eventually_unused(&lock, crate::bench::WAKE_BOUND);
    // Nobody watches any more, so another capacity is no mismatch.
    a.acquire(&lock.claiming(2)).weight(2).held().release();
}

fn u1_a_death_completes_the_watchers(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.mutex("death"));
    let _held = a.acquire(&lock).held();
    let watcher = b.watches(&lock, WatchFor::Unlocked);
    bench.kill(a);
    watcher.done();
    b.assert_empty();
}

fn u1_a_dead_watcher_leaves_nothing(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.mutex("dead"));
    let held = a.acquire(&lock).held();
    for what in PERMITS {
        let _watcher = b.watches(&lock, what);
    }
    bench.kill(b);
    held.release();
    a.eventually_unused(&lock, crate::bench::WAKE_BOUND);
    a.acquire(&lock.claiming(2)).weight(2).held().release();
}
