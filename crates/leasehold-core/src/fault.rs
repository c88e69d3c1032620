//! What goes wrong in a store, as opposed to what a lock answers.

use std::{fmt, sync::Arc};

/// Why a store could not do what was asked.
#[derive(Clone, Debug)]
pub struct Fault {
    kind: FaultKind,
    message: String,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

/// The kinds of [`Fault`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultKind {
    /// The store cannot be reached or does not answer now; the same request may work later.
    Unavailable,
    /// The store is full (disk, memory); the same request may work later.
    Full,
    /// The store is damaged or is no store.
    Corrupt,
    /// The store was written by another version of the layout (rule L9).
    Layout,
    /// The place of the store is not safe or not fit to be one.
    Unsafe,
    /// The store refused: rights, read-only, authentication.
    Denied,
    /// The request is not possible on this store or in this state of the client.
    Unsupported,
    /// The client was closed.
    Closed,
}

impl Fault {
    /// A fault of this kind; `message` names the thing (file, server) and never a secret.
    pub fn new(kind: FaultKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// The same with what caused it.
    #[must_use]
    pub fn with_source(
        mut self,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        self.source = Some(source.into().into());
        self
    }

    /// The kind.
    #[must_use]
    pub const fn kind(&self) -> FaultKind {
        self.kind
    }

    /// Whether the same request may work later.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        matches!(self.kind, FaultKind::Unavailable | FaultKind::Full)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Fault {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
