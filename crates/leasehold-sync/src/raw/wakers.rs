//! The wakers of one step, to be called after the gate is left.

use std::{mem::ManuallyDrop, task::Waker};

use smallvec::SmallVec;

/// Collected under the gate, in the order of the grants; called when dropped, outside of it: a
/// waker is foreign code and may well use the very lock that it is woken for.
pub(super) struct Wakers {
    /// Most steps wake one, or nobody.
    first: Option<Waker>,
    /// Empty, or taken out before this is dropped: so the usual step has nothing to look at.
    others: ManuallyDrop<SmallVec<[Waker; 4]>>,
}

impl Wakers {
    #[inline]
    pub(super) const fn new() -> Self {
        Self { first: None, others: ManuallyDrop::new(SmallVec::new_const()) }
    }

    #[inline]
    pub(super) fn push(&mut self, waker: Option<Waker>) {
        if self.first.is_none() {
            self.first = waker;
        } else {
            self.push_other(waker);
        }
    }

    #[cold]
    fn push_other(&mut self, waker: Option<Waker>) {
        self.others.extend(waker);
    }
}

impl Drop for Wakers {
    #[inline]
    fn drop(&mut self) {
        let Some(first) = self.first.take() else { return };
        if self.others.is_empty() {
            first.wake();
        } else {
            self.wake_several(first);
        }
    }
}

impl Wakers {
    /// A waker that panics must not cost the others their wake-up.
    #[cold]
    fn wake_several(&mut self, first: Waker) {
        struct Rest<'a>(smallvec::Drain<'a, [Waker; 4]>);
        impl Drop for Rest<'_> {
            fn drop(&mut self) {
                self.0.by_ref().for_each(Waker::wake);
            }
        }
        let mut others = std::mem::take(&mut *self.others);
        let mut rest = Rest(others.drain(..));
        first.wake();
        rest.0.by_ref().for_each(Waker::wake);
    }
}
