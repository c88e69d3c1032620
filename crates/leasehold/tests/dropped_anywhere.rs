//! An acquisition that is dropped at any await point leaves no permit taken and no waiter stranded
//! (rules Q4, W7; field report 39). The points are counted, so that a new one cannot be forgotten.

#![cfg(feature = "sqlite")]

mod common;

use std::{
    collections::BTreeSet,
    fs::File,
    path::Path,
    time::{Duration, Instant},
};

use common::{Probe, manual, ms, now};
use leasehold::{Lease, LockManager, NamedMutex, Result};

/// What stands in the way of an acquisition while it is polled, step by step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Point {
    /// Not polled yet.
    Unpolled,
    /// The request is on its way to the store.
    Requesting,
    /// Queued.
    Queued,
    /// Granted, and not seen yet.
    Granted,
    /// The confirmation is on its way.
    Confirming,
    /// Timed out; the leaving is on its way.
    Leaving,
    /// Held.
    Held,
}

#[test]
fn in_memory() {
    let mut points = BTreeSet::new();
    for point in [Point::Unpolled, Point::Queued, Point::Granted, Point::Held] {
        let (locks, _) = manual();
        let orders = locks.mutex("orders").unwrap();
        let holder = now(orders.lock()).unwrap();
        let mut attempt = Probe::new(orders.lock());
        let mut next = None;
        if point > Point::Unpolled {
            assert!(attempt.poll().is_none());
            next = Some(Probe::pending(orders.lock()));
        }
        if point >= Point::Granted {
            now(holder.release()).unwrap();
            assert!(attempt.is_woken());
        }
        let held = (point == Point::Held).then(|| attempt.done().unwrap());
        drop(attempt);
        drop(held);
        drop(holder);
        if let Some(mut next) = next {
            drop(next.granted());
        }
        assert!(now(locks.survey()).unwrap().is_empty(), "{point:?} left something");
        points.insert(point);
    }
    assert_eq!(points.len(), 4);
}

/// While it lives, no transaction of the store begins, so calls wait for the client's thread.
struct Stuck(#[allow(dead_code, reason = "held, not read")] File);

fn stick(store: &Path) -> Stuck {
    let guard = File::options().read(true).write(true).open(store.join("guard")).unwrap();
    guard.lock().unwrap();
    Stuck(guard)
}

#[test]
fn on_sqlite() {
    let directory = tempfile::Builder::new().prefix("leasehold").tempdir().unwrap();
    let url = format!("sqlite:{}", directory.path().join("locks.db").display());
    let side = directory.path().join("locks.db.d");
    let connect = || now(leasehold::connect(&url)).unwrap();
    let (here, there) = (connect(), connect());
    let all = [
        Point::Unpolled,
        Point::Requesting,
        Point::Queued,
        Point::Granted,
        Point::Confirming,
        Point::Leaving,
        Point::Held,
    ];
    let mut points = BTreeSet::new();
    for point in all {
        let orders = here.mutex("orders").unwrap();
        drop_at(point, &orders, &there, &side);
        points.insert(point);
    }
    assert_eq!(points.len(), 7);
}

fn drop_at(point: Point, orders: &NamedMutex, there: &LockManager, side: &Path) {
    let theirs = there.mutex("orders").unwrap();
    let holder = theirs.lock().blocking().unwrap();
    let timeout = if point == Point::Leaving { ms(30) } else { Duration::from_secs(60) };
    let mut attempt = Probe::new(orders.lock().timeout(timeout));
    match point {
        Point::Unpolled => drop(attempt),
        Point::Requesting => {
            let stuck = stick(side);
            assert!(attempt.poll().is_none());
            drop(attempt);
            drop(stuck);
        }
        Point::Queued => {
            queue(&mut attempt, orders);
            drop(attempt);
        }
        Point::Leaving => {
            queue(&mut attempt, orders);
            let stuck = stick(side);
            until("timed out", || attempt.is_woken());
            assert!(attempt.poll().is_none(), "it cannot have left yet");
            drop(attempt);
            drop(stuck);
        }
        Point::Granted | Point::Confirming | Point::Held => {
            queue(&mut attempt, orders);
            holder.release_blocking().unwrap();
            until("woken", || attempt.is_woken());
            if point == Point::Confirming {
                let stuck = stick(side);
                assert!(attempt.poll().is_none());
                drop(attempt);
                drop(stuck);
            } else if point == Point::Held {
                let mut held = None;
                until("held", || {
                    held = attempt.poll();
                    held.is_some()
                });
                drop(held.unwrap().unwrap());
            } else {
                drop(attempt);
            }
        }
    }
    drop(holder);
    // The next one gets in, and nothing is left.
    drop(theirs.lock().timeout(Duration::from_secs(5)).blocking().unwrap());
    until("empty", || pollster::block_on(there.survey()).unwrap().is_empty());
}

fn queue(attempt: &mut Probe<Result<Lease>>, orders: &NamedMutex) {
    assert!(attempt.poll().is_none());
    until("queued", || {
        let _ = attempt.is_woken() && attempt.poll().is_some();
        let state = pollster::block_on(orders.inspect()).unwrap();
        state.is_some_and(|state| state.waiters.len() == 1)
    });
    while attempt.is_woken() {
        assert!(attempt.poll().is_none());
    }
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(20), "{what}: not within 20 s");
        std::thread::yield_now();
    }
}
