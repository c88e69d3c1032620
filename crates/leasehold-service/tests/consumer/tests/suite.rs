//! The adapter holds to every case of the service.

use std::sync::LazyLock;

use leasehold_adapter_file::FileAdapter;
use leasehold_service::{
    EntryConfig, LockService, ServiceBuilder, ServiceConfig,
    suite::{self, Subject},
};

struct Files;

static PLACE: LazyLock<tempfile::TempDir> = LazyLock::new(|| tempfile::tempdir().unwrap());

impl Subject for Files {
    fn entry(&self, store: &str) -> EntryConfig {
        let directory = PLACE.path().join(store).display().to_string();
        EntryConfig::new("file").connection("directory", directory)
    }

    fn install(&self, builder: ServiceBuilder) -> ServiceBuilder {
        builder.adapter(FileAdapter)
    }

    fn is_fair(&self) -> bool {
        false
    }
}

#[test]
fn the_file_adapter_holds_every_case() {
    suite::run_every(&Files, |case| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.unwrap().block_on(case);
    });
}

#[test]
fn its_settings_are_checked_with_all_the_others() {
    let entry = EntryConfig::new("file").connection("poll_ms", "5").connection("path", "x");
    let config = ServiceConfig::new().with_default("jobs").entry("jobs", entry);
    let error =
        LockService::builder("shop").config(config).adapter(FileAdapter).boot().unwrap_err();
    let told = error.to_string();
    assert_eq!(
        told,
        "entries.jobs.connection.directory: is missing\n\
         entries.jobs.connection.path: unknown field; there are directory, poll_ms\n\
         entries.jobs.connection.poll_ms: a text is not a whole number in 1..=60000"
    );
}
