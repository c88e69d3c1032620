//! A store that cannot tell a dead client from a silent one, as a remote store cannot: no fault,
//! but a capability that is absent.

use std::{mem, sync::Arc};

use leasehold_conformance::{Fixture, StoreUnderTest};
use leasehold_core::{Backend, Capabilities};

use crate::mutant::{Fault, Inner, MutantStore};

pub(crate) struct WithoutProof;

impl Fixture for WithoutProof {
    fn name(&self) -> &'static str {
        "memory without proof of death"
    }

    fn fresh(&self) -> Box<dyn StoreUnderTest> {
        Box::new(MutantStore::new(NoProof))
    }
}

#[derive(Debug)]
struct NoProof;

impl Fault for NoProof {
    fn capabilities(&self, inner: &Inner) -> Capabilities {
        Capabilities { proves_death: false, ..inner.capabilities() }
    }
    fn dies(&self, client: Arc<dyn Backend>) {
        // Silent for ever, and alive as far as the store can see.
        mem::forget(client);
    }
}
