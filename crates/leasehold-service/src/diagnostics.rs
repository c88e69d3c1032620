//! What goes wrong without a caller to tell it to.

use leasehold::{Error, LockId};

use crate::observe::{self, Label};

/// Something that no caller is told, or that must not replace what the caller is told (rule S6).
///
/// All of them are events and counters too; the sink of
/// [`ServiceBuilder::diagnostics`](crate::ServiceBuilder::diagnostics) gets them as values.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    label: Label,
    what: What,
}

/// The kinds of [`Diagnostic`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum What {
    /// A release failed; the grant may still be there.
    ReleaseFailed {
        /// The resource.
        lock: LockId,
        /// How it failed.
        error: Error,
    },
    /// A lease had ended before it was released.
    Lost {
        /// The resource.
        lock: LockId,
        /// Why.
        error: Error,
    },
    /// A grant came after its caller had left, and was given back.
    LateGrant {
        /// The resource.
        lock: LockId,
    },
    /// A lease was dropped instead of released, and was given back.
    Dropped {
        /// The resource.
        lock: LockId,
    },
    /// An entry did not start.
    StartFailed {
        /// Why.
        error: Error,
    },
    /// An entry did not close.
    CloseFailed {
        /// Why.
        error: Error,
    },
    /// A shutdown did not wait any longer for requests or releases.
    Unsettled {
        /// How many.
        count: usize,
    },
}

impl Diagnostic {
    pub(crate) fn release_failed(label: &Label, lock: LockId, error: Error) -> Self {
        Self { label: label.clone(), what: What::ReleaseFailed { lock, error } }
    }

    pub(crate) fn lost(label: &Label, lock: LockId, error: Error) -> Self {
        Self { label: label.clone(), what: What::Lost { lock, error } }
    }

    pub(crate) fn late_grant(label: &Label, lock: &LockId) -> Self {
        Self { label: label.clone(), what: What::LateGrant { lock: lock.clone() } }
    }

    pub(crate) fn dropped(label: &Label, lock: &LockId) -> Self {
        Self { label: label.clone(), what: What::Dropped { lock: lock.clone() } }
    }

    pub(crate) fn start_failed(label: &Label, error: Error) -> Self {
        Self { label: label.clone(), what: What::StartFailed { error } }
    }

    pub(crate) fn close_failed(label: &Label, error: Error) -> Self {
        Self { label: label.clone(), what: What::CloseFailed { error } }
    }

    pub(crate) fn unsettled(label: &Label, count: usize) -> Self {
        Self { label: label.clone(), what: What::Unsettled { count } }
    }

    /// The entry it happened in.
    #[must_use]
    pub fn entry(&self) -> &str {
        &self.label.entry
    }

    /// What happened.
    #[must_use]
    pub const fn what(&self) -> &What {
        &self.what
    }

    pub(crate) fn observe(&self) {
        let label = &self.label;
        match &self.what {
            What::ReleaseFailed { lock, error } => observe::release_failed(label, lock, error),
            What::Lost { lock, error } => observe::lost(label, lock, error),
            What::LateGrant { lock } => observe::late_grant(label, lock),
            What::Dropped { lock } => observe::dropped(label, lock),
            What::StartFailed { error } => observe::start_failed(label, error),
            What::CloseFailed { error } => observe::close_failed(label, error),
            What::Unsettled { count } => observe::unsettled(label, *count),
        }
    }
}
