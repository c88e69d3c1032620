//! Nodes that are linked into rings, in one pool: O(1) for every operation, removal from the middle
//! included (rule Q6), without unsafe code and without an allocation per node.

use slab::Slab;

/// The index of no node.
pub(super) const NIL: u32 = u32::MAX;
/// A pool that has grown beyond this gives its memory back once it is empty.
const KEPT: usize = 64;

/// The pool. A ring is known by the index of its first node, [`NIL`] while it is empty.
pub(super) struct Nodes<T> {
    pool: Slab<Node<T>>,
    linked: usize,
}

struct Node<T> {
    prev: u32,
    next: u32,
    /// Of the first in a ring: how many are in it.
    ring: u32,
    value: T,
}

impl<T> Nodes<T> {
    pub(super) const fn new() -> Self {
        Self { pool: Slab::new(), linked: 0 }
    }

    /// How many nodes there are, in a ring or not.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.pool.len()
    }

    /// How many nodes are in rings.
    #[inline]
    pub(super) const fn linked(&self) -> usize {
        self.linked
    }

    #[inline]
    pub(super) fn get(&self, index: u32) -> &T {
        &self.pool[index as usize].value
    }

    #[inline]
    pub(super) fn get_mut(&mut self, index: u32) -> &mut T {
        &mut self.pool[index as usize].value
    }

    /// Puts a new node behind all of a ring.
    pub(super) fn push_back(&mut self, head: &mut u32, value: T) -> u32 {
        let index = self.pool.insert(Node { prev: NIL, next: NIL, ring: 1, value });
        let index = u32::try_from(index).expect("fewer than 2^32 requests");
        assert!(index < NIL - 1);
        self.linked += 1;
        if *head == NIL {
            self.link(index, index, index);
            *head = index;
        } else {
            let last = self.pool[*head as usize].prev;
            self.link(index, last, *head);
            self.pool[last as usize].next = index;
            let first = &mut self.pool[*head as usize];
            (first.prev, first.ring) = (index, first.ring + 1);
        }
        index
    }

    /// Takes a node out of its ring; it stays in the pool.
    pub(super) fn unlink(&mut self, head: &mut u32, index: u32) {
        let Node { prev, next, .. } = &self.pool[index as usize];
        let (prev, next) = (*prev, *next);
        debug_assert!(prev != NIL && next != NIL, "unlinked twice");
        self.link(index, NIL, NIL);
        self.linked -= 1;
        if next == index {
            *head = NIL;
            return;
        }
        let left = self.ring(*head) - 1;
        self.pool[prev as usize].next = next;
        self.pool[next as usize].prev = prev;
        if *head == index {
            *head = next;
        }
        self.pool[*head as usize].ring = left;
    }

    /// How many are in the ring that begins with `head`.
    pub(super) fn ring(&self, head: u32) -> u32 {
        if head == NIL { 0 } else { self.pool[head as usize].ring }
    }

    /// The node before, in the ring that begins with `head`.
    #[inline]
    pub(super) fn before(&self, head: u32, index: u32) -> Option<&T> {
        (head != index).then(|| self.get(self.pool[index as usize].prev))
    }

    /// The last node of the ring that begins with `head`.
    #[inline]
    pub(super) fn last(&self, head: u32) -> Option<&T> {
        (head != NIL).then(|| self.get(self.pool[head as usize].prev))
    }

    /// Takes a node that is in no ring out of the pool.
    pub(super) fn remove(&mut self, index: u32) -> T {
        let node = self.pool.remove(index as usize);
        debug_assert!(node.prev == NIL && node.next == NIL, "removed while linked");
        if self.pool.is_empty() && self.pool.capacity() > KEPT {
            self.pool = Slab::new();
        }
        node.value
    }

    #[inline]
    fn link(&mut self, index: u32, prev: u32, next: u32) {
        let node = &mut self.pool[index as usize];
        (node.prev, node.next) = (prev, next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_keeps_its_order_whoever_leaves() {
        for leaver in 0..4 {
            let (mut nodes, mut head) = (Nodes::new(), NIL);
            let indices: Vec<u32> = (0..4).map(|n| nodes.push_back(&mut head, n)).collect();
            assert_eq!(nodes.ring(head), 4);
            nodes.unlink(&mut head, indices[leaver]);
            assert_eq!((nodes.remove(indices[leaver]), nodes.ring(head)), (leaver, 3));
            let mut order = Vec::new();
            while head != NIL {
                let first = head;
                assert_eq!(nodes.before(head, first), None);
                nodes.unlink(&mut head, first);
                order.push(nodes.remove(first));
                assert_eq!(nodes.ring(head) as usize, 3 - order.len());
            }
            assert_eq!(order, (0..4).filter(|n| *n != leaver).collect::<Vec<_>>());
        }
    }

    #[test]
    fn an_empty_pool_keeps_little() {
        let (mut nodes, mut head) = (Nodes::new(), NIL);
        let indices: Vec<u32> = (0..10_000).map(|n| nodes.push_back(&mut head, n)).collect();
        for index in indices {
            nodes.unlink(&mut head, index);
            nodes.remove(index);
        }
        assert!(nodes.len() == 0 && nodes.pool.capacity() <= KEPT);
    }
}
