//! `sqlite`: locks of all processes of this machine. `connection.url` is `sqlite:PATH`.

use std::sync::Arc;

use leasehold::{InvalidArgument, LockManager};

use super::managed::{Lifetime, Managed};
use crate::{
    adapter::{Adapter, BoxFuture, Instance, Setup},
    config::Settings,
};

pub(crate) struct Sqlite;

impl Adapter for Sqlite {
    /// The URL.
    type Connection = String;

    fn name(&self) -> &str {
        "sqlite"
    }

    fn connection(&self, settings: &mut Settings<'_>) -> Option<String> {
        let url = settings.required_text("url")?;
        match leasehold_sqlite::path_of_url(&url) {
            Ok(_) => Some(url),
            Err(fault) => {
                settings.problem("url", fault.to_string());
                None
            }
        }
    }

    fn create(&self, setup: Setup<String>) -> Result<Arc<dyn Instance>, InvalidArgument> {
        let Setup { namespace, connection: url, .. } = setup;
        Ok(Arc::new(Managed::new(Lifetime::Renewed, move || -> BoxFuture<'static, _> {
            let (namespace, url) = (namespace.clone(), url.clone());
            Box::pin(async move { LockManager::builder().namespace(namespace).connect(&url).await })
        })))
    }
}
