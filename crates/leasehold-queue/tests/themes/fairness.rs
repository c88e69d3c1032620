//! Nobody overtakes, nobody starves (rules Q2 and Q3; field reports 16 and 17).

use crate::{Queue, READERS, granted, held, names, queued};

#[test]
fn requests_get_in_in_the_order_of_their_arrival() {
    let mut queue = Queue::new(1).unwrap();
    held(&mut queue, 1);
    for name in ["a", "b", "c"] {
        queued(&mut queue, 1, name);
    }
    for name in ["a", "b", "c"] {
        assert_eq!(granted(|on| queue.release(1, on)), [name]);
    }
    assert_eq!(granted(|on| queue.release(1, on)), [""; 0]);
    assert!(queue.is_idle());
}

#[test]
fn a_hand_off_shows_no_free_permit_to_a_try() {
    let mut queue = Queue::new(1).unwrap();
    held(&mut queue, 1);
    queued(&mut queue, 1, "next");
    assert_eq!(granted(|on| queue.release(1, on)), ["next"]);
    assert_eq!((queue.free(), queue.queued()), (0, 0));
    assert_eq!(queue.acquire_now(1), Ok(false));
}

#[test]
fn a_try_never_barges_past_a_waiter_though_it_would_fit() {
    let mut queue = Queue::new(3).unwrap();
    held(&mut queue, 1);
    queued(&mut queue, 3, "heavy");
    assert_eq!(queue.free(), 2);
    assert_eq!(queue.acquire_now(1), Ok(false));
    assert_eq!(queue.acquire_upgradable_now(1), Ok(false));
    assert_eq!(names(&queue), ["heavy"]);
}

#[test]
fn a_try_takes_what_is_free_when_nobody_is_queued() {
    let mut queue = Queue::new(3).unwrap();
    assert_eq!(queue.acquire_now(2), Ok(true));
    assert_eq!(queue.acquire_now(2), Ok(false));
    assert_eq!(queue.acquire_now(1), Ok(true));
    assert_eq!((queue.used(), queue.free(), queue.queued()), (3, 0, 0));
}

#[test]
fn report_16_a_heavy_request_is_not_starved_by_light_ones() {
    let mut queue = Queue::new(4).unwrap();
    (0..4).for_each(|_| held(&mut queue, 1));
    queued(&mut queue, 4, "heavy");
    // Light requests keep coming; each would fit as soon as one permit is back.
    for light in ["l1", "l2", "l3"] {
        queued(&mut queue, 1, light);
        assert_eq!(granted(|on| queue.release(1, on)), [""; 0]);
    }
    assert_eq!(granted(|on| queue.release(1, on)), ["heavy"]);
    assert_eq!(granted(|on| queue.release(4, on)), ["l1", "l2", "l3"]);
}

#[test]
fn report_17_a_writer_gets_in_after_the_current_readers() {
    let mut queue = Queue::new(READERS).unwrap();
    held(&mut queue, 1);
    held(&mut queue, 1);
    queued(&mut queue, READERS, "writer");
    queued(&mut queue, 1, "late reader");
    assert_eq!(granted(|on| queue.release(1, on)), [""; 0]);
    assert_eq!(granted(|on| queue.release(1, on)), ["writer"]);
    assert_eq!(granted(|on| queue.release(READERS, on)), ["late reader"]);
}

#[test]
fn a_run_of_readers_enters_together_up_to_the_next_writer() {
    let mut queue = Queue::new(READERS).unwrap();
    held(&mut queue, READERS);
    queued(&mut queue, 1, "r1");
    queued(&mut queue, 1, "r2");
    queued(&mut queue, READERS, "w1");
    queued(&mut queue, 1, "r3");
    queued(&mut queue, READERS, "w2");
    assert_eq!(granted(|on| queue.release(READERS, on)), ["r1", "r2"]);
    assert_eq!(queue.free(), READERS - 2);
    assert_eq!(names(&queue), ["w1", "r3", "w2"]);
}
