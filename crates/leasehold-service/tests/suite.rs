//! Every case of the suite, on every adapter that is built in.

use std::sync::{Arc, LazyLock};

use leasehold_service::{
    EntryConfig, Error, InvalidArgument, LockId, ServiceBuilder, Settings,
    adapter::{Adapter, BoxFuture, Grant, Instance, Reach, Request, Setup},
    suite::{self, Case, Subject},
};

struct InProcess(&'static str);

impl Subject for InProcess {
    fn entry(&self, _store: &str) -> EntryConfig {
        EntryConfig::new(self.0)
    }

    fn reach(&self) -> Reach {
        Reach::InProcess
    }
}

fn on_tokio(case: BoxFuture<'static, ()>) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.unwrap().block_on(case);
}

#[test]
fn mutex_holds_every_case() {
    suite::run_every(&InProcess("mutex"), on_tokio);
}

#[test]
fn memory_holds_every_case() {
    suite::run_every(&InProcess("memory"), on_tokio);
}

#[test]
fn memory_holds_every_case_without_a_runtime() {
    suite::run_every(&InProcess("memory"), pollster::block_on);
}

struct Sqlite;

static STORES: LazyLock<tempfile::TempDir> = LazyLock::new(|| tempfile::tempdir().unwrap());

impl Subject for Sqlite {
    fn entry(&self, store: &str) -> EntryConfig {
        let path = STORES.path().join(store);
        EntryConfig::new("sqlite").connection("url", format!("sqlite:{}", path.display()))
    }
}

#[test]
fn sqlite_holds_every_case() {
    suite::run_every(&Sqlite, on_tokio);
}

/// Grants whatever is asked for.
#[derive(Debug)]
struct Generous;

struct Given(LockId);

impl Grant for Given {
    fn release(&self) -> BoxFuture<'_, Result<bool, Error>> {
        Box::pin(async { Ok(!self.0.key().is_empty()) })
    }
}

impl Instance for Generous {
    fn start(&self) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async { Ok(()) })
    }

    fn request(
        &self,
        request: Request,
    ) -> BoxFuture<'static, Result<Option<Box<dyn Grant>>, Error>> {
        Box::pin(async { Ok(Some(Box::new(Given(request.lock)) as Box<dyn Grant>)) })
    }

    fn close(&self) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async { Ok(()) })
    }
}

impl Adapter for Generous {
    type Connection = ();

    fn name(&self) -> &str {
        "generous"
    }

    fn connection(&self, _: &mut Settings<'_>) -> Option<()> {
        Some(())
    }

    fn create(&self, _: Setup<()>) -> Result<Arc<dyn Instance>, InvalidArgument> {
        Ok(Arc::new(Self))
    }
}

impl Subject for Generous {
    fn entry(&self, _: &str) -> EntryConfig {
        EntryConfig::new("generous")
    }

    fn install(&self, builder: ServiceBuilder) -> ServiceBuilder {
        builder.adapter(Self)
    }
}

#[test]
fn an_adapter_that_excludes_nobody_is_refused_by_the_suite() {
    for name in [
        "nl1_a_second_lock_waits_for_the_release",
        "nl3_runs_are_serial",
        "n16_locks_and_executors_of_one_resource_exclude_each_other",
        "n21_a_release_may_win_within_the_zero_budget_and_exclusion_holds",
    ] {
        let case: Case = suite::cases().find(|case| case.name == name).unwrap();
        assert_eq!(suite::run(&Generous, case, pollster::block_on), Err(name.to_owned()));
    }
}
