//! The adapters that are built in; each is a small table of what it takes and how it opens.

mod managed;
mod memory;
mod mutex;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "sqlite")]
mod sqlite;

use std::sync::Arc;

use crate::adapter::{AnyAdapter, Erased};

/// All of them, by the features that are on.
pub(crate) fn built_in() -> Vec<Arc<dyn AnyAdapter>> {
    vec![
        Arc::new(Erased(Arc::new(mutex::Mutex))),
        Arc::new(Erased(Arc::new(memory::Memory))),
        #[cfg(feature = "redis")]
        Arc::new(Erased(Arc::new(redis::Redis))),
        #[cfg(feature = "sqlite")]
        Arc::new(Erased(Arc::new(sqlite::Sqlite))),
    ]
}
