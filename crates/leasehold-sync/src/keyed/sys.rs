//! The mutex of a shard: the real one, or loom's under `cfg(leasehold_loom)`.

#[cfg(not(leasehold_loom))]
type Inner<T> = parking_lot::Mutex<T>;
#[cfg(leasehold_loom)]
type Inner<T> = loom::sync::Mutex<T>;

#[cfg(not(leasehold_loom))]
pub(super) type Locked<'a, T> = parking_lot::MutexGuard<'a, T>;
#[cfg(leasehold_loom)]
pub(super) type Locked<'a, T> = loom::sync::MutexGuard<'a, T>;

/// Held for a few instructions. Nothing foreign runs under it but the comparison of keys.
pub(super) struct Small<T>(Inner<T>);

impl<T> Small<T> {
    pub(super) fn new(value: T) -> Self {
        Self(Inner::new(value))
    }

    #[inline]
    pub(super) fn lock(&self) -> Locked<'_, T> {
        #[cfg(not(leasehold_loom))]
        return self.0.lock();
        #[cfg(leasehold_loom)]
        self.0.lock().expect("nothing panics under a lock of the table")
    }
}
