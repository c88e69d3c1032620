//! From a URL to a store.

use std::sync::Arc;

use leasehold_core::{Backend, Error, InvalidArgument, MemoryBackend, Result};

use crate::LockManager;

/// Opens the store that `url` names and makes a manager on it, with the defaults.
///
/// - `memory:` is a store of this manager alone.
/// - `sqlite:PATH` is shared by all processes of this machine (feature `sqlite`); `PATH` may be
///   relative or absolute, and `%XX` stands for a byte.
///
/// # Errors
/// `InvalidArgument` for any other URL; `Backend` when the store cannot be opened.
///
/// # Examples
/// ```
/// # pollster::block_on(async {
/// let locks = leasehold::connect("memory:").await?;
/// let answer = locks.mutex("orders")?.run_exclusive(async |_lease| 6 * 7).await?;
/// assert_eq!(answer, 42);
/// # Ok::<(), leasehold::Error>(()) }).unwrap();
/// ```
pub async fn connect(url: &str) -> Result<LockManager> {
    LockManager::builder().connect(url).await
}

pub(crate) fn open(url: &str) -> Result<Arc<dyn Backend>> {
    let scheme = url.split_once(':').map(|(scheme, _)| scheme);
    match scheme {
        Some("memory") if url == "memory:" => Ok(Arc::new(MemoryBackend::new())),
        #[cfg(feature = "sqlite")]
        Some("sqlite") => match leasehold_sqlite::SqliteBackend::from_url(url) {
            Ok(backend) => Ok(Arc::new(backend)),
            Err(fault) => Err(Error::from_fault(fault, leasehold_core::Operation::Connect)),
        },
        #[cfg(not(feature = "sqlite"))]
        Some("sqlite") => Err(invalid("the store sqlite: needs the feature `sqlite`")),
        Some("memory") => Err(invalid("memory: takes nothing after the colon")),
        // The rest of the URL is not repeated: it may hold a password.
        Some(other) => {
            Err(invalid(format!("no store is called {other:?}; there are memory: and sqlite:PATH")))
        }
        None => Err(invalid("a store's URL begins with memory: or sqlite:")),
    }
}

fn invalid(message: impl Into<String>) -> Error {
    InvalidArgument::new(message).into()
}
