//! From an application's name and a configuration to a service that is booted.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use leasehold::Clock;

use crate::{
    adapter::{Adapter, BoxFuture, Erased, Setup},
    adapters,
    config::{Checked, ConfigError, Problem, ServiceConfig, Sources, check},
    diagnostics::Diagnostic,
    entry::Entry,
    kit::Context,
    service::LockService,
};

/// Collects what a service is made from; see [`LockService::builder`].
#[must_use = "a builder does nothing until it is booted"]
pub struct ServiceBuilder {
    application: String,
    config: Option<ServiceConfig>,
    adapters: BTreeMap<String, Arc<dyn crate::adapter::AnyAdapter>>,
    problems: Vec<Problem>,
    context: Context,
    spawns: bool,
}

impl ServiceBuilder {
    pub(crate) fn new(application: &str) -> Self {
        let adapters = adapters::built_in();
        let adapters = adapters.into_iter().map(|adapter| (adapter.name().to_owned(), adapter));
        Self {
            application: application.into(),
            config: None,
            adapters: adapters.collect(),
            problems: Vec::new(),
            context: Context::new(),
            spawns: false,
        }
    }

    /// The configuration. Default: what the environment says, over the built-in entry.
    pub fn config(mut self, config: ServiceConfig) -> Self {
        self.config = Some(config);
        self
    }

    /// Adds an adapter that entries can name.
    pub fn adapter(mut self, adapter: impl Adapter) -> Self {
        let name = adapter.name().to_owned();
        if self.adapters.contains_key(&name) {
            let message = "there is an adapter of this name already";
            self.problems.push(Problem::new(format!("adapters.{name}"), message));
        }
        self.adapters.insert(name, Arc::new(Erased(Arc::new(adapter))));
        self
    }

    /// Gets what no caller is told: failed releases, losses, late grants. It is called from wherever
    /// that happens and must not block. All of it is also events and counters
    /// ([`observe`](crate::observe)).
    pub fn diagnostics(mut self, sink: impl Fn(&Diagnostic) + Send + Sync + 'static) -> Self {
        self.context = self.context.diagnostics(sink);
        self
    }

    /// The clock of the adapters `mutex` and `memory` and of the patience. Default: the machine's.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.context = self.context.clock(clock);
        self
    }

    /// How long a shutdown waits, each, for requests that were sent, for releases, and for an
    /// adapter's close. Default: 5 s.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.context = self.context.patience(patience);
        self
    }

    /// Drives what goes on after its caller has left: a request that has been sent, the release of a
    /// lease that was dropped. Default: the Tokio runtime that the service is booted on, else a
    /// thread for each.
    pub fn spawn_with(
        mut self,
        spawn: impl Fn(BoxFuture<'static, ()>) + Send + Sync + 'static,
    ) -> Self {
        self.context = self.context.spawn(spawn);
        self.spawns = true;
        self
    }

    /// Checks the configuration and freezes it (rule S2): what changes in files or in the
    /// environment later changes nothing. Does no I/O; nothing is started.
    ///
    /// # Errors
    /// Every mistake of the configuration, each with its path (rule S1).
    pub fn boot(self) -> Result<LockService, ConfigError> {
        let config = match self.config {
            Some(config) => config,
            None => Sources::new().load()?,
        };
        let context = if self.spawns {
            self.context
        } else {
            // Here, and not where the builder was made: a runtime may have begun since.
            let spawn = Context::new().spawn;
            self.context.spawn(move |future| spawn(future))
        };
        let mut problems = self.problems;
        let checked = match check(config, &self.application, &self.adapters) {
            Ok(checked) => checked,
            Err(error) => {
                problems.extend(error.problems().iter().cloned());
                return Err(ConfigError::new(problems));
            }
        };
        let Checked { default, entries } = checked;
        let mut booted = BTreeMap::new();
        for (name, entry) in entries {
            if !entry.enabled {
                continue;
            }
            let setup = Setup {
                entry: name.clone(),
                namespace: entry.namespace.clone(),
                clock: Arc::clone(&context.clock),
                connection: (),
            };
            match (entry.create)(setup) {
                Ok(instance) => {
                    let adapter = entry.adapter.name();
                    let (namespace, ttl) = (entry.namespace, entry.ttl);
                    let entry =
                        Entry::new(&name, adapter, namespace, ttl, instance, context.clone());
                    booted.insert(name, Arc::new(entry));
                }
                Err(invalid) => {
                    problems.push(Problem::new(format!("entries.{name}"), invalid.to_string()));
                }
            }
        }
        if !problems.is_empty() {
            return Err(ConfigError::new(problems));
        }
        Ok(LockService::of(default, booted))
    }
}

impl fmt::Debug for ServiceBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceBuilder")
            .field("application", &self.application)
            .field("config", &self.config)
            .field("adapters", &self.adapters.keys())
            .finish_non_exhaustive()
    }
}
