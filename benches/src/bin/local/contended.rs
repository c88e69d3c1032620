//! Many tasks, one lock, in spawned tasks of Tokio.
//!
//! *Hand-off*: the holder is queued again inside of its section, behind the others, so every release
//! hands the lock over. *Empty section*: nothing happens inside. *Read-mostly*: 95 reads
//! to 5 writes.

use std::{
    hint::black_box,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
    time::{Duration, Instant},
};

use tokio::{runtime::Runtime, task::yield_now};

use crate::{
    OURS, Rows,
    row::{Row, Sample},
};

const MINUTE: Duration = Duration::from_secs(60);

/// Adds a contender: `$tasks` tasks that repeat `$operation` with `$lock` until time is up.
macro_rules! contender {
    ($row:ident, $name:expr, $threads:expr, $tasks:expr, $new:expr, |$lock:ident, $turn:ident| $operation:expr) => {
        let runtime = runtime($threads);
        $row = $row.with($name, move |run| {
            let lock = Arc::new($new);
            compete(&runtime, run, $tasks, move |stop| {
                let $lock = Arc::clone(&lock);
                async move {
                    let mut $turn = 0_u64;
                    while !stop.load(Ordering::Relaxed) {
                        $operation;
                        $turn += 1;
                    }
                    $turn
                }
            })
        });
    };
}

pub(crate) fn rows() -> Rows {
    let mut rows = Vec::new();
    for threads in [1, 2] {
        for tasks in [8, 64, 1000] {
            rows.push(hand_off(tasks, threads));
        }
        for tasks in [8, 64, 1000] {
            rows.push(hand_off_with_timeout(tasks, threads));
        }
    }
    rows.push(empty_section(64, 2));
    rows.push(read_mostly(64, 2));
    rows
}

fn runtime(threads: usize) -> Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_time()
        .build()
        .expect("a runtime")
}

/// Runs the tasks for about that long. Every task takes part until all have been told to stop.
fn compete<F: Future<Output = u64> + Send + 'static>(
    runtime: &Runtime,
    run: Duration,
    tasks: usize,
    work: impl Fn(Arc<AtomicBool>) -> F,
) -> Sample {
    let stop = Arc::new(AtomicBool::new(false));
    let start = Instant::now();
    let running: Vec<_> = (0..tasks).map(|_| runtime.spawn(work(Arc::clone(&stop)))).collect();
    // sleep: the measured time itself
    std::thread::sleep(run);
    stop.store(true, Ordering::Relaxed);
    let took = start.elapsed();
    let turns: Vec<u64> = running
        .into_iter()
        .map(|task| runtime.block_on(task).expect("the work does not panic"))
        .collect();
    let (most, fewest) = (turns.iter().max(), turns.iter().min());
    Sample {
        took,
        operations: turns.iter().sum::<u64>().max(1),
        turns: most.copied().zip(fewest.copied()),
    }
}

