//! How often the threads of a process were woken, as the kernel counts it.

use std::{collections::BTreeMap, fs, io, thread::sleep, time::Duration};

/// Voluntary context switches of each thread of a process: each is one sleep, and so one wake-up.
fn voluntary_switches(pid: u32) -> io::Result<BTreeMap<String, u64>> {
    let mut switches = BTreeMap::new();
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        let thread = thread?;
        // A thread may end while it is looked at.
        let Ok(status) = fs::read_to_string(thread.path().join("status")) else { continue };
        let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        let count = count.and_then(|count| count.trim().parse().ok());
        let id = thread.file_name().to_string_lossy().into_owned();
        switches.insert(id, count.ok_or_else(|| io::Error::other("no count of switches"))?);
    }
    Ok(switches)
}

/// The wake-ups of a process since a moment.
#[derive(Debug)]
pub struct WakeUps {
    pid: u32,
    before: BTreeMap<String, u64>,
}

impl WakeUps {
    /// Begins to count.
    ///
    /// # Errors
    /// The process is gone.
    pub fn of(pid: u32) -> io::Result<Self> {
        Ok(Self { pid, before: voluntary_switches(pid)? })
    }

    /// How many there are in each second of the next `window`.
    ///
    /// # Errors
    /// The process is gone.
    pub fn per_second(pid: u32, window: Duration) -> io::Result<f64> {
        let begun = Self::of(pid)?;
        sleep(window);
        Ok(begun.so_far()? as f64 / window.as_secs_f64())
    }

    /// How many there were. A thread that ended meanwhile was awake at least once.
    ///
    /// # Errors
    /// The process is gone.
    pub fn so_far(&self) -> io::Result<u64> {
        let now = voluntary_switches(self.pid)?;
        let ended = self.before.keys().filter(|id| !now.contains_key(*id)).count() as u64;
        let woken = now.iter().map(|(id, count)| count - self.before.get(id).unwrap_or(&0));
        Ok(ended + woken.sum::<u64>())
    }
}
