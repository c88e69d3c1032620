//! What a frame holds, for as long as it does.

use std::{
    any::Any,
    fmt,
    num::NonZeroU32,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use super::{
    ask::{Access, Ask},
    chain, graph,
    once::OnceArc,
};
use crate::error::Place;

/// A grant that ends with its frame: a *structured hold*. It lives inside of the future of
/// `run_exclusive` or `run_shared`, and is recorded elsewhere only once somebody has to know.
pub struct Hold {
    ask: Ask,
    /// Its id in the graph, once a request waits in its frame; else 0. Written by who polls the
    /// frame and by who drops it, so never by two at once.
    published: AtomicU64,
    /// Once others share the grant or may come to.
    shared: OnceArc<Shared>,
    over: bool,
}

/// The part of a grant that outlives the frame which took it: nested reads share it, and
/// `.in_current_scope()` remembers it.
pub(crate) struct Shared {
    /// How many guards share the grant; 0: it is over.
    users: AtomicUsize,
    /// As [`Ask::grant`].
    grant: Option<NonZeroU32>,
    lease: Option<Lease>,
}

/// What a shared lease is. It is kept by those who use it, not by who remembers it.
type Lease = Weak<dyn Any + Send + Sync>;

/// A read within a read: one guard more on a grant that an enclosing frame has (rule R2).
#[must_use = "the grant is shared already and has to be left"]
pub struct Share(Arc<Shared>);

/// A grant to a guard that may be moved out of its frame. It is found by requests of the frame
/// in which it was taken and is no part of the graph (rule R4).
#[allow(dead_code, reason = "for keyed locks")]
pub(crate) struct GuardHold(Option<Arc<Shared>>);

/// What is left of a hold where its frame cannot be looked at.
#[derive(Clone)]
pub(super) struct Remembered {
    pub(super) ask: Ask,
    pub(super) shared: Arc<Shared>,
}

/// What an earlier hold means for a request.
pub(super) enum Meeting {
    /// It does not concern it.
    Nothing,
    /// A read that the request can share.
    Shares(Share),
    /// The request would wait for itself.
    Reentrant,
}

impl Hold {
    /// A grant of its own.
    #[inline]
    #[must_use]
    pub const fn new(ask: &Ask) -> Self {
        Self { ask: *ask, published: AtomicU64::new(0), shared: OnceArc::new(), over: false }
    }

    /// A share of the grant of an enclosing frame.
    #[must_use]
    pub fn sharing(ask: &Ask, share: Share) -> Self {
        Self {
            ask: *ask,
            published: AtomicU64::new(0),
            shared: OnceArc::with(share.0),
            over: false,
        }
    }

    /// A lease that nested reads may share.
    #[must_use]
    pub fn leasing(ask: &Ask, lease: Weak<dyn Any + Send + Sync>) -> Self {
        let shared = Shared { lease: Some(lease), ..Shared::new(ask) };
        Self::sharing(ask, Share(Arc::new(shared)))
    }

    /// The hold is over. To be called *before* the grant is given back, so that the graph never
    /// shows a hold that somebody else may have already. True: this was the last guard of the
    /// grant, which is to be given back now.
    #[inline]
    #[must_use = "tells whether the grant is to be given back"]
    pub fn end(&mut self) -> bool {
        if std::mem::replace(&mut self.over, true) {
            return false;
        }
        if *self.published.get_mut() == 0 && self.shared.is_empty() {
            return true;
        }
        self.end_known()
    }

    /// As [`Self::end`], of a hold that others know of.
    #[cold]
    fn end_known(&mut self) -> bool {
        let published = std::mem::take(self.published.get_mut());
        if published != 0 {
            graph::remove_hold(published);
        }
        self.shared.take().is_none_or(|shared| shared.leave())
    }

    #[inline]
    pub(super) const fn ask(&self) -> &Ask {
        &self.ask
    }

    #[inline]
    pub(super) const fn place(&self) -> Place {
        self.ask.place
    }

    pub(super) fn published(&self) -> u64 {
        self.published.load(Ordering::Relaxed)
    }

    pub(super) fn set_published(&self, id: u64) {
        self.published.store(id, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn meet(&self, ask: &Ask) -> Meeting {
        if !self.ask.target.meets(ask.target) {
            return Meeting::Nothing;
        }
        meet(&self.ask, ask, || self.shared().join())
    }

    pub(super) fn remember(&self) -> Remembered {
        Remembered { ask: self.ask, shared: self.shared() }
    }

    fn shared(&self) -> Arc<Shared> {
        self.shared.share(|| Arc::new(Shared::new(&self.ask)))
    }
}

impl Drop for Hold {
    #[inline]
    fn drop(&mut self) {
        // Who owns the grant has called it before; this is for the record alone.
        let _ = self.end();
    }
}

impl fmt::Debug for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.ask.fmt(f)
    }
}

impl Shared {
    const fn new(ask: &Ask) -> Self {
        Self { users: AtomicUsize::new(1), grant: ask.grant, lease: None }
    }

    /// One guard more, unless the grant is over.
    fn join(self: &Arc<Self>) -> Option<Share> {
        let more = |users| if users == 0 { None } else { Some(users + 1) };
        // What the former users did is visible to the last one, which gives the grant back.
        self.users.fetch_update(Ordering::Acquire, Ordering::Relaxed, more).ok()?;
        Some(Share(Arc::clone(self)))
    }

    /// True: it was the last.
    fn leave(&self) -> bool {
        let before = self.users.fetch_sub(1, Ordering::AcqRel);
        assert!(before > 0, "a grant is left once by each of its guards");
        before == 1
    }

    fn is_over(&self) -> bool {
        self.users.load(Ordering::Acquire) == 0
    }
}

impl Share {
    /// What its last guard gives back, if that is more than what the guard itself asked for: as
    /// [`Ask::grant`].
    pub(crate) fn grant(&self) -> Option<NonZeroU32> {
        self.0.grant
    }

    /// The lease that is shared; `None` also when all who had it were dropped meanwhile.
    #[must_use]
    pub fn lease(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        self.0.lease.as_ref()?.upgrade()
    }
}

impl fmt::Debug for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Share").finish_non_exhaustive()
    }
}

