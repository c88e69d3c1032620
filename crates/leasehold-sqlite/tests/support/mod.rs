//! What the tests share: stores in private directories, requests, waiting, and other processes.
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::{
    future::Future,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        mpsc::{Receiver, channel},
    },
    time::{Duration, Instant},
};

use leasehold_core::{
    Acquire, Acquired, AttemptId, Backend, Binding, Capacity, CapacityClaim, Confirmed, Fault,
    Grant, HolderInfo, LockId, LockKind, LockName, Namespace, Place, Share, Token, Ttl, Weight,
    defaults,
};
use leasehold_sqlite::SqliteBackend;

/// Longer than anything takes here, however busy the machine is.
pub(crate) const LONG: Duration = Duration::from_secs(30);

/// A directory for a store; it goes with this value.
pub(crate) struct Home(pub(crate) tempfile::TempDir);

impl Home {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.0.path().join("locks.db")
    }

    /// A thing in `PATH.d`.
    pub(crate) fn side(&self, name: &str) -> PathBuf {
        self.0.path().join("locks.db.d").join(name)
    }

    pub(crate) fn open(&self) -> SqliteBackend {
        SqliteBackend::open(self.path()).expect("the store opens")
    }

    pub(crate) fn fault(&self) -> Fault {
        SqliteBackend::open(self.path()).expect_err("the store is refused")
    }
}

/// Lets any user enter the directory of a test.
pub(crate) fn let_in(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("it is ours");
}

pub(crate) fn mutex(name: &str) -> Arc<LockId> {
    let name = LockName::new(name).expect("a name");
    Arc::new(LockId::new(Namespace::default(), LockKind::Mutex, name))
}

/// A request for all of a mutex, without a TTL.
pub(crate) fn request(lock: &Arc<LockId>) -> Acquire {
    Acquire {
        lock: Arc::clone(lock),
        generation: None,
        capacity: CapacityClaim::Exactly(Capacity::ONE),
        share: Share::ONE,
        token: Token::random(),
        attempt: AttemptId::random(),
        ttl: None,
        binding: Binding::Client,
        wait: true,
        not_after: None,
        queue_limit: defaults::QUEUE_LIMIT,
        info: Arc::new(HolderInfo::here()),
    }
}

/// The same that does not wait.
pub(crate) fn try_request(lock: &Arc<LockId>) -> Acquire {
    Acquire { wait: false, ..request(lock) }
}

/// A request for some permits of a semaphore.
pub(crate) fn permits(lock: &Arc<LockId>, capacity: u32, weight: u32) -> Acquire {
    Acquire {
        capacity: CapacityClaim::Exactly(Capacity::new(capacity).expect("a capacity")),
        share: Share::Permits(Weight::new(weight).expect("a weight")),
        ..request(lock)
    }
}

pub(crate) fn ttl(ms: u64) -> Option<Ttl> {
    Some(Ttl::new(Duration::from_millis(ms)).expect("a TTL"))
}

/// Runs a future to its end, which must come.
pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime")
        .block_on(async { tokio::time::timeout(LONG, future).await })
        .expect("it ends in time")
}

pub(crate) fn granted(backend: &SqliteBackend, request: &Acquire) -> Grant {
    match run(backend.acquire(request)).expect("the store works") {
        Acquired::Granted(grant) => grant,
        other => panic!("expected a grant: {other:?}"),
    }
}

pub(crate) fn queued(backend: &SqliteBackend, request: &Acquire) -> Place {
    match run(backend.acquire(request)).expect("the store works") {
        Acquired::Queued(place) => place,
        other => panic!("expected a place: {other:?}"),
    }
}

pub(crate) fn is_busy(backend: &SqliteBackend, request: &Acquire) -> bool {
    match run(backend.acquire(request)).expect("the store works") {
        Acquired::Busy(_) => true,
        Acquired::Granted(_) => false,
        other => panic!("expected busy or a grant: {other:?}"),
    }
}

/// Waits until the waiter is told what became of it.
pub(crate) fn told(backend: &SqliteBackend, request: &Acquire, place: &Place) -> Confirmed {
    run(async {
        loop {
            place.wake.notified().await;
            match backend.confirm(&request.lock, &request.token).await.expect("the store works") {
                Confirmed::Waiting => {}
                told => return told,
            }
        }
    })
}

pub(crate) fn told_granted(backend: &SqliteBackend, request: &Acquire, place: &Place) -> Grant {
    match told(backend, request, place) {
        Confirmed::Granted(grant) => grant,
        other => panic!("expected a grant: {other:?}"),
    }
}

pub(crate) fn release(backend: &SqliteBackend, request: &Acquire) -> leasehold_core::Released {
    run(backend.release(&request.lock, &request.token)).expect("the store works")
}

pub(crate) fn short_id(request: &Acquire) -> String {
    request.token.short_id()
}

/// Looks until it is so.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) -> Duration {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < LONG, "not in time: {what}");
        std::thread::yield_now();
    }
    start.elapsed()
}

/// Another process at a store.
pub(crate) struct Peer {
    child: Child,
    lines: Receiver<String>,
}

impl Peer {
    pub(crate) fn start(store: &Path, words: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold-sqlite-peer"));
        command.arg(store).args(words);
        Self::start_as(command)
    }

    /// The program of the peer, started by another program.
    pub(crate) fn start_by(program: &[&str], store: &Path, words: &[&str]) -> Self {
        let mut command = Command::new(program[0]);
        command
            .args(&program[1..])
            .arg(env!("CARGO_BIN_EXE_leasehold-sqlite-peer"))
            .arg(store)
            .args(words);
        Self::start_as(command)
    }

    fn start_as(mut command: Command) -> Self {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the peer starts");
        let stdout = BufReader::new(child.stdout.take().expect("it is piped"));
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, lines }
    }

    /// The next line, which must begin so; what follows is given back.
    pub(crate) fn says(&self, beginning: &str) -> String {
        let line = self.lines.recv_timeout(LONG).expect("the peer says something");
        match line.strip_prefix(beginning) {
            Some(rest) => rest.trim().to_owned(),
            None => panic!("expected {beginning:?}: {line:?}"),
        }
    }

    pub(crate) fn pid(&self) -> rustix::process::Pid {
        rustix::process::Pid::from_child(&self.child)
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(self.pid(), signal).expect("it runs");
    }

    /// kill -9, without waiting for the end.
    pub(crate) fn kill(&self) {
        self.signal(rustix::process::Signal::KILL);
    }

    /// Lets it end in good order.
    pub(crate) fn end(mut self) {
        drop(self.child.stdin.take());
        let status = self.child.wait().expect("it ends");
        assert!(status.success(), "{status}");
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
