//! What a step does outside of the database, once its transaction has been committed.

use leasehold_core::ClientId;

use crate::{
    members::Members,
    waits::{WaitKey, Waits},
};

/// The clients to wake and the waits that began or ended.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    /// Waiters and watchers of this client, to be woken.
    own: Vec<WaitKey>,
    /// Other clients, to be told to look.
    others: Vec<ClientId>,
    /// Waits that were entered in the step and must not stay if it fails.
    entered: Vec<WaitKey>,
    /// Waits that are over, because they were told or given up.
    over: Vec<WaitKey>,
    /// Dead clients, whose files are to go.
    buried: Vec<ClientId>,
    /// When something may expire that a wait that began here waits for.
    due: Option<i64>,
    /// The beat that was written (rule L4).
    pub(crate) beat: Option<i64>,
}

impl Effects {
    /// Wakes a waiter or watcher of this client.
    pub(crate) fn wake_own(&mut self, key: WaitKey) {
        self.own.push(key);
    }

    /// Tells another client to look, once per step.
    pub(crate) fn poke(&mut self, client: ClientId) {
        if !self.others.contains(&client) {
            self.others.push(client);
        }
    }

    /// Notes a wait that began in this step.
    pub(crate) fn entered(&mut self, key: WaitKey, due: Option<i64>) {
        self.entered.push(key);
        self.due = [self.due, due].into_iter().flatten().min();
    }

    /// Whether a wait began, and when something may expire there.
    pub(crate) fn began(&self) -> Option<Option<i64>> {
        (!self.entered.is_empty()).then_some(self.due)
    }

    /// Notes a dead client whose rows are gone.
    pub(crate) fn buried(&mut self, client: ClientId) {
        self.buried.push(client);
    }

    /// Notes a wait that is over once the step is committed. It is woken too: somebody else may
    /// wait on it than who ended it.
    pub(crate) fn over(&mut self, key: WaitKey) {
        self.over.push(key);
    }

    /// After the commit, outside of every lock of the store.
    pub(crate) fn deliver(self, waits: &Waits, members: &Members) {
        for client in self.others {
            members.poke(client);
        }
        for client in self.buried {
            members.remove(client);
        }
        for key in &self.own {
            if let Some(wake) = waits.take_notice(key) {
                wake.notify();
            }
        }
        for key in &self.over {
            if let Some(wake) = waits.remove(key) {
                wake.notify();
            }
        }
    }

    /// After a failure: nothing has happened.
    pub(crate) fn revert(self, waits: &Waits) {
        for key in &self.entered {
            waits.remove(key);
        }
    }
}
