//! The parts an adapter's life is built from (rule S8): for authors of adapters, and for those who
//! build a manager of their own.
//!
//! - [`resource_key`]: a printable, injective key for (namespace, resource).
//! - [`LeaseRegistry`]: knows every grant from the moment it is made, and ends them all.
//! - [`LeaseRegistry::acquire`]: a request with its clean-up: what the caller gets ([`Acquiring`]) and
//!   what goes on if the caller leaves ([`Completion`]).
//! - [`ServiceLock::new`](crate::ServiceLock::new) and [`Executor::new`](crate::Executor::new): the
//!   handles, made of anything that begins acquisitions.
//!
//! A service does all this around an [`Instance`](crate::adapter::Instance); one that implements that
//! trait needs nothing else of the kit than the key.

mod acquisition;
mod context;
mod flag;
mod guarded;
mod record;
mod registry;
mod shared_op;

use leasehold::{InvalidArgument, LockId, LockKind, LockName, Namespace};

pub use acquisition::{Acquiring, Acquisition, Completion};
pub use context::{Context, Spawn};
pub use flag::Interrupt;
pub use registry::LeaseRegistry;

pub(crate) use acquisition::Cancel;
pub(crate) use context::{drive, within};
pub(crate) use flag::Flag;
pub(crate) use guarded::guarded;
pub(crate) use record::Record;
pub(crate) use shared_op::SharedOp;

/// The resource as a lock: what messages name, with [`LockId::key`] for stores.
///
/// # Errors
/// `InvalidArgument` for an empty name and for one of more than 512 bytes.
pub fn resource(namespace: &Namespace, name: &str) -> Result<LockId, InvalidArgument> {
    Ok(LockId::new(namespace.clone(), LockKind::Mutex, LockName::new(name)?))
}

/// A key for stores: printable ASCII, injective over (namespace, name) (acceptance N39). Letters,
/// digits, `-`, `_` and `.` stand for themselves, every other byte is `%XX`, parts are joined by `/`.
///
/// # Errors
/// As [`resource`].
///
/// # Examples
/// ```
/// use leasehold_service::{Namespace, kit::resource_key};
///
/// let shop = Namespace::new("shop")?;
/// assert_eq!(resource_key(&shop, "orders:sync")?, "shop/mutex/orders%3Async");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn resource_key(namespace: &Namespace, name: &str) -> Result<String, InvalidArgument> {
    Ok(resource(namespace, name)?.key().into())
}
