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
        }

        impl std::fmt::Debug for $handle {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_tuple(stringify!($handle)).field(&self.0.id).finish()
            }
        }
    };
}
pub(crate) use handle;
