//! `cargo xtask bench keyed`: locks by key, side by side.

mod memory;
mod table;

use std::{future::poll_fn, sync::Arc, task::Poll, time::Duration};

use leasehold_benches::{Budget, Report, Result, Unit, compete, runtime};
use leasehold_sync::{Mutex, scope};
use tokio::runtime::Runtime;

use crate::table::{Dash, Floor, Lockable, Ours, Table};

const FULL: Budget = Budget { rounds: 9, run: Duration::from_millis(200) };
const QUICK: Budget = Budget { rounds: 3, run: Duration::from_millis(50) };

fn main() -> Result<()> {
    let mut report = Report::from_arguments(FULL, QUICK)?;
    let (one, two) = (runtime(1), runtime(2));
    for (work, keys) in [("keyed uncontended 10k", 10_000), ("keyed uncontended 1M", 1_000_000)] {
        report.measure(work, Unit::NS, (keys == 10_000).then_some(50.0), |row| {
            row.ours(|run| uncontended::<Ours>(&one, run, keys));
            row.floor(|run| uncontended::<Floor>(&one, run, keys));
            row.peer("lockable", |run| uncontended::<Lockable>(&one, run, keys));
            row.peer("dashmap+tokio", |run| uncontended::<Dash>(&one, run, keys));
        });
    }
    report.measure("keyed 8 tasks 10k", Unit::MILLIONS_PER_SECOND, Some(20.0), |row| {
        row.ours(|run| spread::<Ours>(&two, run));
        row.floor(|run| spread::<Floor>(&two, run));
        row.peer("lockable", |run| spread::<Lockable>(&two, run));
        row.peer("dashmap+tokio", |run| spread::<Dash>(&two, run));
    });
    for (work, waiters) in [("keyed 32 waiters one key", 32), ("keyed 128 waiters one key", 128)] {
        report.measure(work, Unit::NS, None, |row| {
            row.ours(|run| one_key::<Ours>(&one, run, waiters));
            row.peer("lockable", |run| one_key::<Lockable>(&one, run, waiters));
            row.peer("dashmap+tokio", |run| one_key::<Dash>(&one, run, waiters));
        });
    }
    report.measure("checked over plain", Unit::NS, Some(25.0), |row| {
        row.ours(|run| checked_over_plain(&one, run));
    });
    memory::measure(&mut report);
    report.finish()
}

/// One task that goes through the keys.
fn uncontended<T: Table>(runtime: &Runtime, run: Duration, keys: u64) -> f64 {
    let table = Arc::new(T::default());
    let contest = compete(runtime, run, 1, |_, turns| {
        let table = Arc::clone(&table);
        async move {
            for key in (0..keys).cycle() {
                if !turns.go_on() {
                    break;
                }
                drop(table.lock(key).await);
                turns.done();
            }
        }
    });
    contest.ns_per_turn()
}

/// Eight tasks, each of which goes through 10,000 keys from a place of its own.
fn spread<T: Table>(runtime: &Runtime, run: Duration) -> f64 {
    let table = Arc::new(T::default());
    let contest = compete(runtime, run, 8, |index, turns| {
        let table = Arc::clone(&table);
        async move {
            for key in (0..10_000).cycle().skip(index * 1250) {
                if !turns.go_on() {
                    break;
                }
                drop(table.lock(key).await);
                turns.done();
            }
        }
    });
    contest.turns_per_second() / 1e6
}

/// Tasks that fight for one key: the holder is queued again inside, behind all others.
fn one_key<T: Table>(runtime: &Runtime, run: Duration, tasks: usize) -> f64 {
    let table = Arc::new(T::default());
    let contest = compete(runtime, run, tasks, |_, turns| {
        let table = Arc::clone(&table);
        async move {
            while turns.go_on() {
                let _guard = table.lock(7).await;
                requeue().await;
                turns.done();
            }
        }
    });
    contest.ns_per_turn()
}

/// What `run_exclusive` in a frame costs more than `lock`, of a free mutex: nanoseconds.
fn checked_over_plain(runtime: &Runtime, run: Duration) -> f64 {
    let mutex = Arc::new(Mutex::new(0_u64));
    let plain = compete(runtime, run / 2, 1, |_, turns| {
        let mutex = Arc::clone(&mutex);
        async move {
            while turns.go_on() {
                *mutex.lock().await += 1;
                turns.done();
            }
        }
    });
    let checked = compete(runtime, run / 2, 1, |_, turns| {
        let mutex = Arc::clone(&mutex);
        scope(async move {
            while turns.go_on() {
                let counted = mutex.run_exclusive(async |count| *count += 1);
                counted.await.expect("nobody else is here");
                turns.done();
            }
        })
    });
    checked.ns_per_turn() - plain.ns_per_turn()
}

/// Lets the others run, and costs no look at the runtime's timers and sockets.
async fn requeue() {
    let mut queued = false;
    poll_fn(move |cx| {
        if std::mem::replace(&mut queued, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
