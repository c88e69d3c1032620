//! Keyed locks that are checked (rules R2, R4 and K4).

use std::{
    hash::{Hash, Hasher},
    pin::pin,
};

use leasehold_sync::{Blocker, KeyedLock, Mutex, scope};

use crate::{cycle, done, pause, ready, waits};

type Keys = KeyedLock<u8>;

#[test]
fn ar1_ar2_ar3_a_key_within_itself_is_told() {
    let keys = Keys::new().checked();
    ready(scope(async {
        let write = keys.write(1).await.unwrap();
        assert!(keys.write(1).await.unwrap_err().is_reentrant());
        assert!(keys.read(1).await.unwrap_err().is_reentrant());
        drop(write);
        let _read = keys.read(1).await.unwrap();
        assert!(keys.write(1).await.unwrap_err().is_reentrant());
    }));
}

#[test]
fn ar4_ar5_a_read_within_a_read_and_another_key_are_granted() {
    let keys = Keys::new().checked();
    ready(scope(async {
        let _read = keys.read(1).await.unwrap();
        let _again = keys.read(1).await.unwrap();
        let _other = keys.write(2).await.unwrap();
    }));
    assert!(keys.unchecked().is_empty());
}

#[test]
fn ar6_ar7_ar8_keys_and_the_whole_set_are_told_of_one_another() {
    let keys = Keys::new().checked();
    ready(scope(async {
        let all = keys.write_all().await.unwrap();
        assert!(keys.write(1).await.unwrap_err().is_reentrant());
        assert!(keys.read(1).await.unwrap_err().is_reentrant());
        drop(all);
        let one = keys.write(1).await.unwrap();
        assert!(keys.write_all().await.unwrap_err().is_reentrant());
        drop(one);
        let _all = keys.read_all().await.unwrap();
        assert!(keys.write(1).await.unwrap_err().is_reentrant());
    }));
}

#[test]
fn ar9_ar10_it_is_told_after_an_await_and_granted_after_the_release() {
    let keys = Keys::new().checked();
    let mut task = pin!(scope(async {
        let write = keys.write(1).await.unwrap();
        pause().await;
        assert!(keys.write(1).await.unwrap_err().is_reentrant());
        drop(write);
        drop(keys.write(1).await.unwrap());
    }));
    waits(task.as_mut());
    done(task);
}

#[test]
fn ar11_ar12_any_of_several_keys_is_found_and_another_lock_is_not() {
    let (keys, others) = (Keys::new().checked(), Keys::new().checked());
    ready(scope(async {
        let _held = (keys.write(1).await.unwrap(), keys.write(2).await.unwrap());
        assert!(keys.write(1).await.unwrap_err().is_reentrant());
        let _other = others.write(1).await.unwrap();
    }));
}

#[test]
fn ar13_two_tasks_are_no_reentrancy_and_take_turns() {
    let keys = Keys::new().checked();
    let work = async || {
        let held = keys.write(1).await.unwrap();
        pause().await;
        drop(held);
    };
    let (mut one, mut two) = (pin!(scope(work())), pin!(scope(work())));
    waits(one.as_mut());
    waits(two.as_mut());
    done(one);
    waits(two.as_mut());
    done(two);
}

#[test]
fn keys_in_opposite_orders_are_a_deadlock_and_other_keys_are_not() {
    let keys = Keys::new();
    let work = async |first: u8, second: u8| {
        let inner = async || {
            pause().await;
            keys.write(second).run(async || ()).await
        };
        keys.write(first).run(inner).await
    };
    let (mut one, mut two) = (pin!(work(1, 2)), pin!(work(2, 1)));
    let mut three = pin!(work(3, 4));
    waits(one.as_mut());
    waits(two.as_mut());
    waits(three.as_mut());
    waits(one.as_mut());
    assert_eq!(done(three), Ok(Ok(())));
    let error = done(two).unwrap().unwrap_err();
    assert_eq!(cycle(&error).len(), 2);
    assert_eq!(done(one), Ok(Ok(())));
}

