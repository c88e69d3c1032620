//! Every case of the suite on the adapter `redis`, on real servers of each kind.
//!
//! A server that is not installed makes its trial *ignored*, visibly; where servers are required
//! (`CI=true` or `LEASEHOLD_REQUIRE_SERVERS=1`) it fails the run.

use std::{env, sync::OnceLock};

use leasehold_service::{
    EntryConfig, LockService, ServiceConfig,
    adapter::BoxFuture,
    suite::{self, Subject},
};
use libtest_mimic::{Arguments, Trial};
use test_servers::{Flavor, Server};

static SERVERS: [Redis; 3] =
    [Redis::new(Flavor::Redis70), Redis::new(Flavor::Redis62), Redis::new(Flavor::Valkey)];

fn main() {
    let trials = SERVERS.iter().map(|redis| {
        let missing = redis.flavor.installed().err();
        let required = ["CI", "LEASEHOLD_REQUIRE_SERVERS"]
            .into_iter()
            .any(|name| env::var(name).is_ok_and(|set| set == "true" || set == "1"));
        let ignored = missing.is_some() && !required;
        let run = move || {
            suite::run_every(redis, on_tokio);
            shows_no_password(redis);
            redis.stop();
            Ok(())
        };
        Trial::test(format!("{}::holds_every_case", redis.flavor.name()), run)
            .with_ignored_flag(ignored)
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit();
}

struct Redis {
    flavor: Flavor,
    server: OnceLock<Server>,
}

impl Redis {
    const fn new(flavor: Flavor) -> Self {
        Self { flavor, server: OnceLock::new() }
    }

    fn server(&self) -> &Server {
        let start = || Server::start(self.flavor).unwrap_or_else(|missing| panic!("{missing}"));
        self.server.get_or_init(start)
    }

    /// What is static is not dropped at the end.
    fn stop(&self) {
        self.server().stop();
    }
}

impl Subject for Redis {
    fn entry(&self, store: &str) -> EntryConfig {
        // A prefix is short; the names of the cases differ before that.
        let prefix = &store[..store.len().min(40)];
        let url = format!("{}?prefix={prefix}", self.server().url());
        EntryConfig::new("redis").connection("url", url)
    }
}

fn on_tokio(case: BoxFuture<'static, ()>) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.unwrap().block_on(case);
}

/// A server that refuses the password is told without it.
fn shows_no_password(redis: &Redis) {
    let url = redis.server().url().replace("redis://", "redis://shop:hunter2@");
    let entry = EntryConfig::new("redis").connection("url", url);
    let config = ServiceConfig::new().with_default("jobs").entry("jobs", entry);
    let service = LockService::builder("shop").config(config).boot().unwrap();
    on_tokio(Box::pin(async move {
        let error = service.start().await.unwrap_err();
        let source = std::error::Error::source(&error).map(ToString::to_string);
        let told = format!("{error} {error:?} {source:?} {service:?}");
        assert!(!told.contains("hunter2"), "{told}");
        service.shutdown().await.unwrap();
    }));
}
