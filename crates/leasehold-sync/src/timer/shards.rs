//! Where the shards are.

#[cfg(leasehold_loom)]
pub(super) use self::modelled::{SHARDS, gated, shard_here};
#[cfg(not(leasehold_loom))]
pub(super) use self::real::{SHARDS, gated, shard_here};

#[cfg(not(leasehold_loom))]
mod real {
    use std::{
        cell::Cell,
        sync::atomic::{AtomicUsize, Ordering},
    };

    use crate::timer::slots::Gated;

    /// Threads share them in turn, so that tasks of a few threads do not meet.
    pub(in crate::timer) const SHARDS: usize = 8;

    static ALL: [Gated; SHARDS] = [const { Gated::new() }; SHARDS];
    static NEXT: AtomicUsize = AtomicUsize::new(0);

    thread_local! {
        static SHARD: Cell<Option<usize>> = const { Cell::new(None) };
    }

    #[inline]
    pub(in crate::timer) fn gated(shard: usize) -> &'static Gated {
        &ALL[shard % SHARDS]
    }

    /// The shard of this thread.
    #[inline]
    pub(in crate::timer) fn shard_here() -> usize {
        // It needs no drop, so it is there as long as its thread.
        SHARD.get().unwrap_or_else(|| {
            let next = NEXT.fetch_add(1, Ordering::Relaxed) % SHARDS;
            SHARD.set(Some(next));
            next
        })
    }
}

/// A run of loom has shards of its own, one for each wait. They are leaked: a thread that is a timer
/// may run on when all else has ended.
#[cfg(leasehold_loom)]
mod modelled {
    use std::cell::{Cell, RefCell};

    use crate::timer::slots::Gated;

    /// More than a run has waits.
    pub(in crate::timer) const SHARDS: usize = 64;

    // All threads of a run are one to the system.
    thread_local! {
        static ALL: RefCell<[Option<&'static Gated>; SHARDS]> =
            const { RefCell::new([None; SHARDS]) };
        static NEXT: Cell<usize> = const { Cell::new(0) };
    }

    pub(in crate::timer) fn gated(shard: usize) -> &'static Gated {
        ALL.with_borrow(|all| all[shard]).expect("it was made for the wait")
    }

    pub(in crate::timer) fn shard_here() -> usize {
        let shard = NEXT.get();
        NEXT.set((shard + 1) % SHARDS);
        let gated = Box::leak(Box::new(Gated::new()));
        ALL.with_borrow_mut(|all| all[shard] = Some(gated));
        shard
    }
}