impl Remembered {
    pub(super) fn is_over(&self) -> bool {
        self.shared.is_over()
    }

    pub(super) fn meet(&self, ask: &Ask) -> Meeting {
        if !self.ask.target.meets(ask.target) || self.is_over() {
            return Meeting::Nothing;
        }
        meet(&self.ask, ask, || self.shared.join())
    }
}

/// The two have something in common.
fn meet(held: &Ask, ask: &Ask, join: impl FnOnce() -> Option<Share>) -> Meeting {
    if held.access.excludes(ask.access) {
        return Meeting::Reentrant;
    }
    debug_assert!(held.access == Access::Shared && ask.access == Access::Shared);
    // A read of a key is no read of the whole set.
    if !held.target.covers(ask.target) {
        return Meeting::Nothing;
    }
    join().map_or(Meeting::Nothing, Meeting::Shares)
}

#[allow(dead_code, reason = "for keyed locks")]
impl GuardHold {
    /// Of a lock that is not checked.
    pub(crate) const fn none() -> Self {
        Self(None)
    }

    /// A grant of its own. Outside of frames nothing is recorded.
    pub(crate) fn new(ask: &Ask) -> Self {
        let shared = chain::in_a_frame().then(|| Arc::new(Shared::new(ask)));
        if let Some(shared) = &shared {
            chain::remember(Remembered { ask: *ask, shared: Arc::clone(shared) });
        }
        Self(shared)
    }

    /// A share of the grant of an enclosing frame.
    pub(crate) fn sharing(ask: &Ask, share: Share) -> Self {
        chain::remember(Remembered { ask: *ask, shared: Arc::clone(&share.0) });
        Self(Some(share.0))
    }

    /// As [`Hold::end`].
    #[must_use = "tells whether the grant is to be given back"]
    pub(crate) fn end(self) -> bool {
        self.0.is_none_or(|shared| shared.leave())
    }
}
