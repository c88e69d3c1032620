//! The wakers of one step, to be called after the locks of the table are left.

use std::task::Waker;

use smallvec::SmallVec;

/// Collected under the locks, in the order of the grants; called when dropped, outside of them: a
/// waker is foreign code and may well use the very table that it is woken for.
pub(super) struct Wakers(SmallVec<[Waker; 2]>);

impl Wakers {
    #[inline]
    pub(super) const fn new() -> Self {
        Self(SmallVec::new_const())
    }

    #[inline]
    pub(super) fn push(&mut self, waker: Option<Waker>) {
        self.0.extend(waker);
    }
}

impl Drop for Wakers {
    #[inline]
    fn drop(&mut self) {
        if !self.0.is_empty() {
            wake(&mut self.0);
        }
    }
}

/// A waker that panics must not cost the others their wake-up.
#[cold]
fn wake(wakers: &mut SmallVec<[Waker; 2]>) {
    struct Rest<'a>(smallvec::Drain<'a, [Waker; 2]>);
    impl Drop for Rest<'_> {
        fn drop(&mut self) {
            self.0.by_ref().for_each(Waker::wake);
        }
    }
    let mut rest = Rest(wakers.drain(..));
    rest.0.by_ref().for_each(Waker::wake);
}
