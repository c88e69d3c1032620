//! The raw lock under every lock of this crate: a weighted FIFO semaphore (rules Q).
//!
//! A mutex has capacity 1, a semaphore capacity n, and in a read-write lock a read weighs 1 and a
//! write weighs the whole capacity. A request is granted on arrival iff nobody is queued and its
//! weight is free; else it joins the tail. Whoever frees permits grants from the head, all or
//! nothing, until the head does not fit, and only then wakes those it granted. So permits go from
//! hand to hand: nobody barges, a large weight is not starved by small ones, nor a write by reads.
//! The price: a heavy head makes those behind it wait though they would fit.
//!
//! While nobody is queued or watching, all of that is one compare-and-swap on one word
//! ([`word`]). Otherwise it happens under a small mutex, the gate ([`gate`]), on a ring of
//! nodes that live inside of the waiting futures ([`list`], [`node`]): nothing is allocated.
//! It is the algorithm of `leasehold-queue`, and `tests/model` holds the two against each other.

mod gate;
mod list;
mod node;
mod slow;
pub(crate) mod sys;
mod wakers;
mod word;

use std::{fmt, sync::atomic::Ordering};

use self::{
    gate::Locked,
    list::List,
    sys::{AtomicU8, Guarded, const_fn},
};

pub(crate) use self::{
    gate::GatedWord,
    node::{Node, Phase},
    slow::{Arrival, Left},
    word::{CAPACITY_MAX, READERS_USUAL, Want, WatchFor, Word},
};

/// See the module.
pub struct Raw {
    word: GatedWord,
    /// Whether what is held is a write: as many readers as there may be look the same in the word.
    /// Set after the word and cleared before it, for those who ask, not for those who acquire.
    writing: AtomicU8,
    /// No queued waiter weighs 2^this or more; so a shrink that leaves as much need not look.
    heaviest_bits: Guarded<u8>,
    queued: Guarded<u32>,
    queue: List,
    /// Those that wait for any permit come before those that wait for all.
    watchers: List,
}

impl Raw {
    const_fn! {
        /// Everything free. The capacity is 1 ..= [`CAPACITY_MAX`].
        pub(crate) const fn new(capacity: u32) -> Self {
            assert!(capacity > 0 && capacity <= CAPACITY_MAX);
            Self {
                word: GatedWord::new(Word::idle(capacity)),
                writing: AtomicU8::new(0),
                heaviest_bits: Guarded::new(0),
                queued: Guarded::new(0),
                queue: List::new(),
                watchers: List::new(),
            }
        }
    }

    /// One attempt that never queues and never barges (rules W2 and Q3).
    #[inline]
    pub(crate) fn try_take(&self, want: Want, weight: u32) -> bool {
        match self.try_take_fast(want, weight) {
            Some(taken) => taken,
            None => self.try_take_slow(want, weight),
        }
    }

