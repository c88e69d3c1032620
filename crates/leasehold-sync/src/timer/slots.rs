//! The slots of waits with a timeout: each keeps the waker of a task until its time has come.
//!
//! A slot may become a waker itself ([`Slot::into_waker`]) and stand in the queue of a lock for that
//! of the task: whoever grants wakes the task by it and frees the slot in the same step, under the gate of
//! the slot's shard. So a wait that ends in time costs two short steps and one waker, and who was
//! waiting has nothing to take back. If the timer was first, it has the waker of the task and uses
//! it; the slot then wakes nobody, and is freed by whoever takes it out of the queue.

use std::{
    mem, ptr,
    task::{RawWakerVTable, Waker},
};

use super::{
    shard::{Seen, Shard},
    shards::{SHARDS, gated, shard_here},
};
use crate::raw::{
    GatedWord, Word,
    sys::{Guarded, const_fn},
};

/// A shard and its gate, on cache lines of their own.
#[repr(align(128))]
pub(super) struct Gated {
    word: GatedWord,
    shard: Guarded<Shard>,
}

/// A wait, which ends when this is dropped.
pub(crate) struct Slot(SlotId);

/// Names a slot, by its number and its shard; whether it is still there is for the caller to know.
#[derive(Clone, Copy)]
pub(crate) struct SlotId(usize);

/// What a wait finds when it is polled again.
pub(crate) enum Renewed {
    /// It waits on until then.
    Waits(u64),
    /// Its time has come.
    Due,
    /// It does not wait any more.
    Over,
}

impl Gated {
    const_fn! {
        pub(super) const fn new() -> Self {
            Self { word: GatedWord::new(Word::idle(1)), shard: Guarded::new(Shard::new()) }
        }
    }

    #[inline]
    fn step<R>(&self, step: impl FnOnce(&mut Shard) -> R) -> R {
        step(self.shard.get_mut(&mut self.word.enter()))
    }
}

/// One look at a shard; `now` is asked under its gate, so it is after whatever is found there.
pub(super) fn look(shard: usize, now: impl FnOnce() -> u64, due: &mut Vec<Waker>) -> Seen {
    gated(shard).step(|shard| shard.look(now(), due))
}

impl Slot {
    /// A wait whose timeout begins when the thread looks.
    #[inline]
    pub(super) fn fresh(timeout: u64, waker: Waker) -> Self {
        let shard = shard_here();
        let number = gated(shard).step(|here| here.add_fresh(timeout, waker));
        Self(SlotId::new(number, shard))
    }

    /// A wait with a deadline.
    #[cfg(not(leasehold_loom))]
    pub(super) fn far(deadline: u64, waker: Waker) -> Self {
        let shard = shard_here();
        let number = gated(shard).step(|here| here.add_far(deadline, waker));
        Self(SlotId::new(number, shard))
    }

    #[inline]
    pub(crate) const fn id(&self) -> SlotId {
        self.0
    }

    /// The waker of the task, with the slot around it: used or dropped, it frees the slot.
    #[inline]
    pub(crate) fn into_waker(self) -> Waker {
        let data = ptr::without_provenance(self.0.0);
        mem::forget(self);
        // SAFETY: the functions of the table make the slot of the number again and do nothing but what
        // safe code does with it, on any thread; `data` is never followed.
        unsafe { Waker::new(data, &TABLE) }
    }

    fn from_data(data: *const ()) -> Self {
        Self(SlotId(data.addr()))
    }

    #[inline]
    fn free(self) -> Option<Waker> {
        let waker = self.0.remove();
        mem::forget(self);
        waker
    }
}

impl Drop for Slot {
    #[inline]
    fn drop(&mut self) {
        // Dropped after the gate is left: it is foreign code.
        let waker = self.0.remove();
        drop(waker);
    }
}

impl SlotId {
    #[inline]
    const fn new(number: u32, shard: usize) -> Self {
        Self(number as usize * SHARDS + shard)
    }

    #[inline]
    pub(super) const fn shard(self) -> usize {
        self.0 % SHARDS
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "made of a number of 32 bits")]
    const fn number(self) -> u32 {
        (self.0 / SHARDS) as u32
    }

    #[inline]
    fn remove(self) -> Option<Waker> {
        gated(self.shard()).step(|shard| shard.remove(self.number()))
    }

    /// Lets it wake another task, if it still waits: that is asked under the gate, and what is
    /// found waiting there has its slot still, as slots are freed after their wait is over.
    #[cold]
    pub(super) fn renew(self, waker: Waker, now: u64, waits: impl FnOnce() -> bool) -> Renewed {
        // What is left here is dropped after the gate is left: it is foreign code.
        let mut waker = Some(waker);
        let renewed = gated(self.shard()).step(|shard| {
            let waker = waker.take_if(|_| waits())?;
            Some(shard.renew(self.number(), waker, now))
        });
        match renewed {
            None => Renewed::Over,
            Some(Ok((deadline, _old))) => Renewed::Waits(deadline),
            Some(Err(_unused)) => Renewed::Due,
        }
    }

    #[cfg(test)]
    pub(super) fn waits_beside(self) -> usize {
        gated(self.shard()).step(|shard| shard.len())
    }
}

static TABLE: RawWakerVTable = RawWakerVTable::new(
    |_| unreachable!("the waker in a queue is taken, never cloned"),
    |data| {
        if let Some(waker) = Slot::from_data(data).free() {
            waker.wake();
        }
    },
    |_| unreachable!("the waker in a queue is taken, never borrowed"),
    |data| drop(Slot::from_data(data)),
);
