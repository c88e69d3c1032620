//! The wakers of one step, to be called after the gate is left.

use std::task::Waker;

use smallvec::SmallVec;

/// Collected under the gate, in the order of the grants; called when dropped, outside of it: a
/// waker is foreign code and may well use the very lock that it is woken for.
pub(super) struct Wakers(SmallVec<[Waker; 4]>);

impl Wakers {
    #[inline]
    pub(super) const fn new() -> Self {
        Self(SmallVec::new_const())
    }

    #[inline]
    pub(super) fn push(&mut self, waker: Option<Waker>) {
        if let Some(waker) = waker {
            self.0.push(waker);
        }
    }
}

impl Drop for Wakers {
    #[inline]
    fn drop(&mut self) {
        if self.0.len() > 1 {
            self.wake_several();
        } else if let Some(waker) = self.0.pop() {
            waker.wake();
        }
    }
}

impl Wakers {
    /// A waker that panics must not cost the others their wake-up.
    #[cold]
    fn wake_several(&mut self) {
        struct Rest<'a>(smallvec::Drain<'a, [Waker; 4]>);
        impl Drop for Rest<'_> {
            fn drop(&mut self) {
                self.0.by_ref().for_each(Waker::wake);
            }
        }
        let mut rest = Rest(self.0.drain(..));
        rest.0.by_ref().for_each(Waker::wake);
    }
}