    /// `None`: somebody is queued or watching, so the gate is needed to tell.
    #[inline]
    pub(crate) fn try_take_fast(&self, want: Want, weight: u32) -> Option<bool> {
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            if word.is_crowded() {
                return None;
            }
            let Some(taken) = word.granting(want, weight) else { return Some(false) };
            match self.word.swap(word, taken, Ordering::Acquire) {
                Ok(()) => {
                    self.note_writer(want);
                    return Some(true);
                }
                Err(now) => word = now,
            }
        }
    }

    /// As [`Self::try_take_fast`] for a lock of capacity 1. A look before the compare-and-swap is
    /// cheaper than one that fails, and next to nothing where it succeeds.
    #[inline]
    pub(crate) fn try_take_only_fast(&self) -> Option<bool> {
        const IDLE: Word = Word::idle(1);
        if self.word.load(Ordering::Relaxed).is_crowded() {
            return None;
        }
        match self.word.swap(IDLE, IDLE.minus(1), Ordering::Acquire) {
            Ok(()) => Some(true),
            Err(now) if now.is_crowded() => None,
            Err(_) => Some(false),
        }
    }

    /// As [`Self::try_take_fast`] for the writer: where the lock is for the usual number of readers,
    /// one compare-and-swap of constants and nothing else.
    #[inline]
    pub(crate) fn try_take_all_fast(&self) -> Option<bool> {
        const IDLE: Word = Word::idle(READERS_USUAL);
        match self.word.swap(IDLE, IDLE.minus(READERS_USUAL), Ordering::Acquire) {
            Ok(()) => {
                self.note_writer(Want::Write);
                Some(true)
            }
            Err(now) if now.is_crowded() => None,
            Err(now) if now.capacity() == READERS_USUAL => Some(false),
            Err(now) => self.try_take_fast(Want::Write, now.capacity()),
        }
    }

    /// Gives held permits back, hands them to the waiters at the head, and wakes those.
    #[inline]
    pub(crate) fn release(&self, weight: u32) {
        let mut word = self.word.load(Ordering::Relaxed);
        while !word.is_crowded() {
            match self.word.swap(word, word.plus(weight), Ordering::Release) {
                Ok(()) => return,
                Err(now) => word = now,
            }
        }
        self.release_slow(weight);
    }

    /// As [`Self::release`] for the one permit of a lock of capacity 1.
    #[inline]
    pub(crate) fn release_only(&self) {
        const HELD: Word = Word::idle(1).minus(1);
        let is_alone = self.word.load(Ordering::Relaxed) == HELD;
        if !is_alone || self.word.swap(HELD, HELD.plus(1), Ordering::Release).is_err() {
            self.hand_over();
        }
    }

    /// As [`Self::release`] for the writer.
    #[inline]
    pub(crate) fn release_write(&self) {
        const IDLE: Word = Word::idle(READERS_USUAL);
        self.writing.store(0, Ordering::Relaxed);
        if self.word.swap(IDLE.minus(READERS_USUAL), IDLE, Ordering::Release).is_err() {
            self.release_all();
        }
    }

    /// The capacity of a read-write lock never changes.
    #[cold]
    fn release_all(&self) {
        self.release(self.capacity());
    }

    /// As [`Self::release`] for the upgradable holder, with its slot.
    #[inline]
    pub(crate) fn release_upgradable(&self) {
        let mut word = self.word.load(Ordering::Relaxed);
        while !word.is_crowded() {
            match self.word.swap(word, word.plus(1).upgradable(false), Ordering::Release) {
                Ok(()) => return,
                Err(now) => word = now,
            }
        }
        self.release_upgradable_slow(1);
    }

    /// Makes a reader of the writer (rule Q7).
    pub(crate) fn downgrade(&self) {
        self.writing.store(0, Ordering::Relaxed);
        self.release(self.capacity() - 1);
    }

    /// Makes a plain reader of the upgradable one. Somebody may have waited for the slot.
    pub(crate) fn downgrade_upgradable(&self) {
        self.release_upgradable_slow(0);
    }

    /// How many permits there are.
    #[inline]
    pub(crate) fn capacity(&self) -> u32 {
        self.word.settled().capacity()
    }

    /// How many permits nobody holds. They may be waited for: a heavy head needs more of them.
    #[inline]
    pub(crate) fn free(&self) -> u32 {
        self.word.settled().free()
    }

    /// How many permits are held.
    #[inline]
    pub(crate) fn held(&self) -> u32 {
        let word = self.word.settled();
        word.capacity() - word.free()
    }

    /// Whether what is held is a write.
    #[inline]
    pub(crate) fn is_writing(&self) -> bool {
        self.writing.load(Ordering::Acquire) != 0
    }

    /// Whether what a watcher may wait for is true now.
    #[inline]
    pub(crate) fn holds(&self, what: WatchFor) -> bool {
        let word = self.word.settled();
        if what == WatchFor::Readable && word.is_crowded() {
            return self.holds_slow(what);
        }
        word.holds(what, false)
    }

    /// How many are queued, a pending upgrade included, watchers not.
    #[inline]
    pub(crate) fn queued(&self) -> u32 {
        if self.word.load(Ordering::Acquire).is_crowded() { self.queued_slow() } else { 0 }
    }

    #[inline]
    fn note_writer(&self, want: Want) {
        if want.writes() {
            self.writing.store(1, Ordering::Release);
        }
    }

    #[inline]
    fn enter(&self) -> Locked<'_> {
        self.word.enter()
    }
}

impl Raw {
    /// Whether anybody holds it or is queued, as far as the word says.
    #[inline]
    pub(crate) fn is_in_use(&self) -> bool {
        let word = self.word.load(Ordering::Relaxed);
        word.is_crowded() || word.free() != word.capacity()
    }
}

impl fmt::Debug for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.word.settled();
        f.debug_struct("Raw")
            .field("capacity", &word.capacity())
            .field("free", &word.free())
            .field("crowded", &word.is_crowded())
            .finish_non_exhaustive()
    }
}
