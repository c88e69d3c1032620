//! What ends more than one grant or wait at once: `cancel_all`, `destroy`, the end of a client.

use std::collections::HashMap;

use leasehold_queue::WaiterKey;

use super::{
    grants::Grants,
    lock::Lock,
    step::Step,
    waiters::{Rejected, Why},
};
use crate::{
    Binding, ClientId, Destroyed, Generation, Token, Wake, WatchFor, Watched,
    defaults::DESTROYED_RETENTION,
};

impl Lock {
    /// See [`Backend::cancel_all`](crate::Backend::cancel_all).
    pub(super) fn cancel_all(&mut self, reason: &str, step: &mut Step<'_>) -> u64 {
        self.reject_all(&Why::Cancelled(reason.into()), step)
    }

    /// See [`Backend::destroy`](crate::Backend::destroy).
    pub(super) fn destroy(
        &mut self,
        generation: Option<Generation>,
        reason: &str,
        step: &mut Step<'_>,
    ) -> Destroyed {
        let ended = generation.unwrap_or(self.generation);
        if ended < self.generation {
            return Destroyed::Before;
        }
        let why = Why::Destroyed(reason.into());
        self.reject_all(&why, step);
        self.reject_claims(&why);
        self.book.grants = Grants::new();
        self.queue.set_used(0).expect("nobody is queued any more");
        self.registered = None;
        if let Some(watchers) = &mut self.watchers {
            watchers.fire(|_| true, |wake| step.wake(wake));
        }
        self.generation = Generation(ended.0.saturating_add(1));
        self.remembered_until = Some(step.now().after(DESTROYED_RETENTION));
        Destroyed::Now { next: self.generation }
    }

    /// Puts everybody out of the queue, in queue order.
    fn reject_all(&mut self, why: &Why, step: &mut Step<'_>) -> u64 {
        let count = self.queued();
        let rejections = &mut self.rejections;
        self.queue.drain_waiters(|_, _, waiter| {
            step.left = true;
            step.wake(waiter.wake.clone());
            let (attempt, client, wake) = (waiter.attempt, waiter.client, waiter.wake);
            rejections.push(waiter.token, Rejected { attempt, client, wake, why: why.clone() });
        });
        self.book.queued = HashMap::new();
        count
    }

    /// A waiter that was granted and has not seen it yet is still a waiter to its caller, and is told
    /// like one. Its flag was set with the grant.
    fn reject_claims(&mut self, why: &Why) {
        let claimed: Vec<_> = self
            .book
            .grants
            .iter()
            .filter(|holder| holder.claimed)
            .map(|holder| (holder.token.clone(), holder.attempt, holder.client))
            .collect();
        for (token, attempt, client) in claimed {
            let wake = Wake::new();
            wake.notify();
            self.rejections.push(token, Rejected { attempt, client, wake, why: why.clone() });
        }
    }

    /// Ends what is bound to a client (rules N6, N7, T8). Grants bound to their token stay. Who
    /// still polls a wake of the client is woken, to find it closed.
    pub(super) fn forget_client(&mut self, client: ClientId, step: &mut Step<'_>) {
        let queued: Vec<WaiterKey> = self
            .queue
            .iter()
            .filter(|(_, _, waiter)| waiter.client == client)
            .map(|(key, ..)| key)
            .collect();
        // From the tail: so that the head leaves last, and nobody of this client is granted on
        // the way.
        for key in queued.into_iter().rev() {
            let waiter = self.take_out(key, step);
            step.wake(waiter.wake);
        }
        let theirs = |binding, owner| binding == Binding::Client && owner == client;
        let held: Vec<Token> = self
            .book
            .grants
            .iter()
            .filter(|holder| theirs(holder.binding, holder.client))
            .map(|holder| holder.token.clone())
            .collect();
        for token in &held {
            self.end(token, step);
        }
        self.rejections.forget(client, |wake| step.wake(wake));
        if let Some(watchers) = &mut self.watchers {
            watchers.forget(client, |wake| step.wake(wake));
        }
        step.left = true;
    }

    /// See [`Backend::watch`](crate::Backend::watch).
    pub(super) fn watch(
        &mut self,
        generation: Option<Generation>,
        id: &Token,
        what: WatchFor,
        client: ClientId,
    ) -> Watched {
        if let Some(watchers) = &mut self.watchers {
            if watchers.tell(id) {
                return Watched::Done;
            }
            if let Some(wake) = watchers.find(id) {
                return Watched::Waiting(wake);
            }
        }
        if generation.is_some_and(|generation| generation < self.generation) {
            return Watched::Destroyed;
        }
        if self.holds(what) {
            return Watched::Done;
        }
        if !self.in_use() {
            // The capacity of a use that is over shall not come back with a watcher.
            self.registered = None;
        }
        Watched::Waiting(self.watchers.get_or_insert_default().add(id.clone(), client, what))
    }

    /// See [`Backend::unwatch`](crate::Backend::unwatch).
    pub(super) fn unwatch(&mut self, id: &Token, step: &mut Step<'_>) {
        if let Some(watchers) = &mut self.watchers {
            step.left |= watchers.remove(id);
        }
    }
}
