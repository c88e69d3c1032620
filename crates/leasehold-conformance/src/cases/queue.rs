//! One queue for every lock: what is granted on arrival and what a release does (rules Q1 to Q3,
//! Q5, W6).

use leasehold_core::{Acquired, Refusal, WatchFor};

use crate::{Bench, bench::capacity_of, case::theme};

theme! {
    Nothing, "Q1, Q2", q1_a_mutex_has_one_holder;
    Nothing, "Q1, acceptance S1, ST1", q1_a_semaphore_has_as_many_holders_as_permits;
    Nothing, "Q1", q1_weights_add_up_to_the_capacity;
    Nothing, "Q1, acceptance R3, R7", q1_readers_share_up_to_their_limit;
    Nothing, "Q1, acceptance R4, R5, R20", q1_a_write_excludes_reads_and_writes;
    Nothing, "Q1", q1_a_whole_share_takes_the_registered_capacity;
    Nothing, "Q2", q2_a_request_that_does_not_fit_takes_nothing;
    Nothing, "Q2, W2, acceptance S17", q2_a_free_lock_is_granted_to_a_try;
    Nothing, "Q3", q3_a_release_hands_over_directly;
    Nothing, "Q3, acceptance S4", q3_a_try_never_barges;
    Nothing, "Q3", q3_a_new_request_never_barges;
    Nothing, "Q3", q3_one_release_grants_as_many_as_fit;
    Nothing, "W2, acceptance ST2, ST4", w2_a_failed_try_leaves_nothing;
    Nothing, "Q5, W6", q5_a_weight_above_the_capacity_is_refused_on_every_path;
    Nothing, "Q5", q5_a_full_queue_refuses;
    Nothing, "Q5", q5_a_place_in_a_full_queue_becomes_free;
    Nothing, "E2", e2_an_obstacle_names_the_holder_and_counts_the_waiters;
}

fn q1_a_mutex_has_one_holder(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.mutex("one"));
    let held = a.acquire(&lock).held();
    b.acquire(&lock).busy();
    a.acquire(&lock).busy();
    held.release();
    b.acquire(&lock).held().release();
    a.assert_empty();
}

fn q1_a_semaphore_has_as_many_holders_as_permits(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.semaphore("three", 3));
    let held = [a.acquire(&lock).held(), a.acquire(&lock).held(), a.acquire(&lock).held()];
    assert_eq!(a.counts(&lock).used, 3);
    a.acquire(&lock).busy();
    held[1].release();
    assert_eq!(a.inspect(&lock).free(), 1);
    let fourth = a.acquire(&lock).held();
    a.acquire(&lock).busy();
    for held in [&held[0], &held[2], &fourth] {
        held.release();
    }
    a.assert_empty();
}

fn q1_weights_add_up_to_the_capacity(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.semaphore("ten", 10));
    let seven = a.acquire(&lock).weight(7).held();
    a.acquire(&lock).weight(4).busy();
    let three = a.acquire(&lock).weight(3).held();
    a.acquire(&lock).busy();
    seven.release();
    assert_eq!(a.counts(&lock).used, 3);
    a.acquire(&lock).weight(8).busy();
    a.acquire(&lock).weight(7).held().release();
    three.release();
    a.assert_empty();
}

fn q1_readers_share_up_to_their_limit(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.rw_lock("read", 3));
    let readers = [a.acquire(&lock).held(), a.acquire(&lock).held(), a.acquire(&lock).held()];
    let fourth = a.acquire(&lock).queued();
    assert!(!a.counts(&lock).whole, "three reads are no write");
    readers[0].release();
    let _fourth = fourth.granted();
    assert_eq!(a.counts(&lock).used, 3);
}

fn q1_a_write_excludes_reads_and_writes(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.rw_lock("write", 8));
    let write = a.acquire(&lock).whole().held();
    assert!(a.counts(&lock).whole, "a write holds the whole lock");
    assert_eq!(a.inspect(&lock).free(), 0);
    b.acquire(&lock).busy();
    b.acquire(&lock).whole().busy();
    write.release();
    let read = b.acquire(&lock).held();
    a.acquire(&lock).whole().busy();
    a.acquire(&lock).held().release();
    read.release();
    a.acquire(&lock).whole().held().release();
    a.assert_empty();
}

/// Who does not know the capacity writes all the same.
fn q1_a_whole_share_takes_the_registered_capacity(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.rw_lock("five", 5));
    let read = a.acquire(&lock).held();
    let write = a.acquire(&lock.registered_or(1000)).whole().queued();
    read.release();
    let write = write.granted();
    assert_eq!(write.grant().capacity, capacity_of(5));
    assert_eq!(a.counts(&lock).used, 5);
    a.acquire(&lock).busy();
}

fn q2_a_request_that_does_not_fit_takes_nothing(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.semaphore("all-or-nothing", 3));
    let two = a.acquire(&lock).weight(2).held();
    let heavy = a.acquire(&lock).weight(2).queued();
    assert_eq!(a.counts(&lock).used, 2, "a queued request holds no part of its weight");
    heavy.waits();
    two.release();
    let _heavy = heavy.granted();
    assert_eq!(a.counts(&lock).used, 2);
}

