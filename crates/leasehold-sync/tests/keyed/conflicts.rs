//! Who waits for whom (rules K1, K2).

use std::pin::pin;

use leasehold_sync::{AcquireKeyed, KeyedGuard, KeyedLock};

use crate::{poll, ready};

type Lock = KeyedLock<&'static str>;

fn pending(request: AcquireKeyed<&Lock>) -> std::pin::Pin<Box<AcquireKeyed<&Lock>>> {
    let mut request = Box::pin(request);
    assert!(poll(request.as_mut()).is_pending());
    request
}

/// acceptance AK1
#[test]
fn ak1_writes_of_different_keys_overlap() {
    let lock = Lock::new();
    let one = ready(lock.write("key1"));
    drop(ready(lock.write("key2")));
    drop(one);
}

/// acceptance AK2
#[test]
fn ak2_a_second_write_of_a_key_waits_for_the_first() {
    let lock = Lock::new();
    let first = ready(lock.write("key1"));
    let mut second = pending(lock.write("key1"));
    drop(first);
    assert!(poll(second.as_mut()).is_ready());
}

/// acceptance AK3
#[test]
fn ak3_writes_of_the_whole_set_are_serial() {
    let lock = Lock::new();
    let first = ready(lock.write_all());
    let mut second = pending(lock.write_all());
    let mut third = pending(lock.write_all());
    drop(first);
    let second = ready(second.as_mut());
    assert!(poll(third.as_mut()).is_pending());
    drop(second);
    assert!(poll(third.as_mut()).is_ready());
}

/// acceptance AK4
#[test]
fn ak4_writes_of_the_whole_set_are_barriers() {
    let lock = Lock::new();
    let first = ready(lock.write_all());
    let (one, two) = (pending(lock.write("k1")), pending(lock.write("k2")));
    let mut second = pending(lock.write_all());
    let mut last = pending(lock.write("k1"));
    drop(first);
    let (one, two) = (ready(one), ready(two));
    assert!(poll(second.as_mut()).is_pending() && poll(last.as_mut()).is_pending());
    drop(two);
    assert!(poll(second.as_mut()).is_pending());
    drop(one);
    let second = ready(second);
    assert!(poll(last.as_mut()).is_pending());
    drop(second);
    drop(ready(last));
    assert!(lock.is_empty());
}

/// acceptance AK5
#[test]
fn ak5_reads_of_a_key_overlap() {
    let lock = Lock::new();
    let both = (ready(lock.read("k1")), ready(lock.read("k1")));
    assert_eq!(lock.len(), 1);
    drop(both);
}

/// acceptance AK6
#[test]
fn ak6_a_read_waits_for_the_write_of_its_key() {
    let lock = Lock::new();
    let write = ready(lock.write("k1"));
    let read = pending(lock.read("k1"));
    drop(write);
    drop(ready(read));
}

/// acceptance AK7
#[test]
fn ak7_a_write_waits_for_the_read_of_its_key() {
    let lock = Lock::new();
    let read = ready(lock.read("k1"));
    let write = pending(lock.write("k1"));
    drop(read);
    drop(ready(write));
}

#[test]
fn a_queued_read_of_the_whole_set_holds_up_writes_and_no_reads() {
    let lock = Lock::new();
    let write = ready(lock.write("k1"));
    let all = pending(lock.read_all());
    let later = pending(lock.write("k2"));
    let read = ready(lock.read("k3"));
    assert!(lock.try_read("k2").is_none(), "a read does not overtake a queued write of its key");
    drop((write, read));
    let all = ready(all);
    assert!(lock.try_read("k3").is_some());
    drop(all);
    drop(ready(later));
}

#[test]
fn reads_of_the_whole_set_overlap() {
    let lock = Lock::new();
    let all = (ready(lock.read_all()), ready(lock.read_all()), ready(lock.read("k1")));
    assert!(lock.try_write("k1").is_none() && lock.try_write_all().is_none());
    drop(all);
    assert!(lock.try_write_all().is_some());
}

/// Rule K3: an empty string is a key like any other.
#[test]
fn an_empty_key_is_a_key() {
    let lock = Lock::new();
    let _held = ready(lock.write(""));
    assert!(lock.try_write("").is_none() && lock.try_write("k").is_some());
}

/// A hasher that makes every key collide.
#[derive(Default)]
struct Same;

impl std::hash::Hasher for Same {
    fn write(&mut self, _: &[u8]) {}

    fn finish(&self) -> u64 {
        7
    }
}

#[test]
fn keys_that_collide_are_different_keys() {
    let lock = KeyedLock::with_hasher(std::hash::BuildHasherDefault::<Same>::default());
    let held: Vec<_> = (0..500).map(|key| lock.try_write(key).expect("free")).collect();
    assert!((0..500).all(|key| lock.try_read(key).is_none()));
    assert_eq!(lock.len(), 500);
    for (key, guard) in held.into_iter().enumerate() {
        drop(guard);
        assert!(lock.try_read(key).is_some());
    }
    assert!(lock.is_empty());
}

#[test]
fn an_owned_guard_keeps_the_lock_and_travels() {
    let lock = std::sync::Arc::new(Lock::new());
    let guard = ready(lock.clone().write_owned("k1"));
    let all = lock.clone().read_all_owned();
    assert!(KeyedGuard::source(&guard).try_read("k1").is_none());
    let thread = std::thread::spawn(move || drop(guard));
    drop(pollster::block_on(all));
    thread.join().unwrap();
    let _both = (lock.clone().try_read_owned("k1"), lock.clone().try_read_all_owned());
    assert!(lock.clone().try_write_owned("k1").is_none());
    assert!(lock.clone().try_write_all_owned().is_none());
    let mut late = pin!(lock.clone().write_all_owned());
    assert!(poll(late.as_mut()).is_pending());
}
