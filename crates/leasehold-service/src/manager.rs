//! The one manager of an entry, shared by all who ask for it.

use std::sync::Arc;

use leasehold::{Namespace, Result};

use crate::{
    entry::Entry,
    executor::Executor,
    kit,
    lock::{Ask, ServiceLock},
};

/// Makes the handles of an entry's resources. Clones, and managers of one entry, are one manager.
#[derive(Clone, Debug)]
pub struct ServiceManager(Arc<Entry>);

impl ServiceManager {
    pub(crate) const fn new(entry: Arc<Entry>) -> Self {
        Self(entry)
    }

    /// The entry's name.
    #[must_use]
    pub fn entry(&self) -> &str {
        &self.0.name
    }

    /// The entry's namespace.
    #[must_use]
    pub fn namespace(&self) -> &Namespace {
        &self.0.namespace
    }

    /// A handle that gives leases: 1 to 512 bytes, any characters.
    ///
    /// # Errors
    /// `InvalidArgument` for a bad name.
    ///
    /// # Fairness
    /// Making a handle acquires nothing; see [`ServiceLock::lock`].
    ///
    /// # Cancel safety
    /// Making a handle acquires nothing.
    ///
    /// # Examples
    /// See [`ServiceLock::lock`].
    pub fn lock(&self, resource: &str) -> Result<ServiceLock> {
        Ok(ServiceLock::of(self.ask(resource)?))
    }

    /// A handle that runs work under a lease, of the same resource as the [`lock`](Self::lock) of
    /// this name.
    ///
    /// # Errors
    /// As [`lock`](Self::lock).
    pub fn executor(&self, resource: &str) -> Result<Executor> {
        Ok(Executor::of(self.ask(resource)?))
    }

    fn ask(&self, resource: &str) -> Result<Ask> {
        let lock = kit::resource(&self.0.namespace, resource)?;
        let (entry, id) = (Arc::clone(&self.0), lock.clone());
        Ok(Ask::new(lock, move |wait, ttl| entry.acquire(&id, wait, ttl)))
    }
}

impl PartialEq for ServiceManager {
    /// Whether both are the one manager of the same entry of the same service.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for ServiceManager {}
