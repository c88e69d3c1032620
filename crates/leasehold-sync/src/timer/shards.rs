//! Where the shards are.

#[cfg(leasehold_loom)]
pub(super) use self::modelled::{SHARDS, gated, shard_here};
#[cfg(not(leasehold_loom))]
pub(super) use self::real::{SHARDS, gated, shard_here};

#[cfg(not(leasehold_loom))]
mod real {
    use std::{
        cell::Cell,
        sync::atomic::{AtomicU8, Ordering},
    };

    use crate::timer::slots::Gated;

    /// Threads share them in turn, so that tasks of a few threads do not meet.
    pub(in crate::timer) const SHARDS: u8 = 8;

    static ALL: [Gated; SHARDS as usize] = [const { Gated::new() }; SHARDS as usize];
    static NEXT: AtomicU8 = AtomicU8::new(0);

    thread_local! {
        static SHARD: Cell<Option<u8>> = const { Cell::new(None) };
    }

    #[inline]
    pub(in crate::timer) fn gated(shard: u8) -> &'static Gated {
        &ALL[usize::from(shard)]
    }

    /// The shard of this thread.
    #[inline]
    pub(in crate::timer) fn shard_here() -> u8 {
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
    pub(in crate::timer) const SHARDS: u8 = 64;

    // All threads of a run are one to the system.
    thread_local! {
        static ALL: RefCell<[Option<&'static Gated>; SHARDS as usize]> =
            const { RefCell::new([None; SHARDS as usize]) };
        static NEXT: Cell<u8> = const { Cell::new(0) };
    }

    pub(in crate::timer) fn gated(shard: u8) -> &'static Gated {
        ALL.with_borrow(|all| all[usize::from(shard)]).expect("it was made for the wait")
    }

    pub(in crate::timer) fn shard_here() -> u8 {
        let shard = NEXT.get();
        NEXT.set((shard + 1) % SHARDS);
        let gated = Box::leak(Box::new(Gated::new()));
        ALL.with_borrow_mut(|all| all[usize::from(shard)] = Some(gated));
        shard
    }
}
