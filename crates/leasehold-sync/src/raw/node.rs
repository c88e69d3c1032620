//! A waiter or watcher: one node of a queue, living inside of the future that waits.

use std::{
    marker::PhantomPinned, mem::MaybeUninit, ptr::NonNull, sync::atomic::Ordering, task::Waker,
};

use super::{
    gate::Locked,
    sys::{AtomicU8, Guarded, const_fn},
    word::{Want, WatchFor},
};

/// Never queued, or queued no more because it left.
const OUTSIDE: u8 = 0;
/// Linked into the list of a lock.
const QUEUED: u8 = 1;
/// Granted, or in a watcher's case told: no longer linked, and nobody else looks at the node.
const GRANTED: u8 = 2;
/// Taken out because the capacity shrank below its weight.
const REJECTED: u8 = 3;

/// Where a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Outside,
    Queued,
    Granted,
    Rejected,
}

/// A pointer to a linked node, or to none.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Link(pub(super) Option<NonNull<Node>>);

/// One waiter. Pinned before it is linked, and unlinked before it is dropped.
///
/// Until it is queued, all of it but one byte is left as it is: the future of a free lock is made
/// and moved for next to nothing.
pub(crate) struct Node {
    waiting: Guarded<MaybeUninit<Waiting>>,
    phase: AtomicU8,
    _pinned: PhantomPinned,
}

/// What there is to know of a queued node.
pub(super) struct Waiting {
    pub(super) prev: Link,
    pub(super) next: Link,
    /// Taken out by whoever unlinks the node, so that nothing is left to drop.
    pub(super) waker: Option<Waker>,
    pub(super) weight: u32,
    pub(super) kind: Kind,
}

/// Whom the node is of.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Waiter(Want),
    Watcher(WatchFor),
}

impl Node {
    const_fn! {
        #[inline]
        pub(crate) const fn new() -> Self {
            Self {
                waiting: Guarded::new(MaybeUninit::uninit()),
                phase: AtomicU8::new(OUTSIDE),
                _pinned: PhantomPinned,
            }
        }
    }

    /// Before it is linked.
    #[inline]
    pub(super) fn set_queued(
        &self,
        locked: &mut Locked<'_>,
        kind: Kind,
        weight: u32,
        waker: Waker,
    ) {
        let alone = Link(None);
        let waiting = Waiting { prev: alone, next: alone, waker: Some(waker), weight, kind };
        self.waiting.get_mut(locked).write(waiting);
        self.phase.store(QUEUED, Ordering::Relaxed);
    }

    /// Of a node that is linked, or about to be, or was in this very step.
    #[inline]
    pub(super) fn waiting<'a>(&'a self, locked: &'a mut Locked<'_>) -> &'a mut Waiting {
        debug_assert!(self.phase.load(Ordering::Relaxed) == QUEUED);
        // SAFETY: the list holds nothing but nodes that `set_queued` has filled, under this gate.
        unsafe { self.waiting.get_mut(locked).assume_init_mut() }
    }

    /// Where it is. What is read as granted or rejected stays so, and everything that the former
    /// holders did is visible then; what is read as queued may have changed since.
    #[inline]
    pub(crate) fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Acquire) {
            OUTSIDE => Phase::Outside,
            QUEUED => Phase::Queued,
            GRANTED => Phase::Granted,
            _ => Phase::Rejected,
        }
    }

    pub(super) fn set_outside(&self, _locked: &mut Locked<'_>) {
        self.phase.store(OUTSIDE, Ordering::Relaxed);
    }

    /// What a waiter asks for.
    #[inline]
    pub(super) fn asks(&self, locked: &mut Locked<'_>) -> (Want, u32) {
        let Waiting { kind: Kind::Waiter(want), weight, .. } = *self.waiting(locked) else {
            unreachable!("a watcher is in the other list")
        };
        (want, weight)
    }

    /// Of a node that was unlinked in this very step: it is granted, and here is whom to wake. The
    /// last touch, as below.
    #[inline]
    pub(super) fn grant(&self, locked: &mut Locked<'_>) -> Option<Waker> {
        let waker = self.waiting(locked).waker.take();
        self.set_granted(locked);
        waker
    }

    /// The last touch: whoever waits may free the node as soon as it sees this.
    #[inline]
    pub(super) fn set_granted(&self, _locked: &mut Locked<'_>) {
        self.phase.store(GRANTED, Ordering::Release);
    }

    /// The last touch, as with a grant.
    pub(super) fn set_rejected(&self, _locked: &mut Locked<'_>) {
        self.phase.store(REJECTED, Ordering::Release);
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        debug_assert!(self.phase() != Phase::Queued, "a linked node must not be dropped");
    }
}

// SAFETY: a link is only followed under the gate of the lock whose list it is part of, and a node
// is `Sync`; so it does not matter on which thread that happens.
unsafe impl Send for Link {}
