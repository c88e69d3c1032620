//! The gate: the small mutex of the slow path, in the word of the lock itself.
//!
//! Who enters swaps [`Word::GATED`] in and has the word that was there; who leaves stores the word
//! that holds from then on, so that a step under the gate is one atomic operation and one store. To
//! the fast paths, a gated word is a crowded one: they leave it alone, so nobody but the one inside
//! changes the word.
//!
//! Steps under the gate are short and run nothing foreign: no waker is called, cloned or dropped.
//! Who finds it taken spins for a moment, then yields, then naps: then the one inside was interrupted,
//! and needs the processor more.

use std::sync::atomic::Ordering;

use super::{
    sys::{AtomicU64, const_fn},
    word::Word,
};

/// The word of a lock, and its gate.
pub(crate) struct GatedWord {
    word: AtomicU64,
    /// Loom cannot run loops that wait for another thread, so in its model who waits blocks here.
    /// All else is as it is: whatever does not wait meets gated words.
    #[cfg(leasehold_loom)]
    waiting: loom::sync::Mutex<()>,
}

/// Proof that the gate of a lock is held, and the word of that lock meanwhile.
pub(crate) struct Locked<'a> {
    place: &'a GatedWord,
    pub(super) word: Word,
    #[cfg(leasehold_loom)]
    _waiting: loom::sync::MutexGuard<'a, ()>,
}

impl GatedWord {
    const_fn! {
        pub(crate) const fn new(word: Word) -> Self {
            Self {
                word: AtomicU64::new(word.0),
                #[cfg(leasehold_loom)]
                waiting: loom::sync::Mutex::new(()),
            }
        }
    }

    /// The word, or that it is gated.
    #[inline]
    pub(super) fn load(&self, order: Ordering) -> Word {
        Word(self.word.load(order))
    }

    /// Changes the word from outside of the gate. `Err`: it is another, or gated.
    #[inline]
    pub(super) fn swap(&self, from: Word, to: Word, success: Ordering) -> Result<(), Word> {
        self.word
            .compare_exchange(from.0, to.0, success, Ordering::Relaxed)
            .map(|_| ())
            .map_err(Word)
    }

    /// The word; while somebody is inside, what it is then.
    #[inline]
    pub(super) fn settled(&self) -> Word {
        let word = self.load(Ordering::Acquire);
        if word == Word::GATED { self.wait_settled() } else { word }
    }
}

#[cfg(not(leasehold_loom))]
impl GatedWord {
    #[inline]
    pub(crate) fn enter(&self) -> Locked<'_> {
        let word = Word(self.word.swap(Word::GATED.0, Ordering::Acquire));
        if word == Word::GATED { self.wait_enter() } else { Locked { place: self, word } }
    }

    #[cold]
    fn wait_enter(&self) -> Locked<'_> {
        loop {
            self.wait_settled();
            let word = Word(self.word.swap(Word::GATED.0, Ordering::Acquire));
            if word != Word::GATED {
                return Locked { place: self, word };
            }
        }
    }

    #[cold]
    fn wait_settled(&self) -> Word {
        use std::{hint, thread, time::Duration};
        let mut tries = 0_u32;
        loop {
            let word = self.load(Ordering::Acquire);
            if word != Word::GATED {
                return word;
            }
            match tries {
                0..64 => hint::spin_loop(),
                64..128 => thread::yield_now(),
                // Yielding lets in nobody of a lower priority, and it may be one who is inside.
                _ => thread::sleep(Duration::from_micros(50)),
            }
            tries = tries.saturating_add(1);
        }
    }
}

#[cfg(leasehold_loom)]
impl GatedWord {
    pub(crate) fn enter(&self) -> Locked<'_> {
        let waiting = self.waiting.lock().expect("nothing panics within the gate");
        let word = Word(self.word.swap(Word::GATED.0, Ordering::Acquire));
        assert!(word != Word::GATED);
        Locked { place: self, word, _waiting: waiting }
    }

    fn wait_settled(&self) -> Word {
        self.enter().word
    }
}

impl Drop for Locked<'_> {
    #[inline]
    fn drop(&mut self) {
        debug_assert!(self.word != Word::GATED);
        self.place.word.store(self.word.0, Ordering::Release);
    }
}
