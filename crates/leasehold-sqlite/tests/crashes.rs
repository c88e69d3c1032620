//! Processes that die or stop: what they held is free at once, and they delay nobody.

mod support;

use std::time::{Duration, Instant};

use leasehold_core::{Backend, Confirmed};
use leasehold_sqlite::SqliteReport;
use rustix::process::{Pid, Signal, kill_process};
use support::{
    Home, LONG, Peer, granted, is_busy, mutex, queued, release, request, run, told, told_granted,
    try_request, until,
};

/// The death of a client is to be noticed within 200 ms; three times that on a busy machine.
const NOTICED: Duration = Duration::from_millis(600);

#[test]
fn a_holder_that_is_killed_frees_its_lock_for_a_waiter() {
    let home = Home::new();
    let (client, lock) = (home.open(), mutex("killed"));
    let peer = Peer::start(&home.path(), &["hold", "killed"]);
    let fence: u64 = peer.says("held").parse().unwrap();
    let wanted = request(&lock);
    let place = queued(&client, &wanted);
    let start = Instant::now();
    peer.kill();
    let grant = told_granted(&client, &wanted, &place);
    assert!(start.elapsed() < NOTICED, "{:?}", start.elapsed());
    assert!(grant.fencing.get() > fence);
}

#[test]
fn a_killed_holder_frees_its_lock_for_a_waiter_in_a_third_process() {
    let home = Home::new();
    let holder = Peer::start(&home.path(), &["hold", "third"]);
    holder.says("held");
    let waiter = Peer::start(&home.path(), &["hold", "third"]);
    waiter.says("queued");
    let start = Instant::now();
    holder.kill();
    waiter.says("held");
    assert!(start.elapsed() < NOTICED, "{:?}", start.elapsed());
    waiter.end();
}

#[test]
fn a_try_succeeds_on_the_lock_of_a_dead_process() {
    let home = Home::new();
    let (client, lock) = (home.open(), mutex("dead"));
    let peer = Peer::start(&home.path(), &["hold", "dead"]);
    peer.says("held");
    assert!(is_busy(&client, &try_request(&lock)));
    peer.kill();
    // Nobody waits, so nobody probes: each attempt looks for itself.
    until("the lock of the dead is free", || !is_busy(&client, &try_request(&lock)));
}

#[test]
fn what_the_dead_held_is_not_shown() {
    let home = Home::new();
    let (client, lock) = (home.open(), mutex("shown"));
    let peer = Peer::start(&home.path(), &["hold", "shown"]);
    peer.says("held");
    assert_eq!(run(client.survey(None)).unwrap().len(), 1);
    assert!(run(client.counts(&lock)).unwrap().is_some());
    peer.kill();
    until("no lock is shown", || run(client.survey(None)).unwrap().is_empty());
    assert!(run(client.counts(&lock)).unwrap().is_none());
}

#[test]
fn a_waiter_that_is_killed_delays_nobody() {
    let home = Home::new();
    let (client, lock) = (home.open(), mutex("waiter"));
    let held = request(&lock);
    granted(&client, &held);
    let peer = Peer::start(&home.path(), &["hold", "waiter"]);
    peer.says("queued");
    let wanted = request(&lock);
    let place = queued(&client, &wanted);
    peer.kill();
    let start = Instant::now();
    release(&client, &held);
    told_granted(&client, &wanted, &place);
    assert!(start.elapsed() < NOTICED, "{:?}", start.elapsed());
}

/// As many processes as a shell script starts in a loop.
#[test]
fn a_line_of_waiters_that_are_killed_delays_nobody() {
    let home = Home::new();
    let (client, lock) = (home.open(), mutex("line"));
    let held = request(&lock);
    granted(&client, &held);
    let peers: Vec<Peer> = (0..40)
        .map(|_| {
            let peer = Peer::start(&home.path(), &["hold", "line"]);
            peer.says("queued");
            peer
        })
        .collect();
    let wanted = request(&lock);
    let place = queued(&client, &wanted);
    for peer in &peers {
        peer.kill();
    }
    drop(peers);
    let start = Instant::now();
    release(&client, &held);
    told_granted(&client, &wanted, &place);
    assert!(start.elapsed() < NOTICED, "{:?}", start.elapsed());
}

#[test]
fn a_try_succeeds_on_the_lock_of_a_line_of_dead_processes() {
    let home = Home::new();
    let (client, lock) = (home.open(), mutex("dead line"));
    let holder = Peer::start(&home.path(), &["hold", "dead line"]);
    holder.says("held");
    let waiters: Vec<Peer> = (0..6)
        .map(|_| {
            let peer = Peer::start(&home.path(), &["hold", "dead line"]);
            peer.says("queued");
            peer
        })
        .collect();
    for peer in waiters.iter().chain([&holder]) {
        peer.kill();
    }
    // Their ends are waited for, from the tail, so that none is granted and told meanwhile.
    drop((waiters, holder));
    assert!(!is_busy(&client, &try_request(&lock)));
}

