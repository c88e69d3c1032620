//! The wakers of one step, to be called after the gate is left.

use std::{cell::Cell, task::Waker};

/// How many places for wakers a thread keeps: what a long run of reads needed is given back.
const SPARE_MAX: usize = 1024;

thread_local! {
    /// Places for the next step that wakes several.
    static SPARE: Cell<Vec<Waker>> = const { Cell::new(Vec::new()) };
}

/// Collected under the gate, in the order of the grants; called when dropped, outside of it: a
/// waker is foreign code and may well use the very lock that it is woken for.
pub(super) struct Wakers {
    /// Most steps wake one, or nobody.
    first: Option<Waker>,
    others: Vec<Waker>,
}

impl Wakers {
    #[inline]
    pub(super) const fn new() -> Self {
        Self { first: None, others: Vec::new() }
    }

    #[inline]
    pub(super) fn push(&mut self, waker: Option<Waker>) {
        if self.first.is_none() {
            self.first = waker;
        } else if let Some(waker) = waker {
            if self.others.len() == self.others.capacity() {
                self.make_room();
            }
            self.others.push(waker);
        }
    }

    #[cold]
    fn make_room(&mut self) {
        if self.others.capacity() == 0 {
            // While a thread ends, its values may be gone.
            self.others = SPARE.try_with(Cell::take).unwrap_or_default();
        }
        self.others.reserve(1);
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
    #[inline(never)]
    fn wake_several(&mut self, first: Waker) {
        struct Rest<'a>(std::vec::Drain<'a, Waker>);
        impl Drop for Rest<'_> {
            fn drop(&mut self) {
                self.0.by_ref().for_each(Waker::wake);
            }
        }
        let mut others = std::mem::take(&mut self.others);
        let mut rest = Rest(others.drain(..));
        first.wake();
        rest.0.by_ref().for_each(Waker::wake);
        drop(rest);
        if others.capacity() <= SPARE_MAX {
            let _ = SPARE.try_with(|spare| spare.set(others));
        }
    }
}
