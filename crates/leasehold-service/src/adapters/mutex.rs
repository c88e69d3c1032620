//! `mutex`: locks of this process. A TTL is checked and otherwise ignored (rule S6).

use std::sync::Arc;

use leasehold::{InvalidArgument, LockManager, MemoryStore};

use super::managed::{Lifetime, Managed};
use crate::{
    adapter::{Adapter, BoxFuture, Instance, Reach, Setup},
    config::Settings,
};

pub(crate) struct Mutex;

impl Adapter for Mutex {
    type Connection = ();

    fn name(&self) -> &str {
        "mutex"
    }

    fn reach(&self) -> Reach {
        Reach::InProcess
    }

    fn connection(&self, _settings: &mut Settings<'_>) -> Option<()> {
        Some(())
    }

    fn create(&self, setup: Setup<()>) -> Result<Arc<dyn Instance>, InvalidArgument> {
        Ok(in_process(setup, Lifetime::Unlimited))
    }
}

/// A store of this instance alone, on the service's clock.
pub(super) fn in_process(setup: Setup<()>, lifetime: Lifetime) -> Arc<dyn Instance> {
    let Setup { namespace, clock, .. } = setup;
    Arc::new(Managed::new(lifetime, move || -> BoxFuture<'static, _> {
        let store = MemoryStore::with_clock(Arc::clone(&clock)).client();
        let manager = LockManager::builder().namespace(namespace.clone()).backend(store);
        Box::pin(std::future::ready(Ok(manager)))
    }))
}
