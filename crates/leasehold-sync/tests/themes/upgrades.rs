//! The one upgradable reader (rule Q7).

use std::{future::ready as now, pin::pin, sync::Arc, task::Poll, time::Duration};

use leasehold_sync::RwLock;

use crate::{poll, ready};

#[test]
fn an_upgrade_goes_before_the_whole_queue() {
    let lock = RwLock::new(0);
    let upgradable = ready(lock.upgradable_read());
    let reading = lock.try_read().unwrap();
    let mut write = pin!(lock.write());
    assert!(poll(write.as_mut()).is_pending());
    let mut upgrade = pin!(upgradable.upgrade());
    assert!(poll(upgrade.as_mut()).is_pending());
    assert_eq!(lock.queued(), 2);
    drop(reading);
    assert!(poll(write.as_mut()).is_pending());
    let mut writing = ready(upgrade);
    *writing += 1;
    assert!(lock.is_write_locked());
    drop(writing);
    assert_eq!(*ready(write), 1);
}

#[test]
fn there_is_one_upgradable_reader_at_a_time() {
    let lock = RwLock::new(());
    let first = ready(lock.upgradable_read());
    assert!(lock.try_upgradable_read().is_none());
    let reading = lock.try_read();
    assert!(reading.is_some());
    let mut second = pin!(lock.upgradable_read());
    assert!(poll(second.as_mut()).is_pending());
    // At the head, it makes those behind it wait.
    assert!(lock.try_read().is_none());
    drop(first);
    assert!(poll(second.as_mut()).is_ready());
}

#[test]
fn a_plain_reader_again_lets_the_next_upgradable_one_in() {
    let lock = Arc::new(RwLock::new(()));
    let first = ready(lock.clone().upgradable_read_owned());
    let mut second = pin!(lock.upgradable_read());
    assert!(poll(second.as_mut()).is_pending());
    let first = first.downgrade();
    assert!(matches!(poll(second.as_mut()), Poll::Ready(_)));
    drop(first);
    assert!(!lock.is_locked());
}

#[test]
fn an_upgrade_that_gives_up_ends_the_read_too() {
    let lock = RwLock::new(());
    let reading = lock.try_read();
    let upgrade = ready(lock.upgradable_read()).upgrade();
    let error = ready(upgrade.timeout(Duration::ZERO)).unwrap_err();
    assert_eq!(error.to_string(), "read-write lock (upgrade): not free");
    assert_eq!(lock.readers(), 1);

    let mut upgrade = Box::pin(ready(lock.upgradable_read()).upgrade());
    assert!(poll(upgrade.as_mut()).is_pending());
    let mut late = pin!(lock.read());
    assert!(poll(late.as_mut()).is_pending());
    drop(upgrade);
    assert!(poll(late.as_mut()).is_ready());
    assert!(ready(ready(lock.upgradable_read()).upgrade().cancel_on(now(()))).is_err());
    drop(reading);
    assert!(!lock.is_locked());
}

#[test]
fn a_granted_upgrade_that_is_dropped_releases_the_write() {
    let lock = RwLock::new(());
    let reading = lock.try_read();
    let mut upgrade = Box::pin(ready(lock.upgradable_read()).upgrade());
    assert!(poll(upgrade.as_mut()).is_pending());
    drop(reading);
    assert!(lock.is_write_locked());
    drop(upgrade);
    assert!(!lock.is_locked() && !lock.is_write_locked());
    assert!(lock.try_upgradable_read().is_some());
}

#[test]
fn a_try_upgrades_only_when_alone() {
    let lock = Arc::new(RwLock::new(1));
    let reading = lock.try_read();
    let upgradable = lock.try_upgradable_read().unwrap();
    let upgradable = upgradable.try_upgrade().unwrap_err();
    drop(reading);
    // Somebody is queued; the upgrade goes before it all the same.
    let mut write = Box::pin(lock.write());
    assert!(poll(write.as_mut()).is_pending());
    let mut writing = upgradable.try_upgrade().unwrap();
    *writing += 1;
    drop(writing);
    drop(ready(write));
    let writing = lock.clone().try_upgradable_read_owned().unwrap().try_upgrade().unwrap();
    assert_eq!(*writing, 2);
}

#[test]
fn a_lock_for_one_reader_upgrades() {
    let lock = RwLock::with_max_readers(1, 1).unwrap();
    let upgradable = ready(lock.upgradable_read());
    assert!(lock.is_read_locked() && !lock.is_write_locked());
    let mut write = pin!(lock.write());
    assert!(poll(write.as_mut()).is_pending());
    let writing = ready(upgradable.upgrade().timeout(Duration::ZERO)).unwrap();
    assert!(lock.is_write_locked());
    let reading = writing.downgrade();
    assert!(lock.is_read_locked() && !lock.is_write_locked());
    drop(reading);
    let writing = ready(write);
    assert!(lock.is_write_locked());
    drop(writing);
    let upgradable = ready(lock.upgradable_read());
    drop(ready(upgradable.upgrade()));
    assert!(!lock.is_locked());
}

#[test]
fn a_downgrade_lets_the_waiting_reads_in_and_no_write() {
    let lock = RwLock::new(1);
    let writing = ready(lock.write());
    let mut read = pin!(lock.read());
    let mut write = pin!(lock.write());
    assert!(poll(read.as_mut()).is_pending());
    assert!(poll(write.as_mut()).is_pending());
    let reading = writing.downgrade();
    let other = ready(read);
    assert_eq!((*reading, *other, lock.readers()), (1, 1, 2));
    assert!(poll(write.as_mut()).is_pending());
    drop((reading, other));
    assert!(poll(write.as_mut()).is_ready());
}
