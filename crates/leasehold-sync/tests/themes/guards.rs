//! Guards reach the data, parts of it, and data of any size.

use std::{cell::Cell, sync::Arc};

use leasehold_sync::{
    MappedRwLockWriteGuard, Mutex, MutexGuard, OwnedMutexGuard, OwnedRwLockReadGuard,
    OwnedRwLockWriteGuard, RwLock, RwLockReadGuard, RwLockWriteGuard,
};

use crate::ready;

#[test]
fn unsized_data() {
    let mutex: Arc<Mutex<[u8]>> = Arc::new(Mutex::new([1, 2, 3]));
    ready(mutex.lock())[0] = 7;
    ready(mutex.clone().lock_owned())[1] = 8;
    assert_eq!(*ready(mutex.lock()), [7, 8, 3]);
    let lock: Box<RwLock<dyn std::fmt::Debug + Send + Sync>> = Box::new(RwLock::new("text"));
    assert_eq!(format!("{:?}", ready(lock.read())), "\"text\"");
    assert_eq!(format!("{:?}", ready(ready(lock.upgradable_read()).upgrade())), "\"text\"");
}

#[test]
fn a_part_of_the_data_keeps_the_lock() {
    let mutex = Arc::new(Mutex::new((1, "a".to_owned())));
    let mut part = MutexGuard::map(ready(mutex.lock()), |data| &mut data.1);
    part.push('b');
    assert!(mutex.try_lock().is_none());
    let whole = MutexGuard::filter_map(part, |_| None::<&mut u8>).unwrap_err();
    let part = MutexGuard::filter_map(whole, |text| text.get_mut(0..1)).unwrap();
    assert_eq!(&*part, "a");
    drop(part);
    let mut part = OwnedMutexGuard::map(mutex.clone().try_lock_owned().unwrap(), |d| &mut d.0);
    *part += 1;
    assert!(Arc::ptr_eq(OwnedMutexGuard::mutex(&part), &mutex));
    drop(part);
    assert_eq!(*ready(mutex.lock()), (2, "ab".to_owned()));
}

#[test]
fn a_part_that_is_read_or_written() {
    let lock = Arc::new(RwLock::new(vec![1, 2, 3]));
    let first = RwLockReadGuard::map(ready(lock.read()), |data| &data[0]);
    let last = OwnedRwLockReadGuard::map(ready(lock.clone().read_owned()), |data| &data[2]);
    assert_eq!((*first, *last, lock.readers()), (1, 3, 2));
    assert!(Arc::ptr_eq(OwnedRwLockReadGuard::rw_lock(&last), &lock));
    drop((first, last));
    let part = RwLockWriteGuard::map(ready(lock.write()), |data| &mut data[..2]);
    let mut part = MappedRwLockWriteGuard::map(part, |data| &mut data[1]);
    *part = 9;
    assert!(lock.is_write_locked());
    drop(part);
    let whole = ready(lock.clone().write_owned());
    let whole = OwnedRwLockWriteGuard::filter_map(whole, |_| None::<&mut u8>).unwrap_err();
    drop(OwnedRwLockWriteGuard::map(whole, |data| &mut data[0]));
    assert!(!lock.is_locked());
    assert_eq!(*ready(lock.read()), [1, 9, 3]);
}

#[test]
fn a_panic_while_a_part_is_chosen_releases_the_lock() {
    let mutex = Mutex::new(1);
    let guard = mutex.try_lock().unwrap();
    let choose = || MutexGuard::map(guard, |_| -> &mut u8 { panic!("no part") });
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(choose)).is_err());
    assert!(!mutex.is_locked());
}

#[test]
fn a_guard_is_given_back_on_another_thread() {
    let mutex = Arc::new(Mutex::new(Cell::new(1)));
    let guard = mutex.clone().try_lock_owned().unwrap();
    std::thread::spawn(move || guard.set(5)).join().unwrap();
    assert_eq!(ready(mutex.lock()).get(), 5);
}

#[test]
fn what_debug_shows() {
    let mutex = Mutex::new(5);
    assert_eq!(format!("{mutex:?}"), "Mutex { data: 5 }");
    let guard = mutex.try_lock().unwrap();
    assert_eq!(format!("{mutex:?} {guard:?} {guard}"), "Mutex { data: <locked> } 5 5");
    let lock = RwLock::from(5);
    assert_eq!(format!("{lock:?}"), "RwLock { data: 5 }");
    let semaphore = leasehold_sync::Semaphore::new(2).unwrap();
    let shown = "Semaphore { capacity: 2, available: 2, queued: 0 }";
    assert_eq!(format!("{semaphore:?}"), shown);
    drop(guard);
    assert_eq!(Mutex::<u8>::default().into_inner(), 0);
    assert_eq!(*Mutex::new(3).get_mut() + *RwLock::new(4).get_mut(), 7);
}
