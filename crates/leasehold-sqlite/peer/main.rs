//! The other process of the tests: it opens a store, holds or waits as it is told, says what
//! happened line by line, and is killed.
//!
//! `peer STORE COMMAND …`, where STORE is a path or `default`. Every command but `open` stays until
//! its standard input ends.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "its output is its purpose")]

use std::{
    future::Future,
    io::{Read, stdin},
    process::{Command, ExitCode},
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
    time::Duration,
};

use leasehold_core::{
    Acquire, Acquired, AttemptId, Backend, Binding, Capacity, CapacityClaim, Confirmed, Fault,
    Grant, HolderInfo, LockId, LockKind, LockName, Namespace, Share, Token, Ttl, defaults,
};
use leasehold_sqlite::SqliteBackend;
use rustix::io::{FdFlags, fcntl_setfd};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            println!("fault {:?} {fault}", fault.kind());
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[&str]) -> Result<(), Fault> {
    let [store, command, rest @ ..] = words else { panic!("peer STORE COMMAND …") };
    let backend = match *store {
        "default" => SqliteBackend::open_default()?,
        path => SqliteBackend::open(path)?,
    };
    match (*command, rest) {
        ("open", []) => println!("opened {}", backend.path().display()),
        ("stay", []) => {
            println!("opened {}", backend.path().display());
            stay();
        }
        ("hold", [name]) => {
            let grant = hold(&backend, name, None)?;
            println!("held {}", grant.fencing);
            stay();
        }
        ("hold-ms", [name, ms]) => {
            let ms = ms.parse().expect("milliseconds");
            let grant = hold(&backend, name, Some(Duration::from_millis(ms)))?;
            println!("held {}", grant.fencing);
            stay();
        }
        ("hold-with-child", [name]) => {
            let grant = hold(&backend, name, None)?;
            let liveness = backend.liveness()?;
            fcntl_setfd(&liveness, FdFlags::empty()).expect("it is open");
            // The child has nothing of this process but the descriptor.
            let mut child = Command::new("sleep").arg("600").spawn().expect("sleep is there");
            println!("held {} child {}", grant.fencing, child.id());
            stay();
            child.kill().and_then(|()| child.wait()).expect("it is ours");
        }
        ("full-disk", []) => full_disk(&backend, store)?,
        ("sections", [name, count, log]) => sections(&backend, name, count, log)?,
        other => panic!("{other:?} is no command"),
    }
    block_on(backend.close())
}

fn stay() {
    let mut all = Vec::new();
    stdin().read_to_end(&mut all).expect("standard input is open");
}

/// Enters the critical section again and again; in it, the log must be as it was left.
fn sections(backend: &SqliteBackend, name: &str, count: &str, log: &str) -> Result<(), Fault> {
    for section in 0..count.parse::<u32>().expect("a count") {
        let request = request(name, None);
        let grant = acquire(backend, &request)?;
        // Two who are in here at once are found by the file that one of them cannot make.
        let mark = format!("{log}.inside");
        let made = std::fs::File::create_new(&mark);
        assert!(made.is_ok(), "two are inside at section {section}");
        println!("section {section} fence {}", grant.fencing);
        std::fs::remove_file(&mark).expect("it is there");
        block_on(backend.release(&request.lock, &request.token))?;
    }
    Ok(())
}

/// Fills the disk of the store until it refuses to grant, gives up what was held before, and makes
/// room again.
fn full_disk(backend: &SqliteBackend, store: &str) -> Result<(), Fault> {
    let held = request("held", None);
    acquire(backend, &held)?;
    println!("held");
    let ballast = std::path::Path::new(store).with_file_name("ballast");
    let mut file = std::fs::File::create(&ballast).expect("there is room");
    while std::io::Write::write_all(&mut file, &[0; 512]).is_ok() {}
    // The log has room for some more; a new name takes the most.
    let fault = (0..10_000)
        .find_map(|n| acquire(backend, &request(&format!("fill {n}"), None)).err())
        .expect("the disk is full");
    println!("full {:?} {fault}", fault.kind());
    backend.abandon(&held.lock, &held.token);
    drop(file);
    std::fs::remove_file(&ballast).expect("it is there");
    while block_on(backend.counts(&held.lock))?.is_some() {
        thread::yield_now();
    }
    println!("free");
    Ok(())
}

fn hold(backend: &SqliteBackend, name: &str, ttl: Option<Duration>) -> Result<Grant, Fault> {
    acquire(backend, &request(name, ttl))
}

fn acquire(backend: &SqliteBackend, request: &Acquire) -> Result<Grant, Fault> {
    let place = match block_on(backend.acquire(request))? {
        Acquired::Granted(grant) => return Ok(grant),
        Acquired::Queued(place) => place,
        other => panic!("{other:?}"),
    };
    println!("queued");
    loop {
        block_on(place.wake.notified());
        match block_on(backend.confirm(&request.lock, &request.token))? {
            Confirmed::Granted(grant) => return Ok(grant),
            Confirmed::Waiting => {}
            other => panic!("{other:?}"),
        }
    }
}

fn request(name: &str, ttl: Option<Duration>) -> Acquire {
    let name = LockName::new(name).expect("a name");
    Acquire {
        lock: Arc::new(LockId::new(Namespace::default(), LockKind::Mutex, name)),
        generation: None,
        capacity: CapacityClaim::Exactly(Capacity::ONE),
        share: Share::ONE,
        token: Token::random(),
        attempt: AttemptId::random(),
        ttl: ttl.map(|ttl| Ttl::new(ttl).expect("a TTL")),
        binding: Binding::Client,
        wait: true,
        not_after: None,
        queue_limit: defaults::QUEUE_LIMIT,
        info: Arc::new(HolderInfo::here()),
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}
