//! What all handles and leases of one manager share.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use leasehold_core::{Backend, Clock, ErrorKind, HolderInfo, LockId, Namespace, Ttl, Wake};

use crate::{entry::Entry, renew::Renewer, shared_op::SharedOp};

/// One manager: a client of a store, a namespace and the defaults of its locks.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) clock: Arc<dyn Clock>,
    /// The store answers at once, by this clock.
    pub(crate) inline: bool,
    pub(crate) namespace: Namespace,
    pub(crate) info: Arc<HolderInfo>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) ttl: Option<Ttl>,
    pub(crate) renewer: Renewer,
    /// The live locks (rule N1). An entry takes itself out when its last user goes.
    pub(crate) entries: Mutex<HashMap<Arc<LockId>, Weak<Entry>>>,
    /// Acquisitions that are queued, in the order in which they queued.
    pub(crate) waits: Waits,
    /// What ends with the manager and with nothing else here: futures that wait for the loss of a
    /// lease, and watchers.
    pub(crate) ends: Waits,
    pub(crate) life: Life,
}

/// Where a manager is on its way from open to shut down (rule N6).
#[derive(Debug, Default)]
pub(crate) struct Life {
    refusing: AtomicBool,
    ended: AtomicBool,
    leases: AtomicUsize,
    /// Shutdowns that wait for the leases to be returned.
    pub(crate) returned: Waits,
    pub(crate) shutdown: SharedOp<(), leasehold_core::Error>,
}

impl Life {
    /// No new acquisition is accepted.
    pub(crate) fn refuses(&self) -> bool {
        self.refusing.load(Ordering::SeqCst)
    }

    /// The leases of this manager are over.
    pub(crate) fn ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    pub(crate) fn refuse(&self) {
        self.refusing.store(true, Ordering::SeqCst);
    }

    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Release);
    }

    pub(crate) fn leases(&self) -> usize {
        self.leases.load(Ordering::SeqCst)
    }

    /// Counts a grant that is about to be delivered; `false`: it came too late and must be given
    /// back. A shutdown refuses first and counts then, this counts first and asks then: so a lease
    /// is either waited for by a drain or not delivered.
    #[must_use]
    pub(crate) fn lease_begins(&self) -> bool {
        self.leases.fetch_add(1, Ordering::SeqCst);
        if self.refuses() {
            self.lease_ends();
            return false;
        }
        true
    }

    pub(crate) fn lease_ends(&self) {
        // Nobody looks at the count unless the manager is being shut down.
        if self.leases.fetch_sub(1, Ordering::SeqCst) == 1 && self.refuses() {
            self.returned.end_all(&ErrorKind::ShutDown);
        }
    }
}

/// Futures that can be told to stop waiting, in the order in which they began.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waits(Arc<Mutex<Waiting>>);

#[derive(Debug, Default)]
struct Waiting {
    serial: u64,
    by_serial: BTreeMap<u64, (Wake, Arc<Verdict>)>,
}

/// Why a wait must end, once somebody said so.
type Verdict = Mutex<Option<ErrorKind>>;

impl Waits {
    /// Registers a wait that `wake` wakes, until the registration is dropped.
    pub(crate) fn join(&self, wake: Wake) -> Wait {
        let mut waiting = self.lock();
        waiting.serial += 1;
        let serial = waiting.serial;
        let verdict = Arc::<Verdict>::default();
        waiting.by_serial.insert(serial, (wake, Arc::clone(&verdict)));
        Wait { waits: self.clone(), serial, verdict }
    }

    /// Ends every wait that is registered now, in order, and says how many.
    pub(crate) fn end_all(&self, kind: &ErrorKind) -> usize {
        let waits: Vec<_> = self.lock().by_serial.values().cloned().collect();
        for (wake, verdict) in &waits {
            *verdict.lock().unwrap_or_else(PoisonError::into_inner) = Some(kind.clone());
            wake.notify();
        }
        waits.len()
    }

    /// Has every wait that is registered now look again.
    pub(crate) fn look_again(&self) {
        let wakes: Vec<_> = self.lock().by_serial.values().map(|(wake, _)| wake.clone()).collect();
        wakes.iter().for_each(Wake::notify);
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One registered wait.
#[derive(Debug)]
pub(crate) struct Wait {
    waits: Waits,
    serial: u64,
    verdict: Arc<Verdict>,
}

impl Wait {
    /// Why the wait must end, once somebody said so.
    pub(crate) fn verdict(&self) -> Option<ErrorKind> {
        self.verdict.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        let gone = self.waits.lock().by_serial.remove(&self.serial);
        drop(gone);
    }
}
