//! The whole-set requests of a table, and the keyed ones that stand behind them (rule K2).
//!
//! There are two *gates*, one for keyed reads and one for keyed writes: queues in the order of
//! arrival. A whole-set write stands in both and a whole-set read in the gate of the writes, from
//! its arrival to its end. A keyed request joins the gate of its access iff that is not empty, and
//! leaves it as soon as no whole-set request stands before it. So the head of a gate is always a
//! whole-set request, and every request is moved at most once.
//!
//! A whole-set request waits for whatever conflicts with it and came before it. Keyed requests that
//! came before and are in no gate are counted by access, `live`; in a gate they are those that
//! stand before it, and only its neighbour needs to be looked at: whoever stands further ahead
//! stands ahead of that neighbour too. Whole-set requests are granted in their order.

use std::{num::NonZeroU32, task::Waker};

use super::{
    ask::Access,
    nodes::{NIL, Nodes},
    shard::Arrival,
    wakers::Wakers,
};

pub(super) struct Whole {
    gates: [u32; 2],
    nodes: Nodes<Gated>,
    /// The first whole-set request that is not granted.
    queue: u32,
    requests: Nodes<Request>,
    /// Keyed requests in no gate, held or queued. Kept while there is a whole-set request.
    live: [u64; 2],
}

#[derive(Clone, Copy)]
enum Gated {
    Whole(Access),
    Keyed(Waiting),
}

/// Where a keyed waiter is.
#[derive(Clone, Copy)]
pub(super) struct Waiting {
    pub(super) shard: u32,
    pub(super) waiter: u32,
}

struct Request {
    access: Access,
    granted: bool,
    /// Its nodes in the gates.
    gates: [u32; 2],
    waker: Option<Waker>,
}

impl Whole {
    pub(super) const fn new() -> Self {
        Self {
            gates: [NIL; 2],
            nodes: Nodes::new(),
            queue: NIL,
            requests: Nodes::new(),
            live: [0; 2],
        }
    }

    /// Whether there is a whole-set request, held or queued.
    pub(super) fn is_gating(&self) -> bool {
        self.requests.len() > 0
    }

    /// How many wait, or hold.
    pub(super) fn len(&self) -> usize {
        self.requests.len()
    }

    /// How many wait.
    pub(super) fn queued(&self) -> u32 {
        self.requests.ring(self.queue)
    }

    /// Whether an arriving keyed request has to stand in a gate.
    pub(super) const fn holds_up(&self, access: Access) -> bool {
        self.gates[access as usize] != NIL
    }

    /// A keyed waiter joins the gate. Gives its node.
    pub(super) fn hold_up(&mut self, access: Access, waiting: Waiting) -> u32 {
        self.nodes.push_back(&mut self.gates[access as usize], Gated::Keyed(waiting))
    }

    /// A keyed waiter gives up and leaves its gate.
    pub(super) fn let_go(&mut self, access: Access, gate: u32) {
        self.nodes.unlink(&mut self.gates[access as usize], gate);
        self.nodes.remove(gate);
    }

    /// The next keyed waiter that no whole-set request stands before.
    pub(super) fn pass(&mut self, access: Access) -> Option<Waiting> {
        let head = &mut self.gates[access as usize];
        if *head == NIL {
            return None;
        }
        let Gated::Keyed(waiting) = *self.nodes.get(*head) else { return None };
        let passed = *head;
        self.nodes.unlink(head, passed);
        self.nodes.remove(passed);
        Some(waiting)
    }

    pub(super) const fn count(&mut self, access: Access) {
        self.live[access as usize] += 1;
    }

    pub(super) const fn uncount(&mut self, access: Access) {
        self.live[access as usize] -= 1;
    }

    /// Counts anew, before the first whole-set request.
    pub(super) const fn set_live(&mut self, live: [u64; 2]) {
        self.live = live;
    }

    /// Whether a request would be granted on arrival. Nobody overtakes a whole-set request that
    /// waits: what is in its way, or itself, is in the way of every later one.
    pub(super) fn admits(&self, access: Access) -> bool {
        let last = self.nodes.last(self.gates[Access::Write as usize]);
        self.queue == NIL && self.fits(access, last)
    }

    /// Grants the request, or queues it. `live` is right.
    pub(super) fn arrive(&mut self, access: Access, waker: &mut Option<Waker>) -> Arrival {
        let granted = self.admits(access);
        let waker = if granted { None } else { waker.take() };
        let request = Request { access, granted, gates: [NIL; 2], waker };
        let index = self.requests.push_back(&mut self.queue, request);
        for held_up in [Access::Read, Access::Write] {
            if access.conflicts(held_up) {
                let head = &mut self.gates[held_up as usize];
                let gate = self.nodes.push_back(head, Gated::Whole(access));
                self.requests.get_mut(index).gates[held_up as usize] = gate;
            }
        }
        if !granted {
            return Arrival::Queued(index);
        }
        self.requests.unlink(&mut self.queue, index);
        Arrival::Granted(id_of(index))
    }

    pub(super) fn is_granted(&self, request: u32) -> bool {
        self.requests.get(request).granted
    }

    /// Whether that request wakes that task.
    pub(super) fn wakes(&self, request: u32, waker: &Waker) -> bool {
        self.requests.get(request).waker.as_ref().is_some_and(|own| own.will_wake(waker))
    }

    /// Lets a queued request wake another task. Gives the waker that it replaces.
    pub(super) fn renew(&mut self, request: u32, waker: Option<Waker>) -> Option<Waker> {
        std::mem::replace(&mut self.requests.get_mut(request).waker, waker)
    }

    /// The end of a request, held or queued. Afterwards keyed waiters may pass.
    pub(super) fn end(&mut self, request: u32) -> Option<Waker> {
        if !self.requests.get(request).granted {
            self.requests.unlink(&mut self.queue, request);
        }
        let ended = self.requests.remove(request);
        for (head, gate) in self.gates.iter_mut().zip(ended.gates) {
            if gate != NIL {
                self.nodes.unlink(head, gate);
                self.nodes.remove(gate);
            }
        }
        ended.waker
    }

    /// Grants from the head until the head does not fit.
    pub(super) fn settle(&mut self, wakers: &mut Wakers) {
        while self.queue != NIL {
            let head = self.queue;
            let Request { access, gates, .. } = self.requests.get(head);
            let (access, gates) = (*access, *gates);
            let write = Access::Write as usize;
            let before = self.nodes.before(self.gates[write], gates[write]);
            if !self.fits(access, before) {
                return;
            }
            let request = self.requests.get_mut(head);
            request.granted = true;
            wakers.push(request.waker.take());
            self.requests.unlink(&mut self.queue, head);
        }
    }

    /// Whether the first one that is not granted may be: `before` stands before it in the gate of
    /// the writes. A whole-set request there is granted, and so nothing conflicts with it.
    const fn fits(&self, access: Access, before: Option<&Gated>) -> bool {
        let [reads, writes] = self.live;
        match access {
            Access::Read => {
                writes == 0 && matches!(before, None | Some(Gated::Whole(Access::Read)))
            }
            Access::Write => writes == 0 && reads == 0 && before.is_none(),
        }
    }
}

/// The id of a whole-set request, as its grant has it.
pub(super) const fn id_of(request: u32) -> NonZeroU32 {
    NonZeroU32::MIN.saturating_add(request)
}

/// The index of a whole-set request.
pub(super) const fn index_of(id: NonZeroU32) -> u32 {
    id.get() - 1
}
