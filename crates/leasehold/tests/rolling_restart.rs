//! Three processes under load, restarted one after the other with `shutdown()`: no two sections
//! overlap, and nobody's waiter is cancelled by somebody else's shutdown (rules N6, N7).

#![cfg(feature = "sqlite")]

use std::{
    fs::{self, File},
    io::{Read, Write},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use leasehold::{ErrorKind, LockManager};

const STORE: &str = "LEASEHOLD_TEST_ROLLING_STORE";
const RESTARTS: usize = 6;
const SECTIONS_PER_STEP: usize = 40;
const TASKS: usize = 4;

#[test]
fn nobody_overlaps_and_nobody_is_cancelled() {
    if let Some(store) = std::env::var_os(STORE) {
        return worker(Path::new(&store));
    }
    let directory = tempfile::Builder::new().prefix("leasehold").tempdir().unwrap();
    let log = directory.path().join("log");
    File::create(&log).unwrap();
    let mut workers: Vec<_> = (0..3).map(|_| start(directory.path())).collect();
    let mut seen = 0;
    for _ in 0..RESTARTS {
        seen = until_more_sections(&log, seen);
        stop(workers.remove(0));
        workers.push(start(directory.path()));
    }
    until_more_sections(&log, seen);
    workers.into_iter().for_each(stop);

    let log = fs::read_to_string(&log).unwrap();
    let mut inside = None;
    let mut sections = 0;
    for line in log.lines() {
        let (word, who) = line.split_once(' ').unwrap();
        match (word, inside) {
            ("in", None) => inside = Some(who),
            ("out", Some(holder)) if holder == who => {
                inside = None;
                sections += 1;
            }
            _ => panic!("{line:?} while {inside:?} is inside"),
        }
    }
    assert_eq!(inside, None);
    assert!(sections >= RESTARTS * SECTIONS_PER_STEP, "{sections} sections");
}

fn start(directory: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "nobody_overlaps_and_nobody_is_cancelled", "--nocapture"])
        .env(STORE, directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Closing its input tells a worker to shut down.
fn stop(mut worker: Child) {
    drop(worker.stdin.take());
    let mut told = String::new();
    worker.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    let status = worker.wait().unwrap();
    assert!(status.success() && told.is_empty(), "{status}: {told}");
}

fn until_more_sections(log: &Path, seen: usize) -> usize {
    let start = Instant::now();
    loop {
        let sections = fs::read_to_string(log).unwrap().matches("out ").count();
        if sections >= seen + SECTIONS_PER_STEP {
            return sections;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "stuck at {sections} sections");
        std::thread::yield_now();
    }
}

fn worker(directory: &Path) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let url = format!("sqlite:{}", directory.join("locks.db").display());
    let log = directory.join("log");
    runtime.block_on(async {
        let locks = leasehold::connect(&url).await.unwrap();
        let tasks: Vec<_> = (0..TASKS)
            .map(|task| tokio::spawn(sections(locks.clone(), log.clone(), task)))
            .collect();
        tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()))
            .await
            .unwrap()
            .unwrap();
        // A section takes no time, so every lease is back within the limit.
        locks.shutdown().drain(Duration::from_secs(10)).await.unwrap();
        for task in tasks {
            task.await.unwrap();
        }
    });
}

async fn sections(locks: LockManager, log: std::path::PathBuf, task: usize) {
    let orders = locks.mutex("orders").unwrap();
    let mut log = File::options().append(true).open(log).unwrap();
    let who = format!("{}-{task}", std::process::id());
    loop {
        let lease = match orders.lock().timeout(None).await {
            Ok(lease) => lease,
            // Its own shutdown, and nothing else, ends it.
            Err(error) if *error.kind() == ErrorKind::ShutDown => return,
            Err(error) => panic!("{who}: {error}"),
        };
        log.write_all(format!("in {who}\n").as_bytes()).unwrap();
        tokio::task::yield_now().await;
        log.write_all(format!("out {who}\n").as_bytes()).unwrap();
        assert!(lease.release().await.unwrap(), "{who}: lost");
    }
}