#[test]
fn a_key_behind_a_queued_write_of_the_whole_set_waits_for_what_that_waits_for() {
    let keys = Keys::new();
    let other = leasehold_sync::Mutex::new(());
    let mut holder = pin!(keys.read(1).run(async || {
        pause().await;
        other.run_exclusive(async |_| ()).await
    }));
    waits(holder.as_mut());
    // In a frame: a keyed request outside of any is not recorded.
    let mut whole = pin!(scope(keys.write_all().run(async || ())));
    waits(whole.as_mut());
    let mut late = pin!(other.run_exclusive(async |_| {
        pause().await;
        keys.read(2).run(async || ()).await
    }));
    waits(late.as_mut());
    waits(holder.as_mut());
    let error = done(late).unwrap().unwrap_err();
    let blockers = cycle(&error).iter().map(|step| step.blocked_by).collect::<Vec<_>>();
    assert_eq!(blockers, [Blocker::Earlier, Blocker::Holder, Blocker::Holder]);
    assert_eq!(done(holder), Ok(Ok(())));
    assert_eq!(done(whole), Ok(()));
}

#[test]
fn a_guard_of_a_key_that_can_be_moved_is_no_edge() {
    let (keys, other) = (Keys::new().checked(), leasehold_sync::Mutex::new(()));
    let mut one = pin!(scope(async {
        let held = keys.write(1).await.unwrap();
        pause().await;
        {
            let mut waiting = pin!(other.run_exclusive(async |_| ()));
            waits(waiting.as_mut());
        }
        drop(held);
    }));
    let mut two = pin!(other.run_exclusive(async |_| {
        pause().await;
        keys.write(1).await.map(drop)
    }));
    waits(one.as_mut());
    waits(two.as_mut());
    waits(two.as_mut());
    done(one);
    assert_eq!(done(two), Ok(Ok(())));
}

#[test]
fn who_shares_the_read_of_a_whole_set_gives_back_that_read_and_no_other() {
    let keys = Keys::new().checked();
    // Reads before and after it, so that neither the first nor the last is the right one.
    let mut others = vec![keys.unchecked().try_read_all()];
    let mut slot = None;
    ready(scope(async {
        let own = keys.read_all().await.unwrap();
        others.push(keys.unchecked().try_read_all());
        let (key, all) = (keys.read(1).await.unwrap(), keys.read_all().await.unwrap());
        drop((own, all));
        slot = Some(key);
    }));
    assert!(keys.unchecked().try_write_all().is_none());
    drop(slot);
    for other in others {
        assert!(keys.unchecked().try_write(1).is_none(), "it is still read");
        drop(other.expect("reads go together"));
    }
    assert!(keys.unchecked().is_empty());
    assert!(keys.unchecked().try_write_all().is_some());
}

#[test]
fn a_run_outside_of_frames_is_in_the_graph_when_it_is_queued() {
    // Reader and holder of the mutex, a writer between, and a second reader behind that writer.
    let (keys, mutex) = (Keys::new(), leasehold_sync::Mutex::new(()));
    let mut reader = pin!(keys.read(1).run(async || {
        pause().await;
        mutex.run_exclusive(async |_| ()).await
    }));
    waits(reader.as_mut());
    let mut holder = pin!(mutex.run_exclusive(async |_| {
        pause().await;
        keys.read(1).run(async || ()).await
    }));
    waits(holder.as_mut());
    let mut writer = pin!(keys.write(1).run(async || ()));
    waits(writer.as_mut());
    waits(holder.as_mut());
    let told = done(reader.as_mut()).unwrap().unwrap_err();
    let blockers: Vec<Blocker> = cycle(&told).iter().map(|step| step.blocked_by).collect();
    assert_eq!(blockers.len(), 3);
    assert!(blockers.contains(&Blocker::Earlier), "{told}");
    done(writer.as_mut()).unwrap();
    assert_eq!(done(holder.as_mut()), Ok(Ok(())));
}

