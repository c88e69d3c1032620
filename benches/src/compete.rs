//! Tasks of a Tokio runtime that repeat the same work for a while.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::sleep,
    time::{Duration, Instant},
};

use tokio::runtime::{Builder, Runtime};

/// How long a task may take to get its first turn before the measurement begins without it.
const FIRST_TURN_BOUND: Duration = Duration::from_secs(60);

/// A runtime of this many workers, as an application has it.
///
/// # Panics
/// No threads can be started.
#[must_use]
pub fn runtime(workers: usize) -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(workers)
        .enable_time()
        .build()
        .expect("threads for a runtime")
}

/// The turns of one task.
#[derive(Debug)]
pub struct Turns {
    stop: Arc<AtomicBool>,
    count: Arc<Count>,
}

/// On a cache line of its own, or tasks would slow each other down by counting.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Count(AtomicU64);

impl Count {
    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Turns {
    /// Whether to take another turn.
    #[must_use]
    pub fn go_on(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }

    /// Counts a turn. One task writes, so that it costs a load and a store.
    pub fn done(&self) {
        self.count.0.store(self.count.get() + 1, Ordering::Relaxed);
    }
}

/// What the tasks did in the measured time.
#[derive(Clone, Copy, Debug)]
pub struct Contest {
    pub took: Duration,
    pub turns: u64,
    /// The turns of the busiest task, and of the idlest one.
    pub most: u64,
    pub fewest: u64,
}

impl Contest {
    #[must_use]
    pub fn ns_per_turn(&self) -> f64 {
        self.took.as_secs_f64() * 1e9 / self.turns.max(1) as f64
    }

    /// The turns of the busiest task over those of the idlest one.
    #[must_use]
    pub fn spread(&self) -> f64 {
        self.most as f64 / self.fewest.max(1) as f64
    }

    #[must_use]
    pub fn turns_per_second(&self) -> f64 {
        self.turns as f64 / self.took.as_secs_f64()
    }
}

/// Spawns the tasks, waits until each has had a turn, and counts the turns of the next `window`:
/// while tasks are still being spawned, the first ones are among themselves.
///
/// # Panics
/// A task panics.
pub fn compete<F: Future<Output = ()> + Send + 'static>(
    runtime: &Runtime,
    window: Duration,
    tasks: usize,
    mut work: impl FnMut(usize, Turns) -> F,
) -> Contest {
    let stop = Arc::new(AtomicBool::new(false));
    let counts: Vec<_> = (0..tasks).map(|_| Arc::<Count>::default()).collect();
    let running: Vec<_> = counts
        .iter()
        .enumerate()
        .map(|(index, count)| {
            let turns = Turns { stop: Arc::clone(&stop), count: Arc::clone(count) };
            runtime.spawn(work(index, turns))
        })
        .collect();
    let turns = || counts.iter().map(|count| count.get()).collect::<Vec<_>>();
    let begun = Instant::now();
    while counts.iter().any(|count| count.get() == 0)
        && begun.elapsed() < FIRST_TURN_BOUND
        && !running.iter().any(tokio::task::JoinHandle::is_finished)
    {
        sleep(Duration::from_millis(1));
    }
    let (start, before) = (Instant::now(), turns());
    sleep(window);
    let (after, took) = (turns(), start.elapsed());
    stop.store(true, Ordering::Relaxed);
    for task in running {
        runtime.block_on(task).expect("the work does not panic");
    }
    let turns = || after.iter().zip(&before).map(|(after, before)| after - before);
    let (most, fewest) = (turns().max().unwrap_or(0), turns().min().unwrap_or(0));
    Contest { took, turns: turns().sum(), most, fewest }
}