#[test]
fn a_stopped_waiter_delays_the_next_by_its_claim_and_no_longer() {
    let home = Home::new();
    let (client, lock) = (home.open(), mutex("stopped"));
    let held = request(&lock);
    granted(&client, &held);
    let peer = Peer::start(&home.path(), &["hold", "stopped"]);
    peer.says("queued");
    let wanted = request(&lock);
    let place = queued(&client, &wanted);
    peer.signal(Signal::STOP);
    let start = Instant::now();
    release(&client, &held);
    told_granted(&client, &wanted, &place);
    // L10: a claim of 2 s, then the next.
    assert!(start.elapsed() >= Duration::from_millis(1900), "{:?}", start.elapsed());
    assert!(start.elapsed() < Duration::from_secs(6), "{:?}", start.elapsed());
    peer.kill();
}

#[test]
fn a_holder_that_is_stopped_keeps_its_lock() {
    let home = Home::new();
    let (client, lock) = (home.open(), mutex("sleeper"));
    let peer = Peer::start(&home.path(), &["hold", "sleeper"]);
    peer.says("held");
    peer.signal(Signal::STOP);
    let wanted = request(&lock);
    let place = queued(&client, &wanted);
    // sleep: longer than any probe takes; nothing must happen.
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(run(client.confirm(&lock, &wanted.token)).unwrap(), Confirmed::Waiting);
    peer.signal(Signal::CONT);
    peer.end();
    told_granted(&client, &wanted, &place);
}

#[test]
fn an_inherited_liveness_lock_keeps_the_grant_until_the_child_has_ended() {
    let home = Home::new();
    let (client, lock) = (home.open(), mutex("inherited"));
    let peer = Peer::start(&home.path(), &["hold-with-child", "inherited"]);
    let said = peer.says("held");
    let child: i32 = said.rsplit(' ').next().unwrap().parse().unwrap();
    let wanted = request(&lock);
    let place = queued(&client, &wanted);
    peer.kill();
    // sleep: longer than any probe takes; nothing must happen.
    std::thread::sleep(Duration::from_millis(400));
    assert_eq!(run(client.confirm(&lock, &wanted.token)).unwrap(), Confirmed::Waiting);
    let start = Instant::now();
    kill_process(Pid::from_raw(child).unwrap(), Signal::KILL).unwrap();
    told_granted(&client, &wanted, &place);
    assert!(start.elapsed() < NOTICED, "{:?}", start.elapsed());
}

