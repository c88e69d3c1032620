//! A doubly linked ring of nodes that live inside of futures: O(1) for every operation, removal
//! from the middle included (rule Q6), and no allocation.

use std::{pin::Pin, ptr::NonNull};

use super::{
    gate::Locked,
    node::{Link, Node},
    sys::{Guarded, const_fn},
};

/// The ring; its head is the first in the queue, and the head's `prev` is the last.
pub(super) struct List {
    head: Guarded<Link>,
}

impl List {
    const_fn! {
        pub(super) const fn new() -> Self {
            Self { head: Guarded::new(Link(None)) }
        }
    }

    #[inline]
    pub(super) fn is_empty(&self, locked: &Locked<'_>) -> bool {
        self.head.get(locked) == Link(None)
    }

    #[inline]
    pub(super) fn front(&self, locked: &Locked<'_>) -> Option<NonNull<Node>> {
        self.head.get(locked).0
    }

    /// Links a node behind everybody. From now on it must be unlinked before it is dropped.
    #[inline]
    pub(super) fn push_back(&self, locked: &mut Locked<'_>, node: Pin<&Node>) {
        let link = link_to(node);
        if self.join_ring(locked, link) {
            self.head.set(locked, link);
        }
    }

    /// Links a node before everybody. From now on it must be unlinked before it is dropped.
    pub(super) fn push_front(&self, locked: &mut Locked<'_>, node: Pin<&Node>) {
        let link = link_to(node);
        self.join_ring(locked, link);
        self.head.set(locked, link);
    }

    /// Takes out the first.
    #[inline]
    pub(super) fn pop_front(&self, locked: &mut Locked<'_>) -> Option<NonNull<Node>> {
        let node = self.head.get(locked).0?;
        self.unlink(locked, node);
        Some(node)
    }

    /// Takes out a node, which must be in this list.
    #[inline]
    pub(super) fn unlink(&self, locked: &mut Locked<'_>, node: NonNull<Node>) {
        let waiting = deref(node).waiting(locked);
        let (prev, next) = (waiting.prev, waiting.next);
        let (Some(before), Some(after)) = (prev.0, next.0) else {
            unreachable!("a node of a ring has neighbours");
        };
        if after == node {
            self.head.set(locked, Link(None));
        } else {
            deref(before).waiting(locked).next = next;
            deref(after).waiting(locked).prev = prev;
            if self.head.get(locked) == Link(Some(node)) {
                self.head.set(locked, next);
            }
        }
    }

    /// Every node in order; the list must not change in between. Visits all of them.
    pub(super) fn next_of(
        &self,
        locked: &mut Locked<'_>,
        node: NonNull<Node>,
    ) -> Option<NonNull<Node>> {
        let next = deref(node).waiting(locked).next;
        if next == self.head.get(locked) { None } else { next.0 }
    }

    /// Links a node between the last and the first, and says whether it is alone.
    #[inline]
    fn join_ring(&self, locked: &mut Locked<'_>, link: Link) -> bool {
        let Some(node) = link.0 else { unreachable!("a link to a node") };
        let Some(head) = self.head.get(locked).0 else {
            let waiting = deref(node).waiting(locked);
            (waiting.prev, waiting.next) = (link, link);
            return true;
        };
        let last = std::mem::replace(&mut deref(head).waiting(locked).prev, link);
        let waiting = deref(node).waiting(locked);
        (waiting.prev, waiting.next) = (last, Link(Some(head)));
        if let Some(last) = last.0 {
            deref(last).waiting(locked).next = link;
        }
        false
    }
}

/// A node that is linked, or about to be, by the caller, who holds the gate.
#[inline]
pub(super) fn deref<'a>(node: NonNull<Node>) -> &'a Node {
    // SAFETY: every pointer comes from `link_to`, that is from a pinned node. A node is unlinked,
    // under the gate, before it is dropped (its future's drop sees to it, and pinning makes sure
    // that the drop runs before the memory is used again). Links are only followed under the
    // gate, and no reference outlives the step that made it or the last touch of a grant.
    unsafe { node.as_ref() }
}

fn link_to(node: Pin<&Node>) -> Link {
    Link(Some(NonNull::from(node.get_ref())))
}
