//! Handles of locks by name: they name a lock and hold nothing.

mod mutex;
mod rw_lock;
mod semaphore;

pub use mutex::NamedMutex;
pub use rw_lock::NamedRwLock;
pub use semaphore::NamedSemaphore;

/// What every handle has.
macro_rules! handle {
    ($handle:ident) => {
        impl $handle {
            pub(crate) const fn new(entry: std::sync::Arc<crate::entry::Entry>) -> Self {
                Self(entry)
            }

            /// The lock's name.
            #[must_use]
            pub fn name(&self) -> &leasehold_core::LockName {
                self.0.id.name()
            }

            /// Namespace, kind and name.
            #[must_use]
            pub fn lock_id(&self) -> &leasehold_core::LockId {
                &self.0.id
            }

            /// The lock's holders and waiters, read in one step; `None`: nobody uses it.
            ///
            /// # Errors
            /// `Backend`, `ShutDown`.
            pub async fn inspect(
                &self,
            ) -> leasehold_core::Result<Option<leasehold_core::LockState>> {
                self.0.inspect().await
            }

            /// Rejects every waiter that is queued now, from every process, in the order of the
            /// queue, with `Cancelled { reason }`, and says how many. Holders stay, watchers keep
            /// waiting, the lock stays usable (rule W5).
            ///
            /// # Errors
            /// `Destroyed`, `Backend`, `ShutDown`.
            pub async fn cancel_all(&self, reason: &str) -> leasehold_core::Result<u64> {
                self.0.cancel_all(reason).await
            }

            /// Ends the lock for everybody: waiters get `Cancelled`, watchers complete, leases are
            /// lost and their release does nothing, old handles get `Destroyed`. The name is free
            /// for a new lock, whose fencing tokens go on growing (rule N5). Repeated calls do
            /// nothing.
            ///
            /// # Errors
            /// `Backend`, `ShutDown`.
            pub async fn destroy(&self) -> leasehold_core::Result<()> {
                let reason = format!("{} was destroyed", self.0.id);
                self.0.destroy(&reason).await
            }

            /// Whether the lock was destroyed, as far as this manager knows.
            #[must_use]
            pub fn is_destroyed(&self) -> bool {
                self.0.is_destroyed()
            }

            /// The grant that has this token, without asking the store (rule T9).
            pub fn restore(&self, token: leasehold_core::Token) -> crate::LeaseRef {
                let (core, id) = (&self.0.core, &self.0.id);
                crate::LeaseRef::new(std::sync::Arc::clone(core), std::sync::Arc::clone(id), token)
            }
        }

        impl std::fmt::Debug for $handle {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_tuple(stringify!($handle)).field(&self.0.id).finish()
            }
        }
    };
}
pub(crate) use handle;