#[test]
fn a_process_stopped_inside_the_guard_is_named() {
    let home = Home::new();
    let (client, lock) = (home.open(), mutex("guard"));
    let guard = std::fs::File::options().write(true).open(home.side("guard")).unwrap();
    rustix::fs::flock(&guard, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let start = Instant::now();
    let fault = run(client.acquire(&request(&lock))).unwrap_err();
    assert_eq!(fault.kind(), leasehold_core::FaultKind::Unavailable);
    assert!(fault.is_retryable());
    let message = fault.to_string();
    assert!(message.contains(&format!("pid {}", std::process::id())), "{message}");
    assert!(start.elapsed() >= Duration::from_secs(5) && start.elapsed() < LONG);
    drop(guard);
    granted(&client, &request(&lock));
}

#[test]
fn the_patience_counts_from_the_call_and_readers_do_not_wait_behind_it() {
    let home = Home::new();
    let (client, lock) = (home.open(), mutex("patience"));
    granted(&client, &request(&lock));
    let guard = std::fs::File::options().write(true).open(home.side("guard")).unwrap();
    rustix::fs::flock(&guard, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let calls: Vec<_> = (0..3)
        .map(|_| {
            let call = (Instant::now(), client.acquire(&request(&lock)));
            // sleep: the calls are to be made one after the other, while the first one waits.
            std::thread::sleep(Duration::from_millis(1000));
            call
        })
        .collect();
    let start = Instant::now();
    assert!(run(client.inspect(&lock)).unwrap().is_some());
    assert!(run(client.counts(&lock)).unwrap().is_some());
    assert!(start.elapsed() < Duration::from_millis(1500), "{:?}", start.elapsed());
    for (made, call) in calls {
        assert_eq!(run(call).unwrap_err().kind(), leasehold_core::FaultKind::Unavailable);
        let waited = made.elapsed();
        assert!(waited >= Duration::from_secs(5), "{waited:?}");
        assert!(waited < Duration::from_millis(6500), "{waited:?}");
    }
}

#[test]
fn a_report_answers_while_a_process_is_stopped_inside_the_guard() {
    let home = Home::new();
    let (client, lock) = (home.open(), mutex("live"));
    let peer = Peer::start(&home.path(), &["hold", "dead"]);
    peer.says("held");
    let (held, over) = (request(&lock), mutex("over"));
    granted(&client, &held);
    let place = queued(&client, &request(&lock));
    let short = leasehold_core::Acquire { ttl: support::ttl(1), ..request(&over) };
    granted(&client, &short);
    let guard = std::fs::File::options().write(true).open(home.side("guard")).unwrap();
    rustix::fs::flock(&guard, rustix::fs::FlockOperation::LockExclusive).unwrap();
    peer.kill();
    let mut report = SqliteReport::open(home.path()).unwrap();
    until("what has ended is left out", || {
        let locks = report.survey(None).unwrap();
        locks.iter().map(|state| &state.lock).eq([&*lock])
    });
    let state = report.inspect(&lock).unwrap().expect("it is held");
    assert_eq!((state.used, state.holders.len(), state.waiters.len()), (1, 1, 1));
    assert!(report.inspect(&over).unwrap().is_none());
    drop((guard, place));
    // Now the report cleans up, and nobody is left behind by it.
    assert_eq!(report.survey(None).unwrap().len(), 1);
    drop(report);
    let conn = rusqlite::Connection::open(home.path()).unwrap();
    let clients: i64 =
        conn.query_row("SELECT COUNT(*) FROM clients", [], |row| row.get(0)).unwrap();
    assert_eq!(clients, 1, "a report is no client, and the dead one is buried");
}

#[test]
fn sections_of_processes_that_are_killed_never_overlap() {
    let home = Home::new();
    let log = home.0.path().join("log").display().to_string();
    let client = home.open();
    // Killed somewhere between two sections, or waiting: never inside, where the mark would stay.
    let victims: Vec<_> =
        (0..3).map(|_| Peer::start(&home.path(), &["hold", "sections"])).collect();
    let workers: Vec<_> =
        (0..4).map(|_| Peer::start(&home.path(), &["sections", "sections", "25", &log])).collect();
    for victim in &victims {
        victim.kill();
    }
    for worker in workers {
        let mut sections = 0;
        while sections < 25 {
            let said = worker.says("");
            sections += usize::from(said.starts_with("section"));
        }
        worker.end();
    }
    assert!(run(client.counts(&mutex("sections"))).unwrap().is_none());
}

#[test]
fn a_waiter_is_told_when_its_token_is_released_elsewhere() {
    let home = Home::new();
    let (a, b, lock) = (home.open(), home.open(), mutex("elsewhere"));
    granted(&a, &request(&lock));
    let wanted = request(&lock);
    let place = queued(&b, &wanted);
    run(a.release(&lock, &wanted.token)).unwrap();
    assert_eq!(told(&b, &wanted, &place), Confirmed::Unknown);
}

/// Should a grant ever be left by a client that is not registered, it is not for ever.
#[test]
fn a_grant_of_a_client_that_is_not_registered_is_nobodys() {
    let home = Home::new();
    let (client, lock) = (home.open(), mutex("orphan"));
    let peer = Peer::start(&home.path(), &["hold", "orphan"]);
    peer.says("held");
    peer.kill();
    drop(peer);
    let conn = rusqlite::Connection::open(home.path()).unwrap();
    conn.execute(
        "DELETE FROM clients WHERE id NOT IN (SELECT MIN(id) FROM clients WHERE pid = ?1)",
        [std::process::id()],
    )
    .unwrap();
    until("the lock is free", || !is_busy(&client, &try_request(&lock)));
}

/// Whoever is stopped inside the guard keeps everybody from beating: then nobody is silent.
#[test]
fn the_order_survives_a_process_that_is_stopped_inside_the_guard() {
    let home = Home::new();
    let (client, lock) = (home.open(), mutex("standstill"));
    let held = request(&lock);
    granted(&client, &held);
    let clients: Vec<_> = (0..6).map(|_| home.open()).collect();
    let waiters: Vec<_> = clients
        .iter()
        .map(|client| {
            let wanted = request(&lock);
            queued(client, &wanted);
            (client, wanted)
        })
        .collect();
    let guard = std::fs::File::options().write(true).open(home.side("guard")).unwrap();
    rustix::fs::flock(&guard, rustix::fs::FlockOperation::LockExclusive).unwrap();
    // sleep: longer than the limit after which a waiter counts as silent.
    std::thread::sleep(Duration::from_secs(12));
    client.abandon(&lock, &held.token);
    drop(guard);
    let newcomer = home.open();
    until("the lock is passed on", || {
        run(newcomer.inspect(&lock)).unwrap().is_some_and(|state| state.waiters.len() < 6)
    });
    for (client, wanted) in waiters {
        let told = run(client.confirm(&lock, &wanted.token)).unwrap();
        assert!(matches!(told, Confirmed::Granted(_)), "{told:?}");
        release(client, &wanted);
    }
}
