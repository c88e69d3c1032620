//! A grant in the caller's hands.

use std::{fmt, sync::Arc};

use leasehold::{Error, FencingToken, LockId, Result};

use crate::{
    diagnostics::Diagnostic,
    kit::{Record, drive},
};

/// Proof of holding a resource. Dropping it gives the grant back, and tells the diagnostics that it
/// was not released.
///
/// # Cancel safety
/// Dropping it at any point is safe. [`release`](Self::release) waits for the store's answer.
#[must_use = "dropping a lease gives the grant back"]
pub struct ServiceLease(Arc<Record>);

impl ServiceLease {
    pub(crate) const fn new(record: Arc<Record>) -> Self {
        Self(record)
    }

    pub(crate) const fn record(&self) -> &Arc<Record> {
        &self.0
    }

    /// The resource.
    #[must_use]
    pub fn resource(&self) -> &LockId {
        &self.0.lock
    }

    /// Grows with every grant of the resource: storage that must not be written by a stale holder
    /// rejects one that is smaller than the largest it has seen. `None`: the adapter has none.
    #[must_use]
    pub fn fencing_token(&self) -> Option<FencingToken> {
        self.0.grant.fencing_token()
    }

    /// Whether the grant is still alive, as well as it is known here without asking the store.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.0.is_held()
    }

    /// Completes when the lease is lost, with the reason; a shutdown of the service is one. It does
    /// not complete for a lease that was released in good order.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing; several may wait.
    pub async fn lost(&self) -> Error {
        self.0.lost().await
    }

    /// Gives the grant back and says whether it was still alive. Concurrent calls share one result,
    /// repeated calls repeat it, and after a failure it can be called again, until the service is
    /// shut down (acceptance N29).
    ///
    /// # Cancel safety
    /// A release that was begun and left is finished by the next call, or by the drop.
    ///
    /// # Errors
    /// `Backend`.
    pub async fn release(&self) -> Result<bool> {
        self.0.release().await
    }
}

impl Drop for ServiceLease {
    fn drop(&mut self) {
        let Some(registry) = self.0.registry.upgrade() else { return };
        if !self.0.is_released() {
            registry.context.report(Diagnostic::dropped(&registry.label, &self.0.lock));
        } else if self.0.release_failed() && registry.is_over() {
            return;
        }
        // One that is under way is driven to its end, one that failed is tried once more.
        drive(&registry.context, self.0.release());
    }
}

impl fmt::Debug for ServiceLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceLease")
            .field("resource", self.resource())
            .field("held", &self.is_held())
            .finish()
    }
}
