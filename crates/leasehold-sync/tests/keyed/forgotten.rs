//! A forgotten guard holds for ever, and of an object whatever is known by the same place.

use std::{mem::forget, sync::Arc};

use leasehold_sync::{KeyedLock, ObjectLock};

#[test]
fn a_forgotten_guard_holds_its_key_and_no_other() {
    let lock = KeyedLock::new();
    forget(lock.try_write(1));
    assert!(lock.try_read(1).is_none() && lock.try_write_all().is_none());
    assert!(lock.try_write(2).is_some());
    assert_eq!(lock.len(), 1);
}

#[test]
fn a_forgotten_guard_of_a_shared_object_keeps_the_object_so_its_place_is_no_others() {
    let object = Arc::new(7_u64);
    forget(ObjectLock::of_arc(&object).try_write());
    assert_eq!(Arc::strong_count(&object), 2);
    assert!(ObjectLock::of_arc(&object).try_read().is_none());
}

#[test]
fn a_forgotten_guard_of_a_borrowed_object_holds_the_place() {
    struct Here(u8);
    let mut object = Box::new(Here(1));
    forget(ObjectLock::of(&*object).unwrap().try_write());
    // Another one, as far as anybody can tell but by the place.
    *object = Here(2);
    assert!(ObjectLock::of(&*object).unwrap().try_read().is_none());
    assert_eq!(object.0, 2);
    // A thing of another type is another one, in the same place too.
    assert!(ObjectLock::of(&object.0).unwrap().try_write().is_some());
}
