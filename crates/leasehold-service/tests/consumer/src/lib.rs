//! An adapter of a third party: a resource is held by whoever could make its file.
//!
//! It is the example of docs/service.md, complete and small. It polls, it is not fair, and a process
//! that dies leaves its files; everything else that a service promises holds for it as well, because
//! the service does it.

#![forbid(unsafe_code)]

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use leasehold_service::{
    Error, ErrorKind, InvalidArgument, Operation, Result, Settings,
    adapter::{Adapter, BoxFuture, Fault, FaultKind, Grant, Instance, Request, Setup, Wait},
};
use tokio::time::{Instant, sleep};

/// The adapter `file`.
#[derive(Clone, Copy, Debug)]
pub struct FileAdapter;

/// `connection.directory`, and `connection.poll_ms` (10 unless given).
#[derive(Clone, Debug)]
pub struct Connection {
    directory: PathBuf,
    poll: Duration,
}

impl Adapter for FileAdapter {
    type Connection = Connection;

    fn name(&self) -> &str {
        "file"
    }

    fn connection(&self, settings: &mut Settings<'_>) -> Option<Connection> {
        let directory = settings.required_text("directory");
        let poll = settings.whole("poll_ms", 1..=60_000).unwrap_or(10);
        Some(Connection { directory: directory?.into(), poll: Duration::from_millis(poll.into()) })
    }

    fn create(
        &self,
        setup: Setup<Connection>,
    ) -> std::result::Result<Arc<dyn Instance>, InvalidArgument> {
        Ok(Arc::new(Files(setup.connection)))
    }
}

#[derive(Debug)]
struct Files(Connection);

impl Instance for Files {
    fn start(&self) -> BoxFuture<'_, Result<()>> {
        let made = fs::create_dir_all(&self.0.directory);
        Box::pin(async { made.map_err(|error| failed(Operation::Open, error)) })
    }

    fn request(&self, request: Request) -> BoxFuture<'static, Result<Option<Box<dyn Grant>>>> {
        let Connection { directory, poll } = self.0.clone();
        Box::pin(async move {
            // The key is printable and injective; a file's name has no slash.
            let path = directory.join(request.lock.key().replace('/', "+"));
            let begun = Instant::now();
            loop {
                if take(&path)? {
                    let held = AtomicBool::new(true);
                    return Ok(Some(Box::new(Held { path, held }) as Box<dyn Grant>));
                }
                if matches!(request.wait, Wait::AtMost(budget) if begun.elapsed() >= budget) {
                    return Ok(None);
                }
                tokio::select! {
                    // sleep: nobody tells when a file goes, so it is looked at again
                    () = sleep(poll) => {}
                    () = request.interrupt.clone() => {
                        let reason = "nobody waits for it any more".into();
                        let kind = ErrorKind::Cancelled { reason };
                        return Err(Error::new(kind, Operation::Acquire).on(&request.lock));
                    }
                }
            }
        })
    }

    fn close(&self) -> BoxFuture<'_, Result<()>> {
        // Nothing was opened that stays open.
        Box::pin(async { Ok(()) })
    }
}

/// Whether the file was made just now.
fn take(path: &Path) -> Result<bool> {
    match fs::File::create_new(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(failed(Operation::Acquire, error)),
    }
}

struct Held {
    path: PathBuf,
    held: AtomicBool,
}

impl Held {
    fn give_back(&self) -> Result<bool> {
        match fs::remove_file(&self.path) {
            Ok(()) => {
                self.held.store(false, Ordering::SeqCst);
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(failed(Operation::Release, error)),
        }
    }
}

impl Grant for Held {
    fn release(&self) -> BoxFuture<'_, Result<bool>> {
        Box::pin(async { self.give_back() })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.held.load(Ordering::SeqCst) {
            // Nobody is there to be told.
            let _ = self.give_back();
        }
    }
}

fn failed(operation: Operation, error: io::Error) -> Error {
    let fault = Fault::new(FaultKind::Unavailable, "the directory of the locks").with_source(error);
    Error::from_fault(fault, operation)
}
