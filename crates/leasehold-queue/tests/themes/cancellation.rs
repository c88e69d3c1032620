//! A waiter may leave at any moment (rule Q4; field reports 14 and 15).

use crate::{Queue, READERS, granted, held, names, queued};

#[test]
fn report_14_a_cancelled_head_lets_in_the_followers_that_fit() {
    let mut queue = Queue::new(4).unwrap();
    held(&mut queue, 2);
    let head = queued(&mut queue, 4, "head");
    queued(&mut queue, 1, "f1");
    queued(&mut queue, 1, "f2");
    queued(&mut queue, 1, "f3");
    // Nothing is released: the leaving alone has to wake them.
    assert_eq!(granted(|on| assert_eq!(queue.cancel(head, on), Some("head"))), ["f1", "f2"]);
    assert_eq!((queue.free(), names(&queue)), (0, vec!["f3"]));
}

#[test]
fn report_15_a_writer_that_gives_up_lets_in_the_readers_behind_it() {
    let mut queue = Queue::new(READERS).unwrap();
    held(&mut queue, 1);
    let writer = queued(&mut queue, READERS, "writer");
    queued(&mut queue, 1, "r1");
    queued(&mut queue, 1, "r2");
    assert_eq!(granted(|on| assert!(queue.cancel(writer, on).is_some())), ["r1", "r2"]);
    assert_eq!((queue.used(), queue.queued()), (3, 0));
}

#[test]
fn a_waiter_that_leaves_from_the_middle_or_the_tail_changes_nobody_elses_place() {
    let mut queue = Queue::new(1).unwrap();
    held(&mut queue, 1);
    let keys = ["a", "b", "c", "d"].map(|name| queued(&mut queue, 1, name));
    assert_eq!(granted(|on| assert_eq!(queue.cancel(keys[1], on), Some("b"))), [""; 0]);
    assert_eq!(granted(|on| assert_eq!(queue.cancel(keys[3], on), Some("d"))), [""; 0]);
    queued(&mut queue, 1, "e");
    assert_eq!(names(&queue), ["a", "c", "e"]);
    assert_eq!(queue.peek(), Some((keys[0], 1, &"a")));
}

#[test]
fn a_key_of_a_granted_waiter_cancels_nothing() {
    let mut queue = Queue::new(1).unwrap();
    held(&mut queue, 1);
    let late = queued(&mut queue, 1, "late");
    assert_eq!(granted(|on| queue.release(1, on)), ["late"]);
    // The grant won the race, so the permit is the caller's to pass on.
    assert_eq!(granted(|on| assert_eq!(queue.cancel(late, on), None)), [""; 0]);
    assert_eq!(queue.used(), 1);
}

#[test]
fn a_stale_key_never_hits_a_newer_waiter_in_the_same_place() {
    let mut queue = Queue::new(1).unwrap();
    held(&mut queue, 1);
    let mut stale = Vec::new();
    for _ in 0..1000 {
        let key = queued(&mut queue, 1, "gone");
        assert_eq!(queue.cancel(key, |_, _, _| {}), Some("gone"));
        stale.push(key);
    }
    let current = queued(&mut queue, 1, "current");
    for key in stale {
        assert_eq!(queue.get(key), None);
        assert_eq!(queue.get_mut(key), None);
        assert_eq!(queue.cancel(key, |_, _, _| {}), None);
    }
    assert_eq!(queue.get(current), Some(&"current"));
}

#[test]
fn a_waiter_may_change_what_it_is_reached_by_while_it_keeps_its_place() {
    let mut queue = Queue::new(1).unwrap();
    held(&mut queue, 1);
    let key = queued(&mut queue, 1, "old waker");
    queued(&mut queue, 1, "other");
    *queue.get_mut(key).unwrap() = "new waker";
    assert_eq!(granted(|on| queue.release(1, on)), ["new waker"]);
}

#[test]
fn cancelling_all_empties_the_queue_in_order_and_leaves_holders_alone() {
    let mut queue = Queue::new(2).unwrap();
    held(&mut queue, 1);
    let keys = [queued(&mut queue, 2, "a"), queued(&mut queue, 1, "b")];
    let mut left = Vec::new();
    queue.drain_waiters(|key, weight, name| left.push((key, weight, name)));
    assert_eq!(left, [(keys[0], 2, "a"), (keys[1], 1, "b")]);
    assert_eq!((queue.used(), queue.queued(), queue.peek()), (1, 0, None));
    // The lock stays usable (rule W5).
    assert_eq!(queue.acquire_now(1), Ok(true));
}
