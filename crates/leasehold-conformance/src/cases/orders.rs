//! The order of the queue: strict, whoever leaves (rule Q2).

use crate::{
    Bench,
    bench::{Held, Queued},
    case::theme,
    model,
};

theme! {
    Nothing, "Q2", q2_a_thousand_waiters_enter_in_order;
    Nothing, "Q2", q2_waiters_of_several_clients_enter_in_order;
    Nothing, "Q2, acceptance R6", q2_writes_enter_in_order;
    Nothing, "Q2, acceptance AO6", q2_a_later_read_never_overtakes_a_queued_write;
    Nothing, "Q2", q2_a_run_of_reads_enters_together;
    Nothing, "Q2", q2_a_write_that_gives_up_lets_the_reads_in;
    Nothing, "Q2, field reports 14 and 15", q2_a_head_that_leaves_lets_its_followers_in;
    Nothing, "Q2", q2_a_leaver_in_the_middle_changes_nothing_for_others;
    Nothing, "Q2, field report 16", q2_a_heavy_request_is_not_starved;
    Nothing, "Q2, field report 17, acceptance R16", q2_a_write_is_not_starved_by_reads;
    Nothing, "Q2, Q4", q2_random_programs_agree_with_the_model;
    Nothing, "Q2, Q4", q2_random_read_write_programs_agree_with_the_model;
}

const WAITERS: usize = 1000;

fn q2_a_thousand_waiters_enter_in_order(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.mutex("thousand"));
    let mut held = a.acquire(&lock).held();
    let waiters: Vec<_> = (0..WAITERS).map(|_| a.acquire(&lock).queued()).collect();
    let queue = a.inspect(&lock).waiters;
    assert_eq!(queue.len(), WAITERS);
    for (waiter, seen) in waiters.iter().zip(&queue) {
        assert_eq!(seen.short_id, waiter.token().short_id(), "the queue is told in its order");
    }
    for waiter in &waiters {
        held.release();
        // Granting anybody else would leave this one waiting.
        held = waiter.granted();
    }
    held.release();
    a.assert_empty();
}

fn q2_waiters_of_several_clients_enter_in_order(bench: &Bench) {
    let clients = [bench.client(), bench.client(), bench.client()];
    let lock = bench.mutex("clients");
    let mut held = clients[0].acquire(&lock).held();
    let order = [2, 0, 1, 1, 2, 0, 2, 1, 0];
    let waiters = order.map(|client| clients[client].acquire(&lock).queued());
    for (n, waiter) in waiters.iter().enumerate() {
        held.release();
        held = waiter.granted();
        waiters[n + 1..].iter().for_each(Queued::waits);
    }
    held.release();
    clients[0].assert_empty();
}

fn q2_writes_enter_in_order(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.rw_lock("writes", 4));
    let first = a.acquire(&lock).whole().held();
    let second = b.acquire(&lock).whole().queued();
    let third = a.acquire(&lock).whole().queued();
    first.release();
    let second = second.granted();
    third.waits();
    second.release();
    third.granted().release();
    a.assert_empty();
}

fn q2_a_later_read_never_overtakes_a_queued_write(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.rw_lock("overtake", 8));
    let read = a.acquire(&lock).held();
    let write = b.acquire(&lock).whole().queued();
    let late = a.acquire(&lock).queued();
    a.acquire(&lock).busy();
    read.release();
    let write = write.granted();
    late.waits();
    write.release();
    let _late = late.granted();
}

fn q2_a_run_of_reads_enters_together(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.rw_lock("run", 8));
    let write = a.acquire(&lock).whole().held();
    let run = [a.acquire(&lock).queued(), b.acquire(&lock).queued(), a.acquire(&lock).queued()];
    let next_write = b.acquire(&lock).whole().queued();
    let behind = a.acquire(&lock).queued();
    write.release();
    let readers = run.map(|read| read.granted());
    assert_eq!(a.counts(&lock).used, 3);
    next_write.waits();
    behind.waits();
    readers.iter().for_each(Held::release);
    let write = next_write.granted();
    behind.waits();
    write.release();
    let _behind = behind.granted();
}

fn q2_a_write_that_gives_up_lets_the_reads_in(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.rw_lock("gives-up", 8));
    let read = a.acquire(&lock).held();
    let write = b.acquire(&lock).whole().queued();
    let behind = [a.acquire(&lock).queued(), b.acquire(&lock).queued()];
    write.leave();
    let _behind = behind.map(|read| read.granted());
    assert_eq!(a.counts(&lock).used, 3, "the first read is still in");
    read.release();
}

fn q2_a_head_that_leaves_lets_its_followers_in(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.semaphore("head", 5));
    let _two = a.acquire(&lock).weight(2).held();
    let head = a.acquire(&lock).weight(5).queued();
    let fit = [a.acquire(&lock).queued(), a.acquire(&lock).weight(2).queued()];
    let too_much = a.acquire(&lock).queued();
    head.leave();
    let _fit = fit.map(|follower| follower.granted());
    too_much.waits();
    assert_eq!(a.used_and_queued(&lock), (5, 1));
}

fn q2_a_leaver_in_the_middle_changes_nothing_for_others(bench: &Bench) {
    let (a, lock) = (bench.client(), bench.mutex("middle"));
    let mut held = a.acquire(&lock).held();
    let waiters: Vec<_> = (0..9).map(|_| a.acquire(&lock).queued()).collect();
    for leaver in [1, 4, 5, 8] {
        waiters[leaver].leave();
    }
    for stayer in [0, 2, 3, 6, 7] {
        held.release();
        held = waiters[stayer].granted();
    }
    held.release();
    a.assert_empty();
}

fn q2_a_heavy_request_is_not_starved(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.semaphore("heavy", 4));
    let light: Vec<_> = (0..4).map(|_| a.acquire(&lock).held()).collect();
    let heavy = b.acquire(&lock).weight(4).queued();
    let mut stream = Vec::new();
    for held in &light {
        stream.push(a.acquire(&lock).queued());
        held.release();
    }
    let heavy = heavy.granted();
    stream.iter().for_each(Queued::waits);
    heavy.release();
    for waiter in &stream {
        waiter.granted().release();
    }
    a.assert_empty();
}

fn q2_a_write_is_not_starved_by_reads(bench: &Bench) {
    let (a, b, lock) = (bench.client(), bench.client(), bench.rw_lock("starve", 100));
    let mut reads = vec![a.acquire(&lock).held(), a.acquire(&lock).held()];
    let write = b.acquire(&lock).whole().queued();
    let late: Vec<_> = (0..20).map(|_| a.acquire(&lock).queued()).collect();
    reads.drain(..).for_each(|read| read.release());
    let write = write.granted();
    late.iter().for_each(Queued::waits);
    write.release();
    reads.extend(late.iter().map(Queued::granted));
    assert_eq!(a.counts(&lock).used, 20);
}

fn q2_random_programs_agree_with_the_model(bench: &Bench) {
    for seed in 1..=3 {
        let lock = bench.semaphore(&format!("program-{seed}"), 5);
        model::compare(bench, &lock, 5, seed);
    }
    bench.client().assert_empty();
}

fn q2_random_read_write_programs_agree_with_the_model(bench: &Bench) {
    for seed in 11..=13 {
        let lock = bench.rw_lock(&format!("program-{seed}"), 3);
        model::compare(bench, &lock, 3, seed);
    }
    bench.client().assert_empty();
}
