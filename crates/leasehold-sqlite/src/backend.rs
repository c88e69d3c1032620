//! The client of a store, as the contract of `leasehold-core` has it.

use std::{
    fmt,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::Arc,
};

use leasehold_core::{
    Acquire, Acquired, Backend, Binding, Call, Capabilities, ClientId, Clock, Confirmed, Destroyed,
    Extended, Fault, Generation, Grant, LocalTime, LockCounts, LockId, LockState, Namespace,
    Released, Remaining, Renewal, Renewed, StoreTime, Token, Ttl, WatchFor, Watched,
};

use crate::{
    answer::later,
    client::Client,
    config::{default_path, path_of_url},
    open::open,
    place::Place,
    steps::{
        AcquireStep, CancelStep, ConfirmStep, CountsStep, DestroyStep, ExtendStep, InspectStep,
        RebindStep, ReleaseStep, RemainingStep, RenewStep, SurveyStep, UnwatchStep, WatchStep,
    },
    thread::{Close, start},
};

/// One client of an embedded store.
///
/// Opening is blocking: it looks at directories, may create the store and may wait up to 5 s for
/// its guard. A call after that answers at once when nobody else is at the store, and from the
/// client's own thread otherwise; that thread starts with the first need.
///
/// Dropping it ends the client like [`close`](Backend::close), a little later and without blocking.
pub struct SqliteBackend {
    client: Arc<Client>,
}

impl SqliteBackend {
    /// Opens the store whose database is `path`, and creates it if it is not there. Everything else
    /// of the store is in the directory `PATH.d`.
    ///
    /// # Errors
    /// The directory of `path` is missing, or somebody else can write in it; the store belongs to
    /// somebody else, is a link, is open to others, or is on a network or shared file system
    /// (`Unsafe`); another layout version (`Layout`); no store, or damaged (`Corrupt`); rights, a
    /// read-only file system (`Denied`); a full disk (`Full`); another time namespace
    /// (`Unsupported`); somebody holds the store's guard for more than 5 s (`Unavailable`).
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Fault> {
        Ok(Self { client: open(&Place::explicit(path.as_ref())?)? })
    }

    /// Opens the store that a URL names: `sqlite:PATH`, relative or absolute, also
    /// `sqlite:///absolute/path`. `%XX` stands for a byte.
    ///
    /// # Errors
    /// `Unsupported` for anything else, and what [`open`](Self::open) answers.
    pub fn from_url(url: &str) -> Result<Self, Fault> {
        Self::open(path_of_url(url)?)
    }

    /// Opens the default store of this user, at [`default_path`](crate::default_path), in a private
    /// directory that is made if it is not there.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_default() -> Result<Self, Fault> {
        Ok(Self { client: open(&Place::default_at(&default_path()?)?)? })
    }

    /// Where the database is, with the links of its directory resolved.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.client.path().to_owned()
    }

    /// A duplicate of the descriptor that holds this client's liveness lock. As long as one of them
    /// is open in any process, the client counts as alive, and so do its client-bound grants:
    /// `leasehold run` lets its child inherit one. It is close-on-exec.
    ///
    /// # Errors
    /// `Closed` after a close; `Unavailable` when no descriptor is to be had.
    pub fn liveness(&self) -> Result<OwnedFd, Fault> {
        self.client.liveness()
    }
}

