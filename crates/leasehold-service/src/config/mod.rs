//! What locks a service has: `default`, and entries by name (rule S1).

mod check;
mod load;
mod problem;
mod resolve;
mod settings;
mod tree;

use std::fmt;

use serde::{Deserialize, Deserializer};

pub(crate) use check::{Checked, check};
pub use load::{DEFAULT_VARIABLE, ENTRY_VARIABLE_PREFIX, Sources, load};
pub use problem::{ConfigError, Problem};
pub use settings::{Secret, Settings};

use tree::{Origin, Table, Tree};

/// A configuration of a [`LockService`](crate::LockService), not checked yet:
/// [`boot`](crate::ServiceBuilder::boot) checks it and tells everything that is wrong at once.
///
/// It comes from [`load`], from [`Sources`], from any serde format as a part of a larger
/// configuration, or from code:
///
/// ```
/// use leasehold_service::{EntryConfig, ServiceConfig};
///
/// let config = ServiceConfig::new()
///     .with_default("jobs")
///     .entry("jobs", EntryConfig::new("memory").namespace("shop-jobs").ttl_ms(5_000));
/// # let _ = config;
/// ```
///
/// `Debug` shows neither what stands in a `connection` nor what came from a variable.
#[derive(Clone)]
pub struct ServiceConfig {
    root: Tree,
    /// Variables that were not found.
    problems: Vec<Problem>,
}

impl ServiceConfig {
    /// No fields: the entry `local` with the adapter `mutex`, which is the default one.
    #[must_use]
    pub const fn new() -> Self {
        Self::of(Tree::Table(Table::new()))
    }

    pub(crate) const fn of(root: Tree) -> Self {
        Self { root, problems: Vec::new() }
    }

    /// Selects the default entry.
    #[must_use]
    pub fn with_default(mut self, name: impl Into<String>) -> Self {
        self.insert("default", Tree::Text(name.into(), Origin::Literal));
        self
    }

    /// Adds an entry, or replaces the one of this name.
    #[must_use]
    pub fn entry(mut self, name: impl Into<String>, entry: EntryConfig) -> Self {
        if let Tree::Table(root) = &mut self.root {
            let entries = root.entry("entries".into()).or_insert_with(|| Tree::Table(Table::new()));
            if let Tree::Table(entries) = entries {
                entries.insert(name.into(), Tree::Table(entry.0));
            }
        }
        self
    }

    /// Resolves variables in texts that came through serde; [`load`] and [`Sources`] have done it.
    /// A variable that is not set stands in the list of mistakes that boot gives.
    #[must_use]
    pub fn resolved(mut self) -> Self {
        self.resolve_with(&|name| {
            Some(std::env::var_os(name)?.into_string().map_err(|_| resolve::NotText))
        });
        self
    }

    pub(crate) fn resolve_with(&mut self, variable: &resolve::Variable<'_>) {
        resolve::resolve(&mut self.root, "", variable, &mut self.problems);
    }

    fn insert(&mut self, name: &str, value: Tree) {
        if let Tree::Table(root) = &mut self.root {
            root.insert(name.into(), value);
        }
    }
}

impl Default for ServiceConfig {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ServiceConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServiceConfig {:?}", self.root)
    }
}

impl<'de> Deserialize<'de> for ServiceConfig {
    /// Takes any fields: boot tells which are wrong, all at once.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Tree::deserialize(deserializer).map(Self::of)
    }
}

/// One entry of a [`ServiceConfig`] made in code.
#[derive(Clone)]
pub struct EntryConfig(Table);

impl EntryConfig {
    /// An entry with this adapter: `mutex`, `memory`, `sqlite`, `redis`, or one that the builder of
    /// the service was given.
    pub fn new(adapter: impl Into<String>) -> Self {
        Self(Table::new()).with("adapter", Tree::Text(adapter.into(), Origin::Literal))
    }

    /// Keeps its locks apart from those of others on one store. Default: the application's name.
    #[must_use]
    pub fn namespace(self, namespace: impl Into<String>) -> Self {
        self.with("namespace", Tree::Text(namespace.into(), Origin::Literal))
    }

    /// How long a grant outlives a process that is gone, in milliseconds, 1 ..= 2^31−1; renewed
    /// while it is held. The adapter `mutex` ignores it. Default: 60,000.
    #[must_use]
    pub fn ttl_ms(self, ttl: i64) -> Self {
        self.with("ttl", Tree::Whole(ttl.into()))
    }

    /// Whether the entry can be used. Default: true.
    #[must_use]
    pub fn enabled(self, enabled: bool) -> Self {
        self.with("enabled", Tree::Flag(enabled))
    }

    /// One text of the adapter's `connection`.
    #[must_use]
    pub fn connection(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        let inner = self.0.entry("connection".into()).or_insert_with(|| Tree::Table(Table::new()));
        if let Tree::Table(inner) = inner {
            inner.insert(name.into(), Tree::Text(value.into(), Origin::Literal));
        }
        self
    }

    fn with(mut self, name: &str, value: Tree) -> Self {
        self.0.insert(name.into(), value);
        self
    }
}

impl fmt::Debug for EntryConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EntryConfig {:?}", Tree::Table(self.0.clone()))
    }
}
