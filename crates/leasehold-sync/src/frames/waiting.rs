//! The record of one wait.

use super::{ask::Ask, chain, graph, hold::Share};
use crate::error::{DeadlockStep, Error};

/// The record of a checked request, from the moment that it is queued. To be dropped, or ended,
/// before the request leaves its queue.
pub(crate) struct Waiting {
    /// 0: not queued.
    id: u64,
    /// The holds around it when it was looked at last. Boxed, for the many that are not queued.
    #[allow(clippy::box_collection, reason = "a thin pointer keeps the future small")]
    holds: Option<Box<Vec<u64>>>,
}

impl Waiting {
    pub(crate) const fn new() -> Self {
        Self { id: 0, holds: None }
    }

    /// Queues the request, which `queue` does and says; false: it was granted on arrival instead.
    ///
    /// An `Err` is the deadlock that it closes (rule R4). It is queued all the same, to be taken
    /// out: if the grant comes first, somebody gave up meanwhile, and there is no deadlock.
    pub(crate) fn arrive(
        &mut self,
        ask: &Ask,
        queue: impl FnOnce() -> bool,
    ) -> Result<bool, Error> {
        debug_assert!(self.id == 0);
        // The request is in its queue and in the graph in one step, so both have the same order,
        // and of two that close a cycle together the second sees the first.
        let mut graph = graph::lock();
        if !queue() {
            return Ok(false);
        }
        let (id, cycle) = graph.wait(ask);
        self.id = id;
        drop(graph);
        self.look(ask);
        self.told(ask, cycle).map(|()| true)
    }

    /// Looks again, at a later poll, at the frames around the request: its future may have been
    /// moved into others. An `Err` as from [`Self::arrive`], or reentrancy; a share if one of those
    /// frames reads the lock. After either the request is to be taken out of its queue.
    pub(crate) fn renew(&mut self, ask: &Ask) -> Result<Option<Share>, Error> {
        if self.id == 0 || !self.moved(ask) {
            return Ok(None);
        }
        match chain::check(ask) {
            Ok(None) => {}
            ended => {
                self.end();
                return ended;
            }
        }
        let cycle = graph::lock().enclose(self.id);
        self.look(ask);
        self.told(ask, cycle).map(|()| None)
    }

    /// It is granted, or about to leave its queue.
    #[inline]
    pub(crate) fn end(&mut self) {
        if self.id != 0 {
            graph::lock().unwait(std::mem::take(&mut self.id));
        }
    }

    fn told(&mut self, ask: &Ask, cycle: Option<Vec<DeadlockStep>>) -> Result<(), Error> {
        let Some(cycle) = cycle else { return Ok(()) };
        self.end();
        Err(Error::deadlock(ask.lock.kind, cycle))
    }

    /// Remembers the holds around it.
    fn look(&mut self, ask: &Ask) {
        let mut holds = Vec::new();
        chain::enclosing(ask.place, |hold| holds.push(hold.published()));
        self.holds = (!holds.is_empty()).then(|| Box::new(holds));
    }

    /// Whether they are others now. A hold that was not published yet is another one.
    fn moved(&self, ask: &Ask) -> bool {
        let (mut same, mut before) = (true, self.holds.iter().flat_map(|holds| holds.iter()));
        chain::enclosing(ask.place, |hold| same &= before.next() == Some(&hold.published()));
        !same || before.next().is_some()
    }
}

impl Drop for Waiting {
    #[inline]
    fn drop(&mut self) {
        self.end();
    }
}
