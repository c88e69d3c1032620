//! `redis`: locks of all that reach a server. `connection.url` is `redis://…`, with its parameters.

use std::sync::Arc;

use leasehold::{InvalidArgument, LockManager};

use super::managed::{Lifetime, Managed};
use crate::{
    adapter::{Adapter, BoxFuture, Instance, Setup},
    config::{Secret, Settings},
};

pub(crate) struct Redis;

impl Adapter for Redis {
    /// The URL, which may hold a password.
    type Connection = Secret;

    fn name(&self) -> &str {
        "redis"
    }

    fn connection(&self, settings: &mut Settings<'_>) -> Option<Secret> {
        let url = settings.required_secret("url")?;
        match leasehold_redis::RedisConfig::new(url.reveal()) {
            Ok(_) => Some(url),
            Err(invalid) => {
                settings.problem("url", invalid.to_string());
                None
            }
        }
    }

    fn create(&self, setup: Setup<Secret>) -> Result<Arc<dyn Instance>, InvalidArgument> {
        let Setup { namespace, connection: url, .. } = setup;
        Ok(Arc::new(Managed::new(Lifetime::Renewed, move || -> BoxFuture<'static, _> {
            let (namespace, url) = (namespace.clone(), url.clone());
            Box::pin(async move {
                LockManager::builder().namespace(namespace).connect(url.reveal()).await
            })
        })))
    }
}
