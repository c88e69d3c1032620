//! A history on a real store in which grants are ended behind their holders' backs: by a destroy
//! that the checker knows nothing of. It must find that.
#![forbid(unsafe_code)]

use std::{
    path::Path,
    pin::Pin,
    sync::Arc,
    task::{Context, Waker},
    time::{Duration, Instant},
};

use leasehold_conformance::{
    bench::Lock,
    history::{self, Disturbance, Embedded, Size, Stage, ViolationKind},
};
use leasehold_core::{Backend, Fault, LockKind};
use leasehold_sqlite::SqliteBackend;
use libtest_mimic::{Arguments, Trial};

/// Little, but with many chances.
const SIZE: Size = Size {
    processes: 4,
    sets: 1,
    hand_offs: 200,
    kills_each: 2,
    kills_anywhere: 2,
    stops_each: 0,
    disturbances: 160,
    ttl: Size::TTL,
};

fn main() {
    history::take_part(&Spoilt);
    let trial = Trial::test("grants_that_others_end_are_found", || {
        found_in_a_spoilt_history();
        Ok(())
    });
    libtest_mimic::run(&Arguments::from_args(), vec![trial]).exit()
}

fn found_in_a_spoilt_history() {
    let directory = tempfile::tempdir().unwrap();
    let outcome = history::drive(&Spoilt, directory.path(), SIZE, 1);
    let found = |kind| outcome.report.violations.iter().filter(|found| found.kind == kind).count();
    assert!(!outcome.is_good());
    // Whether two sections overlap as well is up to chance; the checker's own tests plant those.
    assert!(found(ViolationKind::EndedByOthers) > 0, "no ended grant in {outcome:?}");
}

struct Spoilt;

impl Stage for Spoilt {
    fn connect(&self, address: &Path) -> Result<Arc<dyn Backend>, Fault> {
        Ok(Arc::new(SqliteBackend::open(address)?))
    }

    fn disturb(&self, address: &Path, _turn: u32) -> Result<Disturbance, String> {
        let client = self.connect(address).map_err(|fault| fault.to_string())?;
        let lock = Lock::new("default", LockKind::Mutex, "mutex", 1);
        let mut call = client.destroy(&lock.id, None, "planted");
        let start = Instant::now();
        let mut context = Context::from_waker(Waker::noop());
        while Pin::new(&mut call).poll(&mut context).is_pending() {
            assert!(start.elapsed() < Duration::from_secs(30), "the store does not answer");
            std::thread::yield_now();
        }
        Ok("mutex destroyed".into())
    }

    fn reboot(&self, address: &Path) -> Result<(), String> {
        Embedded { connect: |address| Self.connect(address) }.reboot(address)
    }
}
