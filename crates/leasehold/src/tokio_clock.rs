//! Tokio's clock for lease locks, so that a test with paused time moves it (feature `tokio`).

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Waker,
    time::Duration,
};

use leasehold_core::{Clock, LocalTime, clock::TimerId};
use tokio::{
    runtime::Handle,
    task::AbortHandle,
    time::{Instant, sleep_until},
};

/// The clock of one Tokio runtime. It does not count suspend: use it in tests with paused time, and
/// [`SystemClock`](crate::SystemClock), the default, elsewhere.
///
/// ```
/// use std::{sync::Arc, time::Duration};
/// use leasehold::{LockManager, MemoryStore, TokioClock};
///
/// #[tokio::main(flavor = "current_thread", start_paused = true)]
/// async fn main() -> leasehold::Result<()> {
///     let store = MemoryStore::with_clock(Arc::new(TokioClock::current()));
///     let locks = LockManager::new(store.client());
///     let held = locks.mutex("orders")?.lock().await?;
///     // A minute passes at once.
///     let refused = locks.mutex("orders")?.lock().timeout(Duration::from_secs(50)).await;
///     assert!(refused.unwrap_err().is_timeout());
///     held.release().await?;
///     Ok(())
/// }
/// ```
#[derive(Clone)]
pub struct TokioClock {
    runtime: Handle,
    origin: Instant,
    timers: Arc<Mutex<Timers>>,
}

#[derive(Default)]
struct Timers {
    serial: u64,
    tasks: HashMap<u64, AbortHandle>,
}

impl TokioClock {
    /// The clock of the runtime that this is called in; it starts at zero.
    ///
    /// # Panics
    /// Outside of a Tokio runtime.
    #[must_use]
    pub fn current() -> Self {
        Self { runtime: Handle::current(), origin: Instant::now(), timers: Arc::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Timers> {
        self.timers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for TokioClock {
    fn now(&self) -> LocalTime {
        // Asked from another thread, Tokio would answer with the real time.
        let _runtime = self.runtime.enter();
        let elapsed = Instant::now().saturating_duration_since(self.origin);
        LocalTime(u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX))
    }

    fn set_timer(&self, at: LocalTime, waker: Waker) -> TimerId {
        let mut timers = self.lock();
        timers.serial += 1;
        let serial = timers.serial;
        // A time that Tokio cannot express is one that no program lives to see.
        let end = self.origin.checked_add(Duration::from_micros(at.0));
        let clock = self.clone();
        let task = self.runtime.spawn(async move {
            match end {
                Some(end) => sleep_until(end).await,
                None => std::future::pending().await,
            }
            clock.lock().tasks.remove(&serial);
            waker.wake();
        });
        timers.tasks.insert(serial, task.abort_handle());
        TimerId::new(at, serial)
    }

    fn clear_timer(&self, timer: TimerId) {
        let task = self.lock().tasks.remove(&timer.serial());
        if let Some(task) = task {
            task.abort();
        }
    }
}

impl fmt::Debug for TokioClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokioClock").field("now", &self.now()).finish_non_exhaustive()
    }
}
