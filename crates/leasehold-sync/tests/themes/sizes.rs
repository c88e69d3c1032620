//! What a lock costs in memory.

use std::mem::size_of;

use leasehold_sync::{
    Acquire, AcquireWith, Error, Mutex, MutexGuard, OwnedMutexGuard, RwLock, RwLockReadGuard,
    RwLockWriteGuard, Semaphore, SemaphorePermit,
};

#[test]
fn locks_guards_and_futures_are_small() {
    assert!(size_of::<Mutex<()>>() <= 32);
    assert!(size_of::<Mutex<u64>>() <= 40);
    assert!(size_of::<RwLock<u64>>() <= 48);
    assert!(size_of::<Semaphore>() <= 32);
    assert!(size_of::<MutexGuard<'_, u64>>() <= 16);
    assert!(size_of::<OwnedMutexGuard<u64>>() <= 16);
    assert!(size_of::<RwLockReadGuard<'_, u64>>() <= 16);
    assert!(size_of::<RwLockWriteGuard<'_, u64>>() <= 16);
    assert!(size_of::<SemaphorePermit<'_>>() <= 16);
    assert!(size_of::<Error>() <= 8);
}

#[test]
fn futures_fit_into_two_cache_lines() {
    assert!(size_of::<Acquire<MutexGuard<'_, u64>>>() <= 56);
    assert!(size_of::<Acquire<RwLockReadGuard<'_, u64>>>() <= 56);
    assert!(size_of::<Acquire<SemaphorePermit<'_>>>() <= 64);
    assert!(size_of::<AcquireWith<MutexGuard<'_, u64>>>() <= 96);
    assert!(size_of::<AcquireWith<SemaphorePermit<'_>>>() <= 96);
}
