//! From a URL to a store.

use std::sync::Arc;

use leasehold_core::{Backend, Error, InvalidArgument, MemoryBackend, Result};

use crate::LockManager;

/// Opens the store that `url` names and makes a manager on it, with the defaults.
///
/// - `memory:` is a store of this manager alone.
/// - `sqlite:PATH` is shared by all processes of this machine (feature `sqlite`); `PATH` may be
///   relative or absolute, and `%XX` stands for a byte.
/// - `redis://HOST`, `rediss://HOST` (TLS) and `unix:///PATH` (or `redis+unix://`) are shared by all
///   processes of all machines that reach the server (feature `redis`), and so are
///   `redis+sentinel://HOST,HOST/SERVICE` and `redis+cluster://HOST,HOST` (or `rediss+…`); user,
///   password, database and the rest are told in `leasehold_redis::RedisConfig`.
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

pub(crate) async fn open(url: &str) -> Result<Arc<dyn Backend>> {
    let scheme = url.split_once(':').map(|(scheme, _)| scheme);
    match scheme {
        Some("memory") if url == "memory:" => Ok(Arc::new(MemoryBackend::new())),
        Some("memory") => Err(invalid("memory: takes nothing after the colon")),
        Some("sqlite") => sqlite(url),
        Some(
            "redis" | "rediss" | "unix" | "redis+unix" | "redis+sentinel" | "rediss+sentinel"
            | "redis+cluster" | "rediss+cluster",
        ) => redis(url).await,
        // Nothing else of the URL is repeated: it may be, or hold, a password.
        Some(other) if is_scheme(other) => Err(invalid(format!(
            "no store is called {other:?}; there are memory:, sqlite:PATH and redis://HOST"
        ))),
        _ => Err(invalid("a store's URL begins with memory:, sqlite: or redis:")),
    }
}

/// Whether this is what a URL may begin with, and no password that somebody wrote there.
#[doc(hidden)]
#[must_use]
pub fn is_scheme(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|letter| letter.is_ascii_lowercase() || letter == '+')
}

#[cfg(feature = "sqlite")]
fn sqlite(url: &str) -> Result<Arc<dyn Backend>> {
    match leasehold_sqlite::SqliteBackend::from_url(url) {
        Ok(backend) => Ok(Arc::new(backend)),
        Err(fault) => Err(Error::from_fault(fault, leasehold_core::Operation::Connect)),
    }
}

#[cfg(not(feature = "sqlite"))]
fn sqlite(_: &str) -> Result<Arc<dyn Backend>> {
    Err(invalid("the store sqlite: needs the feature `sqlite`"))
}

#[cfg(feature = "redis")]
async fn redis(url: &str) -> Result<Arc<dyn Backend>> {
    let config = leasehold_redis::RedisConfig::new(url)?;
    match leasehold_redis::RedisBackend::connect(config).await {
        Ok(backend) => Ok(Arc::new(backend)),
        Err(fault) => Err(Error::from_fault(fault, leasehold_core::Operation::Connect)),
    }
}

#[cfg(not(feature = "redis"))]
async fn redis(_: &str) -> Result<Arc<dyn Backend>> {
    Err(invalid("the store redis: needs the feature `redis`"))
}

fn invalid(message: impl Into<String>) -> Error {
    InvalidArgument::new(message).into()
}
