//! Rules K1 and K2 word by word, slow and obvious: what a keyed lock has to agree with.

pub(crate) type Id = u32;

/// A request for a key, or for the whole set if there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) id: Id,
    pub(crate) key: Option<u32>,
    pub(crate) writes: bool,
}

#[derive(Default)]
pub(crate) struct Model {
    pub(crate) holders: Vec<Request>,
    pub(crate) queue: Vec<Request>,
}

/// K1.
pub(crate) fn conflict(one: Request, other: Request) -> bool {
    let writes = one.writes || other.writes;
    match (one.key, other.key) {
        // A whole-set write conflicts with everything; a whole-set read with every write.
        (None, _) | (_, None) => writes,
        // Two keyed requests iff same key and at least one writes.
        (Some(one), Some(other)) => one == other && writes,
    }
}

impl Model {
    /// K2: granted on arrival iff it conflicts with no holder and with no queued request.
    pub(crate) fn arrive(&mut self, request: Request, may_wait: bool) -> bool {
        let granted =
            !self.holders.iter().chain(&self.queue).any(|&other| conflict(request, other));
        if granted {
            self.holders.push(request);
        } else if may_wait {
            self.queue.push(request);
        }
        granted
    }

    /// A holder ends. Gives who is granted by that.
    pub(crate) fn release(&mut self, id: Id) -> Vec<Id> {
        let before = self.holders.len();
        self.holders.retain(|holder| holder.id != id);
        assert_eq!(self.holders.len() + 1, before);
        self.settle()
    }

    /// A waiter leaves. Gives who is granted by that.
    pub(crate) fn cancel(&mut self, id: Id) -> Vec<Id> {
        let before = self.queue.len();
        self.queue.retain(|waiter| waiter.id != id);
        assert_eq!(self.queue.len() + 1, before);
        self.settle()
    }

    /// How many keys are held or waited for.
    pub(crate) fn keys(&self) -> usize {
        let mut keys: Vec<u32> =
            self.holders.iter().chain(&self.queue).filter_map(|request| request.key).collect();
        keys.sort_unstable();
        keys.dedup();
        keys.len()
    }

    /// Grants, in the order of arrival, whoever conflicts with no holder and nobody before it.
    fn settle(&mut self) -> Vec<Id> {
        let (mut granted, mut waiting) = (Vec::new(), Vec::new());
        for waiter in std::mem::take(&mut self.queue) {
            if self.holders.iter().chain(&waiting).any(|&other| conflict(waiter, other)) {
                waiting.push(waiter);
            } else {
                self.holders.push(waiter);
                granted.push(waiter.id);
            }
        }
        self.queue = waiting;
        granted
    }
}
