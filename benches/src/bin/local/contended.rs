//! Many tasks, one lock, in spawned tasks of Tokio.
//!
//! *Hand-off*: the holder is queued again inside of its section, behind the others, so every release
//! hands the lock over. *Empty section*: nothing happens inside. *Read-mostly*: 95 reads
//! to 5 writes.

use std::{cell::RefCell, hint::black_box, rc::Rc, sync::Arc, task::Poll, time::Duration};

use leasehold_benches::{
    Contenders, Contest, Goal,
    Place::{self, Ours, Peer},
    Report, Row, Turns, Unit, compete, runtime,
};
use tokio::task::yield_now;

const MINUTE: Duration = Duration::from_secs(60);
/// The turns of the busiest task over those of the idlest one, where turns are strictly in order.
const SPREAD_GOAL: f64 = 1.05;

/// A row of tasks that compete, and how evenly they got their turns.
struct Tasks<'a> {
    row: &'a mut Contenders<'static>,
    spread: Rc<RefCell<Row>>,
    tasks: usize,
    threads: usize,
}

/// Adds a contender: tasks that repeat `$operation` with `$lock` until time is up.
macro_rules! contender {
    ($tasks:ident, $place:expr, $new:expr, |$lock:ident, $turn:ident| $operation:expr) => {
        $tasks.contender(
            $place,
            move || Arc::new($new),
            |lock, turns| {
                let $lock = Arc::clone(lock);
                async move {
                    let mut $turn = 0_u64;
                    while turns.go_on() {
                        $operation;
                        turns.done();
                        $turn += 1;
                    }
                    black_box($turn);
                }
            },
        );
    };
}

pub(crate) fn measure(report: &mut Report) {
    for threads in [1, 2] {
        let threads_text = if threads == 1 { "1 thread" } else { "2 threads" };
        for tasks in [8, 64, 1000] {
            let work = format!("hand-off {tasks} tasks, {threads_text}");
            let goal = Goal::TimesPeer("tokio", if threads == 1 { 0.75 } else { 0.8 });
            row(report, &work, (tasks, threads), goal, SPREAD_GOAL.into(), hand_off);
        }
        for tasks in [8, 64, 1000] {
            let work = format!("hand-off {tasks} tasks, {threads_text} with timeout");
            let goal = Goal::TimesPeer("tokio", 0.6);
            row(report, &work, (tasks, threads), goal, SPREAD_GOAL.into(), hand_off_with_timeout);
        }
    }
    let goal = Goal::TimesPeer("tokio", 0.7);
    row(report, "empty section, 64 tasks, 2 threads", (64, 2), goal, Goal::None, empty_section);
    let goal = Goal::TimesPeer("tokio", 0.75);
    row(report, "read-mostly, 64 tasks, 2 threads", (64, 2), goal, Goal::None, read_mostly);
}

/// Measures a row, and with it one that says how evenly the tasks got their turns.
fn row(
    report: &mut Report,
    work: &str,
    (tasks, threads): (usize, usize),
    goal: Goal,
    spread_goal: Goal,
    contenders: impl FnOnce(&mut Tasks<'_>),
) {
    let spread = Row::new(format!("{work}: turns max/min"), Unit::RATIO).goal(spread_goal);
    let spread = Rc::new(RefCell::new(spread));
    let measured = report.measure(work, Unit::NS, goal, |row| {
        contenders(&mut Tasks { row, spread: Rc::clone(&spread), tasks, threads });
    });
    if measured.is_some() {
        report.add(&spread.borrow());
    }
}

impl Tasks<'_> {
    fn contender<L: 'static, F: Future<Output = ()> + Send + 'static>(
        &mut self,
        place: Place,
        new: impl Fn() -> L + 'static,
        work: impl Fn(&L, Turns) -> F + 'static,
    ) {
        let (runtime, tasks) = (runtime(self.threads), self.tasks);
        let spread = Rc::clone(&self.spread);
        self.row.with(place, move |run| {
            let lock = new();
            let contest = compete(&runtime, run, tasks, |_, turns| work(&lock, turns));
            note_spread(&mut spread.borrow_mut(), place, contest);
            contest.ns_per_turn()
        });
    }
}

