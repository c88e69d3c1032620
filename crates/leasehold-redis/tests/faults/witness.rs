//! Who looks on while a lock is contended.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use leasehold::{FencingToken, Lease, LockManager, NamedMutex};

/// Sees every visit of one lock of capacity 1.
#[derive(Debug, Default)]
pub(crate) struct Witness {
    inside: AtomicBool,
    last: Mutex<Option<FencingToken>>,
    visits: AtomicU64,
}

impl Witness {
    /// Takes a turn: nobody else is inside, and the fencing token is larger than any before.
    pub(crate) async fn visit(&self, mutex: &NamedMutex, errors: Errors) {
        let lease = lock(mutex, errors).await;
        self.enter(&lease);
        // Others get a chance to come in.
        tokio::task::yield_now().await;
        self.leave();
        release(&lease, errors).await;
    }

    pub(crate) fn enter(&self, lease: &Lease) {
        assert!(!self.inside.swap(true, Ordering::SeqCst), "two are inside at once");
        self.note(lease);
    }

    pub(crate) fn leave(&self) {
        assert!(self.inside.swap(false, Ordering::SeqCst), "nobody was inside");
    }

    /// Only looks at the fencing token.
    pub(crate) fn note(&self, lease: &Lease) {
        let fence = lease.fencing_token();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(last.is_none_or(|last| last < fence), "{fence:?} came after {last:?}");
        *last = Some(fence);
        self.visits.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn visits(&self) -> u64 {
        self.visits.load(Ordering::Relaxed)
    }
}

/// What those who ask may be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Errors {
    /// Nothing: whatever goes wrong is mended within the time of a command.
    Hidden,
    /// That nothing answers within the time of a command, which must leave nothing behind.
    Unanswered,
}

pub(crate) async fn lock(mutex: &NamedMutex, errors: Errors) -> Lease {
    loop {
        match mutex.lock().await {
            Ok(lease) => return lease,
            Err(error) => {
                assert_eq!(errors, Errors::Unanswered, "{error}");
                assert!(error.is_retryable() && !error.is_timeout(), "{error}");
            }
        }
    }
}

pub(crate) async fn release(lease: &Lease, errors: Errors) {
    loop {
        match lease.release().await {
            Ok(was_held) => {
                assert!(was_held || errors == Errors::Unanswered, "it was told to be gone");
                return;
            }
            Err(error) => {
                assert_eq!(errors, Errors::Unanswered, "{error}");
                assert!(error.is_retryable(), "{error}");
            }
        }
    }
}

/// Has so many tasks of each manager take so many turns each, all of one lock, without an error.
pub(crate) async fn contend(managers: &[LockManager], name: &str, tasks: usize, turns: usize) {
    contend_with(managers, name, tasks, turns, Errors::Hidden).await;
}

/// The same, with errors.
pub(crate) async fn contend_with(
    managers: &[LockManager],
    name: &str,
    tasks: usize,
    turns: usize,
    errors: Errors,
) {
    let witness = Arc::new(Witness::default());
    let mut running = Vec::new();
    for locks in managers {
        for _ in 0..tasks {
            let (mutex, witness) = (locks.mutex(name).expect("a name"), Arc::clone(&witness));
            running.push(tokio::spawn(async move {
                for _ in 0..turns {
                    witness.visit(&mutex, errors).await;
                }
            }));
        }
    }
    for task in running {
        task.await.expect("every turn was taken, one at a time");
    }
    assert_eq!(witness.visits(), (managers.len() * tasks * turns) as u64);
}
