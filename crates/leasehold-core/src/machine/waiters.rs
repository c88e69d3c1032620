//! Who is queued, and who was put out of the queue and has not been told yet.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use crate::{
    AttemptId, Binding, ClientId, HolderInfo, LocalTime, Rejection, Share, Token, Ttl, Wake,
    defaults::QUEUE_LIMIT,
};

/// One waiter; the queue keeps it.
pub(super) struct Waiter {
    pub(super) token: Token,
    pub(super) attempt: AttemptId,
    pub(super) client: ClientId,
    pub(super) binding: Binding,
    pub(super) share: Share,
    pub(super) ttl: Option<Ttl>,
    pub(super) info: Arc<HolderInfo>,
    pub(super) wake: Wake,
    pub(super) since: LocalTime,
    /// How many were queued when it came, and how many had ever been granted after a wait.
    pub(super) ahead: u64,
    pub(super) claims_before: u64,
}

/// Why waiters are put out; the text is shared by all of them.
#[derive(Clone)]
pub(super) enum Why {
    Cancelled(Arc<str>),
    Destroyed(Arc<str>),
}

impl From<&Why> for Rejection {
    fn from(why: &Why) -> Self {
        match why {
            Why::Cancelled(reason) => Self::Cancelled { reason: (**reason).to_owned() },
            Why::Destroyed(reason) => Self::Destroyed { reason: (**reason).to_owned() },
        }
    }
}

/// A waiter that was put out.
pub(super) struct Rejected {
    pub(super) attempt: AttemptId,
    pub(super) client: ClientId,
    pub(super) wake: Wake,
    pub(super) why: Why,
}

/// The rejections that wait to be told, each once. A client that is alive asks, one that is dead is
/// forgotten, so few stay; beyond the limit of the queue itself the oldest is forgotten.
#[derive(Default)]
pub(super) struct Rejections {
    by_token: HashMap<Token, (u64, Rejected)>,
    by_age: BTreeMap<u64, Token>,
    next: u64,
}

impl Rejections {
    pub(super) fn is_empty(&self) -> bool {
        self.by_age.is_empty()
    }

    pub(super) fn push(&mut self, token: Token, rejected: Rejected) {
        if self.by_age.len() as u64 >= QUEUE_LIMIT
            && let Some((_, oldest)) = self.by_age.pop_first()
        {
            self.by_token.remove(&oldest);
        }
        self.next += 1;
        self.by_age.insert(self.next, token.clone());
        let before = self.by_token.insert(token, (self.next, rejected));
        assert!(before.is_none(), "a token that is still to be told is refused (rule T5)");
    }

    pub(super) fn get(&self, token: &Token) -> Option<&Rejected> {
        self.by_token.get(token).map(|(_, rejected)| rejected)
    }

    pub(super) fn take(&mut self, token: &Token) -> Option<Rejected> {
        let (age, rejected) = self.by_token.remove(token)?;
        self.by_age.remove(&age);
        if self.by_age.is_empty() {
            // A crowd that has been told leaves no memory behind.
            self.by_token = HashMap::new();
        }
        Some(rejected)
    }

    /// Forgets what one client would have been told, and hands over its wakes.
    pub(super) fn forget(&mut self, client: ClientId, mut wake: impl FnMut(Wake)) {
        let theirs: Vec<Token> = self
            .by_token
            .iter()
            .filter(|(_, (_, rejected))| rejected.client == client)
            .map(|(token, _)| token.clone())
            .collect();
        for token in &theirs {
            if let Some(rejected) = self.take(token) {
                wake(rejected.wake);
            }
        }
    }
}
