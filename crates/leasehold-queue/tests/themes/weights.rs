//! Weights are numbers, granted all or nothing (rules Q1, Q2 and Q7; field report 55).

use leasehold_queue::{CAPACITY_MAX, Permits, rules::GrantRun, rules::grant_from_head};

use crate::{Queue, READERS, granted, held, names, queued};

#[test]
fn report_55_thousands_of_permits_cost_what_one_costs() {
    let mut queue = Queue::new(CAPACITY_MAX).unwrap();
    held(&mut queue, CAPACITY_MAX - 4_000);
    held(&mut queue, 4_000);
    queued(&mut queue, 4_000, "next");
    // One waiter, one slot, one grant, whatever it weighs.
    assert_eq!(granted(|on| queue.release(4_000, on)), ["next"]);
    queue.release(CAPACITY_MAX, |_, _, _| {}).unwrap();
    assert!(queue.is_idle());
    assert_eq!(queue.free(), CAPACITY_MAX);
}

#[test]
fn a_weight_is_granted_all_or_nothing() {
    let mut queue = Queue::new(5).unwrap();
    held(&mut queue, 3);
    held(&mut queue, 2);
    queued(&mut queue, 4, "four");
    assert_eq!(granted(|on| queue.release(3, on)), [""; 0]);
    assert_eq!((queue.free(), names(&queue)), (3, vec!["four"]));
    assert_eq!(granted(|on| queue.release(1, on)), ["four"]);
    assert_eq!((queue.free(), queue.used()), (0, 5));
}

#[test]
fn a_grant_tells_key_weight_and_waiter() {
    let mut queue = Queue::new(5).unwrap();
    held(&mut queue, 5);
    let (a, b) = (queued(&mut queue, 3, "a"), queued(&mut queue, 2, "b"));
    let mut told = Vec::new();
    queue.release(5, |key, weight, name| told.push((key, weight, name))).unwrap();
    assert_eq!(told, [(a, 3, "a"), (b, 2, "b")]);
}

#[test]
fn a_downgraded_writer_reads_on_and_lets_the_readers_in() {
    let mut queue = Queue::new(READERS).unwrap();
    held(&mut queue, READERS);
    queued(&mut queue, 1, "reader");
    queued(&mut queue, READERS, "writer");
    assert_eq!(granted(|on| queue.downgrade(READERS, 1, on)), ["reader"]);
    assert_eq!((queue.used(), names(&queue)), (2, vec!["writer"]));
    assert_eq!(granted(|on| queue.downgrade(1, 1, on)), [""; 0]);
}

#[test]
fn the_rules_alone_grant_a_window_of_a_stored_queue() {
    let mut permits = Permits::from_parts(5, 1).unwrap();
    let mut told = Vec::new();
    let run = grant_from_head(&mut permits, [("a", 1), ("b", 2)], |key, _| told.push(key));
    // The window ended before the permits did: the caller has to read on.
    assert_eq!(run, GrantRun { granted: 2, blocked: None });
    let run = grant_from_head(&mut permits, [("c", 2), ("d", 1)], |key, _| told.push(key));
    assert_eq!(run, GrantRun { granted: 0, blocked: Some("c") });
    assert_eq!((told, permits.free()), (vec!["a", "b"], 1));
}

#[test]
fn the_rules_alone_decide_on_arrival() {
    let permits = Permits::from_parts(5, 3).unwrap();
    assert!(permits.admits_on_arrival(false, 2));
    assert!(!permits.admits_on_arrival(false, 3));
    assert!(!permits.admits_on_arrival(true, 2));
}