/// Lets the others run, and costs no look at the runtime's timers and sockets as `yield_now` does.
fn requeue() -> impl Future<Output = ()> {
    let mut queued = false;
    std::future::poll_fn(move |cx| {
        if std::mem::replace(&mut queued, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
}

fn threads_text(threads: usize) -> String {
    format!("{threads} thread{}", if threads == 1 { "" } else { "s" })
}

fn hand_off(tasks: usize, threads: usize) -> Row {
    let mut row = Row::new(format!("hand-off {tasks} tasks, {}", threads_text(threads)));
    contender!(row, OURS, threads, tasks, leasehold_sync::Mutex::new(0_u64), |lock, turn| {
        let mut guard = lock.lock().await;
        *guard += 1;
        requeue().await;
    });
    contender!(row, "tokio", threads, tasks, tokio::sync::Mutex::new(0_u64), |lock, turn| {
        let mut guard = lock.lock().await;
        *guard += 1;
        requeue().await;
    });
    let new = || futures_intrusive::sync::Mutex::new(0_u64, true);
    contender!(row, "futures-intrusive", threads, tasks, new(), |lock, turn| {
        let mut guard = lock.lock().await;
        *guard += 1;
        requeue().await;
    });
    contender!(row, "async-lock", threads, tasks, async_lock::Mutex::new(0_u64), |lock, turn| {
        let mut guard = lock.lock().await;
        *guard += 1;
        requeue().await;
    });
    contender!(
        row,
        "maitake-sync",
        threads,
        tasks,
        maitake_sync::Mutex::new(0_u64),
        |lock, turn| {
            let mut guard = lock.lock().await;
            *guard += 1;
            requeue().await;
        }
    );
    row
}

fn hand_off_with_timeout(tasks: usize, threads: usize) -> Row {
    let work = format!("hand-off {tasks} tasks, {} with timeout", threads_text(threads));
    let mut row = Row::new(work);
    contender!(row, OURS, threads, tasks, leasehold_sync::Mutex::new(0_u64), |lock, turn| {
        if let Ok(mut guard) = lock.lock().timeout(MINUTE).await {
            *guard += 1;
            requeue().await;
        }
    });
    contender!(row, "tokio", threads, tasks, tokio::sync::Mutex::new(0_u64), |lock, turn| {
        if let Ok(mut guard) = tokio::time::timeout(MINUTE, lock.lock()).await {
            *guard += 1;
            requeue().await;
        }
    });
    row
}

fn empty_section(tasks: usize, threads: usize) -> Row {
    let work = format!("empty section, {tasks} tasks, {}", threads_text(threads));
    let mut row = Row::new(work);
    contender!(row, OURS, threads, tasks, leasehold_sync::Mutex::new(0_u64), |lock, turn| {
        *lock.lock().await += 1;
    });
    contender!(row, "tokio", threads, tasks, tokio::sync::Mutex::new(0_u64), |lock, turn| {
        *lock.lock().await += 1;
    });
    let new = || futures_intrusive::sync::Mutex::new(0_u64, true);
    contender!(row, "futures-intrusive", threads, tasks, new(), |lock, turn| {
        *lock.lock().await += 1;
        // It has no part in Tokio's budget, so it has to let others run by itself.
        if turn % 128 == 127 {
            yield_now().await;
        }
    });
    contender!(row, "xutex", threads, tasks, xutex::AsyncMutex::new(0_u64), |lock, turn| {
        *lock.lock().await += 1;
        if turn % 128 == 127 {
            yield_now().await;
        }
    });
    row
}

fn read_mostly(tasks: usize, threads: usize) -> Row {
    let work = format!("read-mostly, {tasks} tasks, {}", threads_text(threads));
    let mut row = Row::new(work);
    contender!(row, OURS, threads, tasks, leasehold_sync::RwLock::new(0_u64), |lock, turn| {
        if turn % 20 == 19 {
            *lock.write().await += 1;
        } else {
            black_box(*lock.read().await);
        }
    });
    contender!(row, "tokio", threads, tasks, tokio::sync::RwLock::new(0_u64), |lock, turn| {
        if turn % 20 == 19 {
            *lock.write().await += 1;
        } else {
            black_box(*lock.read().await);
        }
    });
    contender!(
        row,
        "maitake-sync",
        threads,
        tasks,
        maitake_sync::RwLock::new(0_u64),
        |lock, turn| {
            if turn % 20 == 19 {
                *lock.write().await += 1;
            } else {
                black_box(*lock.read().await);
            }
            if turn % 128 == 127 {
                yield_now().await;
            }
        }
    );
    contender!(row, "async-lock", threads, tasks, async_lock::RwLock::new(0_u64), |lock, turn| {
        if turn % 20 == 19 {
            *lock.write().await += 1;
        } else {
            black_box(*lock.read().await);
        }
        if turn % 128 == 127 {
            yield_now().await;
        }
    });
    row
}
