//! The capacity grows and shrinks under holders and waiters (rule Q7).

use leasehold_queue::Enqueued;

use crate::{Names, Queue, held, names, nobody, queued};

/// Resizes and tells who was granted and who was rejected.
fn resized(queue: &mut Queue, capacity: u32) -> (Names, Names) {
    let (mut granted, mut rejected) = (Vec::new(), Vec::new());
    let on_grant = |_, _, name| granted.push(name);
    queue.resize(capacity, on_grant, |_, _, name| rejected.push(name)).unwrap();
    (granted, rejected)
}

#[test]
fn growing_lets_the_head_in() {
    let mut queue = Queue::new(2).unwrap();
    held(&mut queue, 2);
    queued(&mut queue, 2, "a");
    queued(&mut queue, 2, "b");
    assert_eq!(resized(&mut queue, 5), (vec!["a"], vec![]));
    assert_eq!((queue.capacity(), queue.free(), names(&queue)), (5, 1, vec!["b"]));
}

#[test]
fn shrinking_below_what_is_held_takes_nothing_away() {
    let mut queue = Queue::new(5).unwrap();
    held(&mut queue, 3);
    held(&mut queue, 2);
    assert_eq!(resized(&mut queue, 2), (vec![], vec![]));
    assert_eq!((queue.used(), queue.free(), queue.capacity()), (5, 0, 2));
    queued(&mut queue, 1, "next");
    queue.release(3, |_, _, name| panic!("{name} got in, though 2 of 2 are held")).unwrap();
    let mut granted = Vec::new();
    queue.release(2, |_, _, name| granted.push(name)).unwrap();
    assert_eq!((granted, queue.free()), (vec!["next"], 1));
}

#[test]
fn a_waiter_above_the_shrunk_capacity_leaves_and_unblocks_those_behind() {
    let mut queue = Queue::new(10).unwrap();
    held(&mut queue, 2);
    queued(&mut queue, 9, "nine");
    queued(&mut queue, 3, "three");
    queued(&mut queue, 7, "seven");
    queued(&mut queue, 6, "six");
    assert_eq!(resized(&mut queue, 6), (vec!["three"], vec!["nine", "seven"]));
    assert_eq!((queue.free(), names(&queue)), (1, vec!["six"]));
}

#[test]
fn every_shrink_finds_the_waiters_that_became_too_heavy() {
    let mut queue = Queue::new(10).unwrap();
    held(&mut queue, 10);
    queued(&mut queue, 4, "four");
    queued(&mut queue, 8, "eight");
    queued(&mut queue, 5, "five");
    assert_eq!(resized(&mut queue, 8).1, [""; 0]);
    assert_eq!(resized(&mut queue, 7).1, ["eight"]);
    assert_eq!(resized(&mut queue, 9).1, [""; 0]);
    queued(&mut queue, 9, "nine");
    assert_eq!(resized(&mut queue, 4).1, ["five", "nine"]);
    assert_eq!(resized(&mut queue, 3).1, ["four"]);
    // All have left, so the count of the heaviest starts afresh.
    queued(&mut queue, 2, "two");
    assert_eq!(resized(&mut queue, 1).1, ["two"]);
}

#[test]
fn an_upgrade_that_became_impossible_leaves_and_its_holder_stays() {
    let mut queue = Queue::new(10).unwrap();
    assert_eq!(queue.acquire_upgradable_now(2), Ok(true));
    held(&mut queue, 1);
    assert!(matches!(queue.upgrade(10, "upgrade", nobody), Ok(Enqueued::Queued(_))));
    queued(&mut queue, 3, "three");
    // It waits for 8 more, which fit into 9, but it would hold 10.
    assert_eq!(resized(&mut queue, 9), (vec!["three"], vec!["upgrade"]));
    assert_eq!((queue.has_upgradable(), queue.used()), (true, 6));
}
