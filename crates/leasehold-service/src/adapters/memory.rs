//! `memory`: locks of this process whose grants have a TTL and are renewed, as on a shared store.

use std::sync::Arc;

use leasehold::InvalidArgument;

use super::{managed::Lifetime, mutex::in_process};
use crate::{
    adapter::{Adapter, Instance, Reach, Setup},
    config::Settings,
};

pub(crate) struct Memory;

impl Adapter for Memory {
    type Connection = ();

    fn name(&self) -> &str {
        "memory"
    }

    fn reach(&self) -> Reach {
        Reach::InProcess
    }

    fn connection(&self, _settings: &mut Settings<'_>) -> Option<()> {
        Some(())
    }

    fn create(&self, setup: Setup<()>) -> Result<Arc<dyn Instance>, InvalidArgument> {
        Ok(in_process(setup, Lifetime::Renewed))
    }
}