impl Backend for SqliteBackend {
    fn store(&self) -> &'static str {
        "sqlite"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { proves_death: true, cross_process: true, inline: false }
    }

    fn client(&self) -> ClientId {
        self.client.id
    }

    fn clock(&self) -> &Arc<dyn Clock> {
        &self.client.clock
    }

    fn store_time(&self, local: LocalTime) -> StoreTime {
        // One clock of one machine: the same numbers.
        StoreTime(local.0)
    }

    fn acquire(&self, request: &Acquire) -> Call<Acquired> {
        if request.binding == Binding::Token && request.ttl.is_none() {
            let message = "a grant that is bound to its token needs a TTL";
            return Call::ready(Err(Fault::new(leasehold_core::FaultKind::Unsupported, message)));
        }
        self.client.call(AcquireStep::new(request))
    }

    fn confirm(&self, lock: &Arc<LockId>, token: &Token) -> Call<Confirmed> {
        self.client.call(ConfirmStep::new(lock, token))
    }

    fn renew(&self, leases: Vec<Renewal>) -> Call<Vec<Renewed>> {
        self.client.call(RenewStep(leases))
    }

    fn extend(&self, lock: &Arc<LockId>, token: &Token, ttl: Option<Ttl>) -> Call<Extended> {
        self.client.call(ExtendStep { lock: Arc::clone(lock), token: token.clone(), ttl })
    }

    fn rebind(
        &self,
        lock: &Arc<LockId>,
        token: &Token,
        binding: Binding,
        ttl: Option<Ttl>,
    ) -> Call<Option<Grant>> {
        let (lock, token) = (Arc::clone(lock), token.clone());
        self.client.call(RebindStep { lock, token, binding, ttl })
    }

    fn release(&self, lock: &Arc<LockId>, token: &Token) -> Call<Released> {
        self.client.call(ReleaseStep::new(lock, token))
    }

    fn abandon(&self, lock: &Arc<LockId>, token: &Token) {
        // Messages are worked off in order, so it comes after an acquisition that is on its way.
        self.client.tell(ReleaseStep::new(lock, token));
    }

    fn remaining(&self, lock: &Arc<LockId>, token: &Token) -> Call<Remaining> {
        self.client.call(RemainingStep { lock: Arc::clone(lock), token: token.clone() })
    }

    fn watch(
        &self,
        lock: &Arc<LockId>,
        generation: Option<Generation>,
        id: &Token,
        what: WatchFor,
    ) -> Call<Watched> {
        let (lock, id) = (Arc::clone(lock), id.clone());
        self.client.call(WatchStep { lock, generation, id, what })
    }

    fn unwatch(&self, lock: &Arc<LockId>, id: &Token) {
        self.client.tell(UnwatchStep { lock: Arc::clone(lock), id: id.clone() });
    }

    fn cancel_all(&self, lock: &Arc<LockId>, reason: &str) -> Call<u64> {
        self.client.call(CancelStep { lock: Arc::clone(lock), reason: reason.to_owned() })
    }

    fn destroy(
        &self,
        lock: &Arc<LockId>,
        generation: Option<Generation>,
        reason: &str,
    ) -> Call<Destroyed> {
        let (lock, reason) = (Arc::clone(lock), reason.to_owned());
        self.client.call(DestroyStep { lock, generation, reason })
    }

    fn counts(&self, lock: &Arc<LockId>) -> Call<Option<LockCounts>> {
        self.client.call(CountsStep(Arc::clone(lock)))
    }

    fn inspect(&self, lock: &Arc<LockId>) -> Call<Option<LockState>> {
        self.client.call(InspectStep(Arc::clone(lock)))
    }

    fn survey(&self, namespace: Option<&Namespace>) -> Call<Vec<LockState>> {
        self.client.call(SurveyStep(namespace.cloned()))
    }

    fn close(&self) -> Call<()> {
        if self.client.is_closed() || !self.client.is_at_home() {
            // In a fork there is nothing to end: the client is its parent's.
            return Call::ready(Ok(()));
        }
        let (reply, call) = later();
        match self.client.send(Box::new(Close::new(reply))) {
            Ok(()) => call,
            Err(fault) => Call::ready(Err(fault)),
        }
    }
}

impl Drop for SqliteBackend {
    fn drop(&mut self) {
        if !self.client.is_at_home() {
            // A copy made by fork: closing its descriptors is harmless, closing its database would
            // meddle with the parent's.
            std::mem::forget(Arc::clone(&self.client));
        } else if !self.client.is_closed() {
            self.client.mailbox.quit(&self.client.pipe);
            // Without a thread, the freed liveness lock tells the others that the client ended.
            let _ = start(&self.client);
        }
    }
}

impl fmt::Debug for SqliteBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteBackend")
            .field("path", &self.client.path())
            .field("client", &self.client.id)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use leasehold_core::{FaultKind, LockKind, LockName};

    use super::*;

    /// A test cannot fork without unsafe code, so it makes the client believe that it was opened by
    /// another process.
    #[test]
    fn in_a_fork_every_call_is_refused_and_nothing_is_touched() {
        let directory = tempfile::tempdir().unwrap();
        let mut backend = SqliteBackend::open(directory.path().join("locks.db")).unwrap();
        let client = Arc::get_mut(&mut backend.client).expect("its thread has not started");
        client.pretend_forked();
        let name = LockName::new("fork").unwrap();
        let lock = Arc::new(LockId::new(Namespace::default(), LockKind::Mutex, name));
        let fault = backend.counts(&lock).into_ready().unwrap().unwrap_err();
        assert_eq!(fault.kind(), FaultKind::Unsupported);
        assert!(fault.to_string().contains("fork"), "{fault}");
        assert_eq!(backend.liveness().unwrap_err().kind(), FaultKind::Unsupported);
        backend.abandon(&lock, &Token::random());
        backend.close().into_ready().unwrap().unwrap();
        let alive = backend.client.id;
        drop(backend);
        // The parent's client lives on: its lock is held still.
        let side = directory.path().join("locks.db.d/clients").join(format!("{alive}.alive"));
        let file = std::fs::File::open(side).unwrap();
        let shared = rustix::fs::FlockOperation::NonBlockingLockShared;
        assert!(rustix::fs::flock(&file, shared).is_err());
    }
}