fn q2_a_free_lock_is_granted_to_a_try(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.rw_lock("free", 4));
    a.acquire(&lock).whole().try_only().held().release();
    a.acquire(&lock).try_only().held().release();
    a.assert_empty();
}

/// No free permit is visible between the release and the next grant.
fn q3_a_release_hands_over_directly(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.mutex("hand-over"));
    let held = a.acquire(&lock).held();
    let next = b.acquire(&lock).queued();
    held.release();
    let counts = a.counts(&lock);
    assert_eq!((counts.used, counts.queued), (1, 0));
    a.acquire(&lock).busy();
    assert!(!a.sees(&lock, WatchFor::AnyPermit), "a hand-off makes no permit free");
    next.granted().release();
    a.assert_empty();
}

/// A permit is free, but somebody is queued for more of them.
fn q3_a_try_never_barges(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.semaphore("barge", 2));
    let light = a.acquire(&lock).held();
    let heavy = a.acquire(&lock).weight(2).queued();
    assert_eq!(a.inspect(&lock).free(), 1);
    b.acquire(&lock).busy();
    heavy.waits();
    light.release();
    let _heavy = heavy.granted();
}

fn q3_a_new_request_never_barges(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.semaphore("barge", 2));
    let light = a.acquire(&lock).held();
    let heavy = a.acquire(&lock).weight(2).queued();
    let late = b.acquire(&lock).queued();
    light.release();
    let heavy = heavy.granted();
    late.waits();
    heavy.release();
    let _late = late.granted();
}

fn q3_one_release_grants_as_many_as_fit(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.semaphore("run", 4));
    let all = a.acquire(&lock).weight(4).held();
    let fit = [a.acquire(&lock).queued(), a.acquire(&lock).weight(2).queued()];
    let waits = [a.acquire(&lock).weight(2).queued(), a.acquire(&lock).queued()];
    all.release();
    let granted = fit.map(|waiter| waiter.granted());
    waits.iter().for_each(crate::bench::Queued::waits);
    assert_eq!(a.counts(&lock).used, 3, "the third in line does not fit and nobody passes it");
    granted[0].release();
    let _heavy = waits[0].granted();
    waits[1].waits();
    granted[1].release();
    let _last = waits[1].granted();
}

fn w2_a_failed_try_leaves_nothing(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.mutex("try"));
    let held = a.acquire(&lock).held();
    for _ in 0..100 {
        b.acquire(&lock).busy();
    }
    assert_eq!(a.counts(&lock).queued, 0);
    held.release();
    a.assert_empty();
}

fn q5_a_weight_above_the_capacity_is_refused_on_every_path(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.semaphore("small", 3));
    let too_heavy = Refusal::TooHeavy { capacity: capacity_of(3) };
    assert_eq!(a.acquire(&lock).weight(4).refused(), too_heavy, "free and idle");
    a.assert_empty();
    let held = a.acquire(&lock).weight(3).held();
    assert_eq!(a.acquire(&lock).weight(4).refused(), too_heavy, "busy");
    assert_eq!(a.acquire(&lock).weight(4).try_only().refused(), too_heavy, "busy, a try");
    let unknowing = lock.registered_or(1000);
    assert_eq!(a.acquire(&unknowing).weight(4).refused(), too_heavy, "by what is registered");
    assert_eq!(a.counts(&lock).queued, 0);
    held.release();
    a.assert_empty();
}

fn q5_a_full_queue_refuses(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.mutex("full"));
    let held = a.acquire(&lock).held();
    let first = a.acquire(&lock).queue_limit(2).queued();
    let second = b.acquire(&lock).queue_limit(2).queued();
    let refusal = b.acquire(&lock).queue_limit(2).refused();
    assert_eq!(refusal, Refusal::QueueFull { limit: 2 });
    b.acquire(&lock).queue_limit(2).busy();
    assert_eq!(a.counts(&lock).queued, 2);
    held.release();
    first.granted().release();
    second.granted().release();
    a.assert_empty();
}

fn q5_a_place_in_a_full_queue_becomes_free(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.mutex("full"));
    let held = a.acquire(&lock).queue_limit(1).held();
    let leaves = a.acquire(&lock).queue_limit(1).queued();
    leaves.leave();
    let enters = a.acquire(&lock).queue_limit(1).queued();
    held.release();
    let held = enters.granted();
    let _second = a.acquire(&lock).queue_limit(1).queued();
    held.release();
}

/// What is known must be right; what is not known stays out.
fn e2_an_obstacle_names_the_holder_and_counts_the_waiters(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.mutex("obstacle"));
    let _held = a.acquire(&lock).label("nightly").held();
    let _first = a.acquire(&lock).label("first").queued();
    let Acquired::Queued(place) = b.acquire(&lock).answer() else { panic!("the lock is held") };
    for (obstacle, ahead) in [(place.obstacle, 1), (b.acquire(&lock).busy(), 2)] {
        if let Some((holder, _)) = obstacle.holder {
            assert_eq!(holder.label(), Some("nightly"));
            assert_eq!(holder.pid(), std::process::id());
        }
        assert!(obstacle.ahead.is_none_or(|said| said == ahead), "{:?} ahead", obstacle.ahead);
    }
}
