//! A share of something that is made when it is needed first; one word until then.

use std::{
    fmt,
    marker::PhantomData,
    ptr,
    sync::{
        Arc,
        atomic::{AtomicPtr, Ordering},
    },
};

/// As a `OnceLock<Arc<T>>`, in half the size, and nothing to call for one that is empty.
pub(super) struct OnceArc<T> {
    /// Null, or from `Arc::into_raw`.
    made: AtomicPtr<T>,
    _owns: PhantomData<Arc<T>>,
}

impl<T> OnceArc<T> {
    #[inline]
    pub(super) const fn new() -> Self {
        Self { made: AtomicPtr::new(ptr::null_mut()), _owns: PhantomData }
    }

    #[inline]
    pub(super) fn with(made: Arc<T>) -> Self {
        Self { made: AtomicPtr::new(Arc::into_raw(made).cast_mut()), _owns: PhantomData }
    }

    #[inline]
    pub(super) fn get(&self) -> Option<&T> {
        // SAFETY: it is null or points into an `Arc` of which this has a share until it is dropped
        // or taken, for which it must be borrowed mutably. Acquire: what was made by another thread
        // is visible.
        unsafe { self.made.load(Ordering::Acquire).as_ref() }
    }

    /// A share of what is there, which is made if nothing is.
    pub(super) fn share(&self, make: impl FnOnce() -> Arc<T>) -> Arc<T> {
        let mut made = self.made.load(Ordering::Acquire);
        if made.is_null() {
            let new = Arc::into_raw(make()).cast_mut();
            let set = self.made.compare_exchange(
                ptr::null_mut(),
                new,
                Ordering::AcqRel,
                Ordering::Acquire,
            );
            made = match set {
                Ok(_) => new,
                Err(first) => {
                    // SAFETY: from `into_raw` just above, and not stored anywhere.
                    drop(unsafe { Arc::from_raw(new) });
                    first
                }
            };
        }
        // SAFETY: not null, so from `into_raw`, and this has a share of it, so it is alive.
        unsafe {
            Arc::increment_strong_count(made);
            Arc::from_raw(made)
        }
    }

    #[inline]
    pub(super) fn take(&mut self) -> Option<Arc<T>> {
        let made = std::mem::replace(self.made.get_mut(), ptr::null_mut());
        // SAFETY: not null, so from `into_raw`; it is taken out, so nobody makes it an `Arc` again.
        (!made.is_null()).then(|| unsafe { Arc::from_raw(made) })
    }

    #[inline]
    pub(super) fn is_empty(&mut self) -> bool {
        self.made.get_mut().is_null()
    }
}

impl<T> Drop for OnceArc<T> {
    #[inline]
    fn drop(&mut self) {
        drop(self.take());
    }
}

// SAFETY: it is an `Arc<T>` or nothing; what is set is set by one atomic step.
unsafe impl<T: Send + Sync> Send for OnceArc<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for OnceArc<T> {}

impl<T> fmt::Debug for OnceArc<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.get().is_some() { "OnceArc" } else { "OnceArc (empty)" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_made_once_and_dropped_once() {
        let mut once = OnceArc::new();
        assert!(once.get().is_none() && once.is_empty());
        let first = once.share(|| Arc::new(1));
        let second = once.share(|| unreachable!("made already"));
        assert!(Arc::ptr_eq(&first, &second) && once.get() == Some(&1));
        assert_eq!(Arc::strong_count(&first), 3);
        let taken = once.take().expect("made");
        assert!(once.is_empty() && once.take().is_none());
        drop((second, taken, once));
        assert_eq!(Arc::strong_count(&first), 1);
        drop(OnceArc::with(Arc::clone(&first)));
        assert_eq!(Arc::strong_count(&first), 1);
    }

    #[test]
    fn threads_that_make_it_at_once_get_the_same() {
        for _ in 0..200 {
            let once = OnceArc::new();
            let made = std::thread::scope(|threads| {
                let threads = [0, 1].map(|n| {
                    threads.spawn({
                        let once = &once;
                        move || once.share(|| Arc::new(n))
                    })
                });
                threads.map(|thread| thread.join().unwrap())
            });
            assert!(Arc::ptr_eq(&made[0], &made[1]));
            drop(once);
            assert_eq!(Arc::strong_count(&made[0]), 2);
        }
    }
}
