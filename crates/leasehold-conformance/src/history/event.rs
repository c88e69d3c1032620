//! What a history is made of: one event of one process, as one line of JSON in its log.

use leasehold_core::{HolderState, LockKind, Token, WaiterState};
use serde::{Deserialize, Serialize};

/// Something that happened, when, and to which process of the history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// On the boot-time clock of the machine, which all processes share, in microseconds.
    pub at_us: u64,
    /// The number of the process in this history; numbers are not used twice.
    pub process: u32,
    /// What happened.
    #[serde(flatten)]
    pub what: What,
}

/// Names one acquisition of a history: the number of its process and the short id of its token,
/// which is what a store shows to others (rule T5).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Id(pub String);

impl Id {
    /// The acquisition that a process makes with this token.
    #[must_use]
    pub fn new(process: u32, token: &Token) -> Self {
        Self(format!("{process}/{}", token.short_id()))
    }

    /// The acquisition behind a waiter, when it is one of the history.
    #[must_use]
    pub fn of_waiter(waiter: &WaiterState) -> Option<Self> {
        waiter.info.label().map(|label| Self(format!("{label}/{}", waiter.short_id)))
    }

    /// The acquisition behind a grant, when it is one of the history.
    #[must_use]
    pub fn of_holder(holder: &HolderState) -> Option<Self> {
        holder.info.label().map(|label| Self(format!("{label}/{}", holder.short_id)))
    }
}

impl std::fmt::Display for Id {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// What may happen. Requests are logged before they are sent, answers after they came, so that a
/// killed process leaves what it may have asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum What {
    /// The process has its client of the store.
    Started,
    /// The process has ended in good order; nothing of it comes after this.
    Ended,
    /// The process is about to be stopped.
    Stopped {
        /// What it was doing, as the store saw it.
        doing: Doing,
    },
    /// The process is about to be continued.
    Continued,
    /// The process is about to be killed; it is dead when the next event of its killer comes.
    Killed {
        /// What it was doing, as the store saw it.
        doing: Doing,
    },
    /// An acquisition is about to be sent.
    Asked {
        /// The acquisition.
        id: Id,
        /// The lock.
        lock: String,
        /// Its kind.
        kind: LockKind,
        /// Its capacity.
        capacity: u32,
        /// How many permits are asked for; a write asks for all.
        weight: u32,
        /// The TTL of the grant.
        ttl_us: Option<u64>,
    },
    /// The acquisition is in the queue.
    Queued {
        /// The acquisition.
        id: Id,
        /// How many waiters the store says were ahead.
        ahead: Option<u64>,
    },
    /// The acquisition is granted.
    Granted {
        /// The acquisition.
        id: Id,
        /// When the request was sent that this answers.
        sent_us: u64,
        /// The fencing token.
        fencing: u64,
        /// What was left of the TTL.
        left_us: Option<u64>,
        /// Whether it is out of the queue: a hand-off.
        waited: bool,
    },
    /// The acquisition was refused: busy, or for another reason. Nothing of it is in the store.
    Refused {
        /// The acquisition.
        id: Id,
    },
    /// The waiter saw that it was granted and has not confirmed.
    Claimed {
        /// The acquisition.
        id: Id,
    },
    /// The waiter asked too late: the store does not know it any more.
    Missed {
        /// The acquisition.
        id: Id,
    },
    /// The waiter was rejected by the store.
    Rejected {
        /// The acquisition.
        id: Id,
    },
    /// The waiter's caller got no lease.
    GaveUp {
        /// The acquisition.
        id: Id,
        /// Why.
        why: GaveUp,
    },
    /// The grant was renewed.
    Renewed {
        /// The acquisition.
        id: Id,
        /// When the request was sent that this answers.
        sent_us: u64,
        /// What was left of the TTL.
        left_us: Option<u64>,
    },
    /// A renewal found the grant gone.
    Lapsed {
        /// The acquisition.
        id: Id,
    },
    /// The critical section begins.
    Entered {
        /// The acquisition.
        id: Id,
    },
    /// The holder knows that its lease is lost.
    Lost {
        /// The acquisition.
        id: Id,
    },
    /// The critical section wrote to the storage that checks fencing tokens.
    Stored {
        /// The acquisition.
        id: Id,
        /// Whether the storage took it.
        accepted: bool,
    },
    /// The critical section ends.
    Left {
        /// The acquisition.
        id: Id,
    },
    /// A release is about to be sent: of a grant, or of a waiter that leaves.
    Releasing {
        /// The acquisition.
        id: Id,
    },
    /// The release is answered.
    Released {
        /// The acquisition.
        id: Id,
        /// What it found.
        found: Found,
    },
    /// The acquisition is about to be dropped, without an answer.
    Abandoned {
        /// The acquisition.
        id: Id,
    },
    /// The store's queue of a lock, in its order.
    Seen {
        /// The lock.
        lock: String,
        /// When the question was sent.
        sent_us: u64,
        /// Who waits.
        waiters: Vec<Id>,
    },
    /// The store's clock was stepped, and goes by its new time now.
    Stepped {
        /// When the step began.
        from_us: u64,
    },
    /// A replica is the store now.
    FailedOver {
        /// What was answered before this, the replica had.
        since_us: u64,
        /// Before this the replica answered nothing.
        from_us: u64,
        /// After this the server before it answered nothing.
        until_us: u64,
    },
    /// The store answered a request with a fault.
    Failed {
        /// The fault's message.
        fault: String,
    },
}

/// What a process was doing when it was stopped or killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Doing {
    /// It was inside a critical section.
    Holding,
    /// It was in the queue.
    Queued,
    /// It was granted out of the queue and had not confirmed.
    Claimed,
    /// Nobody looked.
    Anything,
}

/// What a release found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Found {
    /// A grant, which it gave back.
    Holder,
    /// A waiter, which it took out.
    Waiter,
    /// Nothing.
    Nothing,
}

/// Why a caller got no lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GaveUp {
    /// Its time was over.
    TimedOut,
    /// It was cancelled.
    Cancelled,
    /// Its future was dropped.
    Dropped,
    /// The store failed.
    Failed,
}