#[test]
fn a_whole_set_run_outside_of_frames_is_in_the_graph_when_it_is_queued() {
    let (keys, mutex) = (Keys::new(), leasehold_sync::Mutex::new(()));
    let mut one = pin!(keys.write(1).run(async || {
        pause().await;
        mutex.run_exclusive(async |_| ()).await
    }));
    waits(one.as_mut());
    let mut holder = pin!(mutex.run_exclusive(async |_| {
        pause().await;
        keys.write(2).run(async || ()).await
    }));
    waits(holder.as_mut());
    let mut all = pin!(keys.write_all().run(async || ()));
    waits(all.as_mut());
    waits(holder.as_mut());
    let told = done(one.as_mut()).unwrap().unwrap_err();
    assert_eq!(cycle(&told).len(), 3);
    done(all.as_mut()).unwrap();
    assert_eq!(done(holder.as_mut()), Ok(Ok(())));
    assert!(keys.is_empty());
}

#[test]
fn a_writer_of_an_object_between_two_readers_is_in_the_graph() {
    let (object, mutex) = (7_u8, leasehold_sync::Mutex::new(()));
    let mut reader = pin!(leasehold_sync::object_shared(&object, async || {
        pause().await;
        mutex.run_exclusive(async |_| ()).await
    }));
    waits(reader.as_mut());
    let mut holder = pin!(mutex.run_exclusive(async |_| {
        pause().await;
        leasehold_sync::object_shared(&object, async || ()).await
    }));
    waits(holder.as_mut());
    let mut writer = pin!(leasehold_sync::object_exclusive(&object, async || ()));
    waits(writer.as_mut());
    waits(holder.as_mut());
    let told = done(reader.as_mut()).unwrap().unwrap_err();
    assert_eq!(cycle(&told).len(), 3);
    done(writer.as_mut()).unwrap();
    assert_eq!(done(holder.as_mut()), Ok(Ok(())));
}

/// A key that asks for a lock, and waits for it, whenever it is compared.
struct Asking(u8);

static ASKED: Mutex<u32> = Mutex::new(0);

impl PartialEq for Asking {
    fn eq(&self, other: &Self) -> bool {
        let mut held = ASKED.try_lock().expect("keys are compared one by one here");
        *held += 1;
        let mut behind = pin!(ASKED.run_exclusive(async |_| ()));
        waits(behind.as_mut());
        self.0 == other.0
    }
}

impl Eq for Asking {}

impl Hash for Asking {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

#[test]
fn a_key_that_asks_for_locks_when_it_is_compared_stops_nobody() {
    let keys = KeyedLock::new().checked();
    let held = keys.unchecked().try_write(Asking(1));
    let mut first = pin!(keys.write(Asking(1)).run(async || 1));
    let mut second = pin!(scope(async { keys.write(Asking(1)).await.is_ok() }));
    waits(first.as_mut());
    waits(second.as_mut());
    drop(held);
    assert_eq!(done(first), Ok(1));
    assert!(done(second));
    assert!(keys.unchecked().is_empty());
    assert!(*ready(ASKED.lock()) > 0, "it was compared");
}

#[test]
fn e2_a_refused_request_says_how_many_wait_on() {
    let keys = Keys::new().checked();
    let mut one = pin!(keys.write(1).run(async || {
        pause().await;
        keys.write(2).run(async || ()).await
    }));
    let mut two = pin!(keys.write(2).run(async || {
        pause().await;
        keys.write(1).run(async || ()).await
    }));
    waits(one.as_mut());
    waits(two.as_mut());
    let mut plain = pin!(keys.unchecked().write(1));
    waits(plain.as_mut());
    waits(one.as_mut());
    let error = done(two).unwrap().unwrap_err();
    assert!(error.is_deadlock() && error.to_string().ends_with("; 1 waiting"), "{error}");
    drop(done(one));
    drop(done(plain));
}
