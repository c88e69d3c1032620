//! An idle client costs nothing.

mod support;

use std::{
    fs,
    time::{Duration, Instant},
};

use leasehold_core::{Backend, Token, WatchFor, Watched};
use support::{Home, granted, mutex, queued, release, request, run, told_granted, until};

#[test]
fn an_idle_client_is_never_woken() {
    let home = Home::new();
    let (a, b, lock) = (home.open(), home.open(), mutex("idle"));
    let held = request(&lock);
    granted(&a, &held);
    let wanted = request(&lock);
    let place = queued(&b, &wanted);
    release(&a, &held);
    told_granted(&b, &wanted, &place);
    // Both threads have run, and nobody waits any more.
    until("the threads have gone to sleep", || !switches().is_empty());
    // sleep: a last look may be on its way.
    std::thread::sleep(Duration::from_millis(300));
    let before = switches();
    assert!(!before.is_empty(), "the threads are there");
    // sleep: what is counted is what happens in a time.
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(switches(), before, "0 wake-ups while idle");
    drop((a, b));
    until("the threads have ended", || switches().is_empty());
    // After the other, whose count it would spoil.
    a_holder_that_only_waits_for_a_destroy_looks_once_a_heartbeat();
}

/// A holder that wants to be told of a loss, as `leasehold run` does for as long as its command
/// runs, is looked after at the heartbeat.
fn a_holder_that_only_waits_for_a_destroy_looks_once_a_heartbeat() {
    let home = Home::new();
    let (client, other, lock) = (home.open(), home.open(), mutex("long"));
    granted(&client, &request(&lock));
    let id = Token::random();
    let watched = run(client.watch(&lock, None, &id, WatchFor::Destroyed)).unwrap();
    let Watched::Waiting(wake) = watched else { panic!("{watched:?}") };
    until("the thread has gone to sleep", || !switches().is_empty());
    // sleep: the first look is on its way.
    std::thread::sleep(Duration::from_millis(300));
    let count = || switches().iter().map(|(_, count)| count).sum::<u64>();
    let before = count();
    // sleep: what is counted is what happens in a time.
    std::thread::sleep(Duration::from_secs(3));
    // Some are for the locks within the process.
    assert!(count() - before <= 12, "{} wake-ups in 3 s", count() - before);
    let start = Instant::now();
    run(other.destroy(&lock, None, "gone")).unwrap();
    run(wake.notified());
    assert!(start.elapsed() < Duration::from_secs(1), "it was told: {:?}", start.elapsed());
}

/// How often the threads of clients gave up the processor. Other tests would have threads of the
/// same name, so this one has a program of its own.
fn switches() -> Vec<(String, u64)> {
    let mut all = Vec::new();
    for task in fs::read_dir("/proc/self/task").unwrap() {
        let task = task.unwrap().path();
        let Ok(name) = fs::read_to_string(task.join("comm")) else { continue };
        if name.trim() != "leasehold-sqlit" {
            continue;
        }
        let Ok(status) = fs::read_to_string(task.join("status")) else { continue };
        let count = status
            .lines()
            .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))
            .and_then(|count| count.trim().parse().ok())
            .unwrap();
        all.push((task.display().to_string(), count));
    }
    all.sort();
    all
}
