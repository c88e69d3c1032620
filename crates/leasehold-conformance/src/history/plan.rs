//! How large a history is, what its locks are, and what each process of it is told.

use std::{path::PathBuf, time::Duration};

use leasehold_core::LockKind;
use serde::{Deserialize, Serialize};

use super::event::{Doing, Id};

/// How much has to happen.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Processes that run at the same time.
    pub processes: u32,
    /// Locks of each kind. More of them let more processes go on while a lock waits for the dead to
    /// run out, where nothing proves a death.
    pub sets: u32,
    /// Grants out of the queue.
    pub hand_offs: usize,
    /// Processes killed while holding, while queued and while claimed: this many of each.
    pub kills_each: usize,
    /// Processes killed at any moment.
    pub kills_anywhere: usize,
    /// Processes stopped for longer than the TTL while holding, queued and claimed.
    pub stops_each: usize,
    /// Times that the store is disturbed.
    pub disturbances: u32,
    /// The TTL of every grant; all are renewed. Whole milliseconds.
    pub ttl: Duration,
}

impl Size {
    /// What CI runs: well under a minute.
    pub const CI: Self = Self {
        processes: 6,
        sets: 1,
        hand_offs: 600,
        kills_each: 12,
        kills_anywhere: 12,
        stops_each: 4,
        disturbances: 6,
        ttl: Self::TTL,
    };

    /// What `cargo xtask soak` runs: some minutes.
    pub const SOAK: Self = Self {
        processes: 8,
        sets: 1,
        hand_offs: 5_200,
        kills_each: 205,
        kills_anywhere: 200,
        stops_each: 40,
        disturbances: 60,
        ttl: Self::TTL,
    };

    /// A TTL for stores that are never away for long.
    pub const TTL: Duration = Duration::from_millis(500);

    /// Nobody waits this long unless it is stranded: a queue is short, and whoever stands still in it
    /// loses its grant by its TTL.
    pub(super) fn wait_max(&self) -> Duration {
        40 * self.ttl
    }
}

/// A lock of a history.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct LockPlan {
    /// Its kind.
    pub(super) kind: LockKind,
    /// Its name.
    pub(super) name: String,
    /// Its capacity.
    pub(super) capacity: u32,
    /// The TTL of its grants.
    pub(super) ttl: Duration,
}

impl LockPlan {
    /// So many times a mutex, a semaphore and a read-write lock, as large as the draw makes them.
    #[must_use]
    pub(super) fn draw(rng: &mut Rng, Size { sets, ttl, .. }: Size) -> Vec<Self> {
        let set = |number: u32| {
            let suffix = if number == 0 { String::new() } else { format!("-{number}") };
            let lock = |kind, name: &str, capacity| Self {
                kind,
                name: format!("{name}{suffix}"),
                capacity,
                ttl,
            };
            [
                lock(LockKind::Mutex, "mutex", 1),
                lock(LockKind::Semaphore, "semaphore", rng.between(2, 5)),
                lock(LockKind::RwLock, "rw-lock", rng.between(2, 5)),
            ]
        };
        (0..sets).flat_map(set).collect()
    }
}

/// What happens to a process after some sections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Fate {
    /// It is killed while it does this.
    Killed(Doing),
    /// It is stopped for longer than its TTL while it does this, and goes on.
    Stopped(Doing),
}

/// One part of a process's life.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Step {
    /// How many sections come first.
    pub(super) sections: u32,
    /// What happens then.
    pub(super) fate: Fate,
}

/// What a process is told when it starts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Assignment {
    /// Its number in the history.
    pub(super) process: u32,
    /// What its choices are drawn from.
    pub(super) seed: u64,
    /// The store.
    pub(super) address: PathBuf,
    /// Where logs and the storage are.
    pub(super) directory: PathBuf,
    /// The locks.
    pub(super) locks: Vec<LockPlan>,
    /// Its life; after the last step it goes on with sections until it is told to finish.
    pub(super) steps: Vec<Step>,
}

/// What a process is told while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Order {
    /// Its fate has been met; it goes on.
    Go,
    /// It ends after the section that it is in.
    Finish,
}

/// What a process tells, beside its log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "tells", rename_all = "kebab-case")]
pub(super) enum Tells {
    /// It has its client.
    Ready,
    /// It does what its next fate is about.
    AtFate {
        /// With which acquisition.
        id: Id,
        /// Of which lock.
        lock: String,
    },
    /// It was granted this many times out of the queue since it told last.
    HandOffs {
        /// How many.
        count: usize,
    },
}

/// Draws numbers that a seed repeats: splitmix64.
#[derive(Clone, Debug)]
pub(super) struct Rng(u64);

impl Rng {
    /// The same seed, the same numbers.
    #[must_use]
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub(super) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from `low` to `high`, both included.
    ///
    /// # Panics
    /// When there is none.
    pub(super) fn between(&mut self, low: u32, high: u32) -> u32 {
        assert!(low <= high, "nothing is between {low} and {high}");
        let drawn = self.next() % (u64::from(high - low) + 1);
        low + u32::try_from(drawn).expect("it is below a u32")
    }

    /// True this often in a hundred.
    pub(super) fn chance(&mut self, percent: u32) -> bool {
        self.between(1, 100) <= percent
    }

    /// One of these.
    ///
    /// # Panics
    /// When there is none.
    pub(super) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        let last = u32::try_from(from.len()).expect("few") - 1;
        &from[self.between(0, last) as usize]
    }
}