fn note_spread(row: &mut Row, place: Place, contest: Contest) {
    match place {
        Peer(name) => row.add_peer(name, contest.spread()),
        _ => row.add_ours(contest.spread()),
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

fn hand_off(tasks: &mut Tasks<'_>) {
    contender!(tasks, Ours, leasehold_sync::Mutex::new(0_u64), |lock, turn| {
        let mut guard = lock.lock().await;
        *guard += 1;
        requeue().await;
    });
    contender!(tasks, Peer("tokio"), tokio::sync::Mutex::new(0_u64), |lock, turn| {
        let mut guard = lock.lock().await;
        *guard += 1;
        requeue().await;
    });
    let new = || futures_intrusive::sync::Mutex::new(0_u64, true);
    contender!(tasks, Peer("futures-intrusive"), new(), |lock, turn| {
        let mut guard = lock.lock().await;
        *guard += 1;
        requeue().await;
    });
    contender!(tasks, Peer("async-lock"), async_lock::Mutex::new(0_u64), |lock, turn| {
        let mut guard = lock.lock().await;
        *guard += 1;
        requeue().await;
    });
    contender!(tasks, Peer("maitake-sync"), maitake_sync::Mutex::new(0_u64), |lock, turn| {
        let mut guard = lock.lock().await;
        *guard += 1;
        requeue().await;
    });
}

fn hand_off_with_timeout(tasks: &mut Tasks<'_>) {
    contender!(tasks, Ours, leasehold_sync::Mutex::new(0_u64), |lock, turn| {
        if let Ok(mut guard) = lock.lock().timeout(MINUTE).await {
            *guard += 1;
            requeue().await;
        }
    });
    contender!(tasks, Peer("tokio"), tokio::sync::Mutex::new(0_u64), |lock, turn| {
        if let Ok(mut guard) = tokio::time::timeout(MINUTE, lock.lock()).await {
            *guard += 1;
            requeue().await;
        }
    });
}

fn empty_section(tasks: &mut Tasks<'_>) {
    contender!(tasks, Ours, leasehold_sync::Mutex::new(0_u64), |lock, turn| {
        *lock.lock().await += 1;
    });
    contender!(tasks, Peer("tokio"), tokio::sync::Mutex::new(0_u64), |lock, turn| {
        *lock.lock().await += 1;
    });
    let new = || futures_intrusive::sync::Mutex::new(0_u64, true);
    contender!(tasks, Peer("futures-intrusive"), new(), |lock, turn| {
        *lock.lock().await += 1;
        // It has no part in Tokio's budget, so it has to let others run by itself.
        if turn % 128 == 127 {
            yield_now().await;
        }
    });
    contender!(tasks, Peer("xutex"), xutex::AsyncMutex::new(0_u64), |lock, turn| {
        *lock.lock().await += 1;
        if turn % 128 == 127 {
            yield_now().await;
        }
    });
}

fn read_mostly(tasks: &mut Tasks<'_>) {
    contender!(tasks, Ours, leasehold_sync::RwLock::new(0_u64), |lock, turn| {
        if turn % 20 == 19 {
            *lock.write().await += 1;
        } else {
            black_box(*lock.read().await);
        }
    });
    contender!(tasks, Peer("tokio"), tokio::sync::RwLock::new(0_u64), |lock, turn| {
        if turn % 20 == 19 {
            *lock.write().await += 1;
        } else {
            black_box(*lock.read().await);
        }
    });
    contender!(tasks, Peer("maitake-sync"), maitake_sync::RwLock::new(0_u64), |lock, turn| {
        if turn % 20 == 19 {
            *lock.write().await += 1;
        } else {
            black_box(*lock.read().await);
        }
        if turn % 128 == 127 {
            yield_now().await;
        }
    });
    contender!(tasks, Peer("async-lock"), async_lock::RwLock::new(0_u64), |lock, turn| {
        if turn % 20 == 19 {
            *lock.write().await += 1;
        } else {
            black_box(*lock.read().await);
        }
        if turn % 128 == 127 {
            yield_now().await;
        }
    });
}
