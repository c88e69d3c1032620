//! The one upgradable reader goes before the queue (rule Q7).

use leasehold_queue::{EnqueueError, Enqueued, HoldError, WaiterKey};

use crate::{Queue, READERS, granted, held, names, nobody, queued};

/// A lock with an upgradable reader and that many plain ones.
fn read_locked(readers: u32) -> Queue {
    let mut queue = Queue::new(READERS).unwrap();
    assert_eq!(queue.acquire_upgradable_now(1), Ok(true));
    (0..readers).for_each(|_| held(&mut queue, 1));
    queue
}

#[track_caller]
fn pending(queue: &mut Queue) -> WaiterKey {
    match queue.upgrade(READERS, "upgrade", nobody) {
        Ok(Enqueued::Queued(key)) => key,
        other => panic!("the upgrade should wait, but: {other:?}"),
    }
}

#[test]
fn an_upgrade_does_not_wait_for_the_writer_that_waits_for_it() {
    let mut queue = read_locked(0);
    queued(&mut queue, READERS, "writer");
    assert_eq!(queue.upgrade(READERS, "upgrade", nobody), Ok(Enqueued::Granted("upgrade")));
    assert_eq!((queue.used(), queue.has_upgradable()), (READERS, false));
    assert_eq!(granted(|on| queue.release(READERS, on)), ["writer"]);
}

#[test]
fn an_upgrade_gets_in_after_the_current_readers_and_before_the_queue() {
    let mut queue = read_locked(2);
    queued(&mut queue, READERS, "writer");
    let key = pending(&mut queue);
    assert_eq!(names(&queue), ["upgrade", "writer"]);
    assert_eq!(queue.peek(), Some((key, READERS - 1, &"upgrade")));
    assert_eq!(granted(|on| queue.release(1, on)), [""; 0]);
    assert_eq!(granted(|on| queue.release(1, on)), ["upgrade"]);
    assert_eq!((queue.used(), queue.free()), (READERS, 0));
}

#[test]
fn no_new_reader_overtakes_a_pending_upgrade() {
    let mut queue = read_locked(1);
    pending(&mut queue);
    assert_eq!(queue.acquire_now(1), Ok(false));
    queued(&mut queue, 1, "reader");
    assert_eq!(granted(|on| queue.release(1, on)), ["upgrade"]);
    assert_eq!(granted(|on| queue.release(READERS, on)), ["reader"]);
}

#[test]
fn a_cancelled_upgrade_stays_an_upgradable_reader_and_lets_the_readers_in() {
    let mut queue = read_locked(1);
    let key = pending(&mut queue);
    queued(&mut queue, 1, "reader");
    assert_eq!(granted(|on| assert_eq!(queue.cancel(key, on), Some("upgrade"))), ["reader"]);
    assert!(queue.has_upgradable());
    assert_eq!(queue.used(), 3);
    // It may ask again.
    pending(&mut queue);
}

#[test]
fn there_is_one_upgradable_reader_at_a_time() {
    let mut queue = read_locked(0);
    assert_eq!(queue.acquire_upgradable_now(1), Ok(false));
    let second = queue.enqueue_upgradable(1, "second");
    assert!(matches!(second, Ok(Enqueued::Queued(_))));
    queued(&mut queue, 1, "reader");
    // Permits are free, but the head waits for the slot and the queue is strict.
    assert_eq!(queue.free(), READERS - 1);
    assert_eq!(granted(|on| queue.release_upgradable(on)), ["second", "reader"]);
    assert_eq!((queue.has_upgradable(), queue.used()), (true, 2));
}

#[test]
fn an_upgradable_reader_that_becomes_a_plain_one_frees_the_slot() {
    let mut queue = read_locked(0);
    assert!(matches!(queue.enqueue_upgradable(1, "second"), Ok(Enqueued::Queued(_))));
    assert_eq!(granted(|on| queue.downgrade_upgradable(1, on)), ["second"]);
    assert_eq!((queue.used(), queue.has_upgradable()), (2, true));
}

#[test]
fn a_granted_upgrade_frees_the_slot_for_the_next_upgradable_reader() {
    let mut queue = read_locked(1);
    pending(&mut queue);
    assert!(matches!(queue.enqueue_upgradable(1, "second"), Ok(Enqueued::Queued(_))));
    assert_eq!(granted(|on| queue.release(1, on)), ["upgrade"]);
    assert!(!queue.has_upgradable());
    assert_eq!(granted(|on| queue.downgrade(READERS, 1, on)), ["second"]);
    assert!(queue.has_upgradable());
}

#[test]
fn a_pending_upgrade_pins_its_holder() {
    let mut queue = read_locked(1);
    let key = pending(&mut queue);
    let refused = HoldError::UpgradePending;
    assert_eq!(
        queue.upgrade(READERS, "again", nobody),
        Err((EnqueueError::Hold(refused), "again"))
    );
    assert_eq!(queue.release_upgradable(|_, _, _| {}), Err(refused));
    assert_eq!(queue.downgrade_upgradable(1, |_, _, _| {}), Err(refused));
    queue.cancel(key, |_, _, _| {}).unwrap();
    assert_eq!(queue.release_upgradable(|_, _, _| {}), Ok(()));
    assert_eq!(queue.used(), 1);
}

#[test]
fn an_upgrade_to_what_is_held_already_is_granted_at_once() {
    let mut queue = read_locked(READERS - 1);
    assert_eq!(queue.upgrade(1, "same", nobody), Ok(Enqueued::Granted("same")));
    assert_eq!((queue.used(), queue.has_upgradable()), (READERS, false));
}

#[test]
fn an_upgrade_granted_at_once_lets_in_the_head_that_waited_for_the_slot() {
    let mut queue = read_locked(0);
    assert!(matches!(queue.enqueue_upgradable(1, "second"), Ok(Enqueued::Queued(_))));
    queued(&mut queue, 1, "reader");
    let grants = granted(|on| {
        assert_eq!(queue.upgrade(READERS - 1, "upgrade", on), Ok(Enqueued::Granted("upgrade")));
    });
    assert_eq!(grants, ["second"]);
    assert_eq!((queue.free(), names(&queue)), (0, vec!["reader"]));
}

#[test]
fn cancelling_all_takes_a_pending_upgrade_first() {
    let mut queue = read_locked(1);
    queued(&mut queue, READERS, "writer");
    pending(&mut queue);
    let mut left = Vec::new();
    queue.drain_waiters(|_, _, name| left.push(name));
    assert_eq!(left, ["upgrade", "writer"]);
    assert_eq!((queue.has_upgradable(), queue.used()), (true, 2));
}
