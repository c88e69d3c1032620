//! What happens under the gate: queueing, granting from the head, leaving, watching, resizing.
//!
//! Every step here ends in the state the rules describe: the head does not fit, no watcher's
//! condition holds, and *crowded* says whether anybody is left.

use std::{pin::Pin, ptr::NonNull, task::Waker};

use super::{
    Node, Phase, Raw, Want, WatchFor,
    gate::Locked,
    list::deref,
    node::Kind,
    wakers::Wakers,
    word::{CAPACITY_MAX, Word},
};

/// What became of a request on arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    Granted,
    Queued,
    /// It can never be granted (rule Q5).
    TooHeavy,
}

/// What leaving found (rule Q4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// It was queued and is no more.
    Now {
        /// How many wait on.
        queued: u32,
    },
    /// It had been granted: the permits are the caller's.
    Granted,
    /// It was not queued.
    Outside,
}

impl Raw {
    #[cold]
    pub(super) fn try_take_slow(&self, want: Want, weight: u32) -> bool {
        let mut locked = self.enter();
        let barges = want != Want::Upgrade && !self.queue.is_empty(&locked);
        let taken = locked.word.granting(want, weight).filter(|_| !barges);
        let Some(taken) = taken else { return false };
        locked.word = taken;
        self.note_writer(want);
        true
    }

    /// Grants the request, or queues it behind everybody, an upgrade before everybody (rule Q7).
    /// A queued node is unlinked by a grant, a rejection or [`Self::leave`], nothing else. The waker
    /// is taken if it is queued: else it stays with the caller, who may hold locks that no foreign
    /// code must run under.
    ///
    /// `any_weight`: the weight may be of any size, and the capacity may shrink below it. Inlined, so
    /// that the locks whose weights are known ask for none of it.
    #[inline(always)]
    pub(crate) fn arrive(
        &self,
        node: Pin<&Node>,
        want: Want,
        weight: u32,
        any_weight: bool,
        waker: &mut Option<Waker>,
    ) -> Arrival {
        let locked = &mut self.enter();
        let word = locked.word;
        if any_weight && (weight > word.capacity() || weight == 0) {
            return Arrival::TooHeavy;
        }
        let waits = want != Want::Upgrade && !self.queue.is_empty(locked);
        if let Some(taken) = word.granting(want, weight).filter(|_| !waits) {
            locked.word = taken;
            self.note_writer(want);
            return Arrival::Granted;
        }
        let Some(waker) = waker.take() else { unreachable!("a request comes with its waker") };
        locked.word = word.crowded(true);
        node.set_queued(locked, Kind::Waiter(want), weight, waker);
        if want == Want::Upgrade {
            self.queue.push_front(locked, node);
        } else {
            self.queue.push_back(locked, node);
        }
        *self.queued.get_mut(locked) += 1;
        if any_weight {
            self.note_weight(locked, weight);
        }
        Arrival::Queued
    }

    /// Lets a queued node wake another task. Says where the node is now.
    pub(crate) fn renew_waker(&self, node: Pin<&Node>, waker: &Waker) -> Phase {
        // Cloned before and dropped after the gate is held: both run foreign code.
        let waker = waker.clone();
        let mut locked = self.enter();
        let phase = node.phase();
        let old = match phase {
            Phase::Queued => node.waiting(&mut locked).waker.replace(waker),
            _ => Some(waker),
        };
        drop(locked);
        drop(old);
        phase
    }

    /// Takes a waiter out of the queue, wherever it is, and lets in those it blocked (rules Q2
    /// and Q4). A grant that came first is told, never lost.
    pub(crate) fn leave(&self, node: Pin<&Node>) -> Left {
        let mut wakers = Wakers::new();
        let mut locked = self.enter();
        match node.phase() {
            Phase::Queued => {}
            Phase::Granted => return Left::Granted,
            Phase::Outside | Phase::Rejected => return Left::Outside,
        }
        self.queue.unlink(&mut locked, NonNull::from(node.get_ref()));
        let own = node.waiting(&mut locked).waker.take();
        node.set_outside(&mut locked);
        *self.queued.get_mut(&mut locked) -= 1;
        let word = locked.word;
        self.settle(&mut locked, word, &mut wakers);
        let queued = self.queued.get(&locked);
        drop(locked);
        drop(own);
        Left::Now { queued }
    }

    /// As [`Self::release_slow`] for the one permit of a lock whose capacity is always 1. It goes to the
    /// head, so nothing is free that watchers wait for.
    #[inline(never)]
    pub(super) fn hand_over(&self) {
        let mut locked = self.enter();
        let Some(head) = self.queue.pop_front(&mut locked) else {
            return self.free_only(locked);
        };
        *self.queued.get_mut(&mut locked) -= 1;
        let waker = deref(head).grant(&mut locked);
        if self.queue.is_empty(&locked) && self.watchers.is_empty(&locked) {
            locked.word = locked.word.crowded(false);
        }
        drop(locked);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    #[cold]
    fn free_only(&self, locked: Locked<'_>) {
        self.change_within(locked, |word| word.plus(1));
    }

    #[inline(never)]
    pub(super) fn release_slow(&self, weight: u32) {
        let mut locked = self.enter();
        let word = locked.word.plus(weight);
        if self.is_settled(&mut locked, word) {
            locked.word = word;
        } else {
            self.change_within(locked, |_| word);
        }
    }

    /// Whether nobody is granted or told anything with that word, and somebody is queued.
    #[inline]
    fn is_settled(&self, locked: &mut Locked<'_>, word: Word) -> bool {
        let Some(head) = self.queue.front(locked) else { return false };
        let (want, weight) = deref(head).asks(locked);
        word.granting(want, weight).is_none() && self.watchers.is_empty(locked)
    }

    #[cold]
    pub(super) fn release_upgradable_slow(&self, weight: u32) {
        self.change(|word| word.plus(weight).upgradable(false));
    }

    /// More permits, all of them free. False: above the largest capacity, and nothing changes.
    pub(crate) fn grow(&self, permits: u32) -> bool {
        let fits = |word: Word| word.capacity().checked_add(permits).filter(|&c| c <= CAPACITY_MAX);
        self.resize(|word| Some(word.with(fits(word)?, word.free() + permits))).is_some()
    }

    /// Fewer permits: held ones of the caller go away. False: the last one of all would.
    pub(crate) fn forget_held(&self, permits: u32) -> bool {
        let rest = |word: Word| word.capacity().checked_sub(permits).filter(|&rest| rest > 0);
        self.resize(|word| Some(word.with(rest(word)?, word.free()))).is_some()
    }

    /// Fewer permits: up to that many free ones go away, never the last one of all.
    pub(crate) fn forget_free(&self, permits: u32) -> u32 {
        let mut forgotten = 0;
        self.resize(|word| {
            forgotten = permits.min(word.free()).min(word.capacity() - 1);
            Some(word.with(word.capacity() - forgotten, word.free() - forgotten))
        });
        forgotten
    }

    /// Queues a watcher, or says that what it watches for is true already (rule U1).
    pub(crate) fn watch(&self, node: Pin<&Node>, what: WatchFor, waker: Waker) -> bool {
        let locked = &mut self.enter();
        if locked.word.holds(what, !self.queue.is_empty(locked)) {
            return true;
        }
        locked.word = locked.word.crowded(true);
        node.set_queued(locked, Kind::Watcher(what), 0, waker);
        if what == WatchFor::All {
            self.watchers.push_back(locked, node);
        } else {
            self.watchers.push_front(locked, node);
        }
        false
    }

    /// Takes a watcher out, if it was not told yet.
    pub(crate) fn unwatch(&self, node: Pin<&Node>) {
        let mut wakers = Wakers::new();
        let mut locked = self.enter();
        if node.phase() != Phase::Queued {
            return;
        }
        self.watchers.unlink(&mut locked, NonNull::from(node.get_ref()));
        let own = node.waiting(&mut locked).waker.take();
        node.set_outside(&mut locked);
        let word = locked.word;
        self.settle(&mut locked, word, &mut wakers);
        drop(locked);
        drop(own);
    }

    pub(super) fn queued_slow(&self) -> u32 {
        self.queued.get(&self.enter())
    }

    pub(super) fn holds_slow(&self, what: WatchFor) -> bool {
        let locked = self.enter();
        locked.word.holds(what, !self.queue.is_empty(&locked))
    }

    /// Changes the word and grants on, in one step (rule Q3).
    #[inline]
    fn change(&self, to: impl Fn(Word) -> Word) {
        self.change_within(self.enter(), to);
    }

    #[inline]
    fn change_within(&self, locked: Locked<'_>, to: impl Fn(Word) -> Word) {
        // Dropped, and called, after the gate is left.
        let mut wakers = Wakers::new();
        let mut locked = locked;
        let changed = to(locked.word);
        self.settle(&mut locked, changed, &mut wakers);
    }

    /// Changes the capacity if `to` allows it, takes out who can never fit, and grants on.
    fn resize(&self, to: impl FnOnce(Word) -> Option<Word>) -> Option<()> {
        let mut wakers = Wakers::new();
        let mut locked = self.enter();
        let resized = to(locked.word)?;
        self.reject_heavier(&mut locked, resized.capacity(), &mut wakers);
        self.settle(&mut locked, resized, &mut wakers);
        Some(())
    }

    /// The grant loop (rule Q2), then the watchers (a hand-off is within a step, so it makes
    /// nothing free, rule U1), then the word.
    #[inline]
    fn settle(&self, locked: &mut Locked<'_>, mut word: Word, wakers: &mut Wakers) {
        while let Some(head) = self.queue.front(locked) {
            let node = deref(head);
            let (want, weight) = node.asks(locked);
            let Some(granted) = word.granting(want, weight) else { break };
            word = granted;
            self.note_writer(want);
            self.queue.unlink(locked, head);
            *self.queued.get_mut(locked) -= 1;
            wakers.push(node.grant(locked));
        }
        let anybody_queued = !self.queue.is_empty(locked);
        while let Some(first) = self.watchers.front(locked) {
            let node = deref(first);
            let Kind::Watcher(what) = node.waiting(locked).kind else {
                unreachable!("a waiter is in the other list")
            };
            if !word.holds(what, anybody_queued) {
                break;
            }
            self.watchers.unlink(locked, first);
            wakers.push(node.grant(locked));
        }
        let crowded = anybody_queued || !self.watchers.is_empty(locked);
        locked.word = word.crowded(crowded);
    }

    /// Visits the waiters only if one may weigh too much (rule Q6), and rejects those that do.
    fn reject_heavier(&self, locked: &mut Locked<'_>, capacity: u32, wakers: &mut Wakers) {
        if capacity >> self.heaviest_bits.get(locked) != 0 {
            return;
        }
        let mut at = self.queue.front(locked);
        while let Some(waiter) = at {
            at = self.queue.next_of(locked, waiter);
            let node = deref(waiter);
            if node.waiting(locked).weight > capacity {
                self.queue.unlink(locked, waiter);
                *self.queued.get_mut(locked) -= 1;
                wakers.push(node.waiting(locked).waker.take());
                node.set_rejected(locked);
            }
        }
    }

    fn note_weight(&self, locked: &mut Locked<'_>, weight: u32) {
        let alone = self.queued.get(locked) == 1;
        let bits = u8::try_from(u32::BITS - weight.leading_zeros()).unwrap_or(u8::MAX);
        let before = if alone { 0 } else { self.heaviest_bits.get(locked) };
        self.heaviest_bits.set(locked, before.max(bits));
    }
}

#[cfg(all(test, not(leasehold_loom)))]
mod tests {
    use std::{
        sync::{Arc, Mutex},
        task::Wake,
    };

    use super::*;

    /// One step of a program, on the waiter of that number.
    #[derive(Clone, Copy, Debug)]
    enum Step {
        Arrive(usize),
        Leave(usize),
        Release(usize),
        Watch(usize),
        Unwatch(usize),
        Try,
    }

    struct Side {
        raw: Raw,
        is_only: bool,
        nodes: Vec<Pin<Box<Node>>>,
        woken: Arc<Mutex<Vec<usize>>>,
        taken: bool,
    }

    struct Task(usize, Arc<Mutex<Vec<usize>>>);

    impl Wake for Task {
        fn wake(self: Arc<Self>) {
            self.1.lock().unwrap().push(self.0);
        }
    }

    const WAITERS: usize = 5;

    impl Side {
        fn new(is_only: bool) -> Self {
            Self {
                raw: Raw::new(1),
                is_only,
                nodes: (0..2 * WAITERS).map(|_| Box::pin(Node::new())).collect(),
                woken: Arc::default(),
                taken: false,
            }
        }

        fn waker(&self, number: usize) -> Waker {
            Waker::from(Arc::new(Task(number, Arc::clone(&self.woken))))
        }

        fn release(&self) {
            if self.is_only { self.raw.release_only() } else { self.raw.release(1) }
        }

        /// What the step gives, and what is seen of the lock then.
        fn run(&mut self, step: Step) -> String {
            let outcome = match step {
                Step::Arrive(number) => {
                    let (node, waker) =
                        (self.nodes[number].as_ref(), &mut Some(self.waker(number)));
                    format!("{:?}", self.raw.arrive(node, Want::Plain, 1, !self.is_only, waker))
                }
                Step::Leave(number) => {
                    let left = self.raw.leave(self.nodes[number].as_ref());
                    if left == Left::Granted {
                        self.release();
                        self.nodes[number] = Box::pin(Node::new());
                    }
                    format!("{left:?}")
                }
                Step::Release(number) => {
                    self.nodes[number] = Box::pin(Node::new());
                    self.release();
                    String::new()
                }
                Step::Watch(number) => {
                    let node = self.nodes[number].as_ref();
                    format!("{}", self.raw.watch(node, WatchFor::All, self.waker(number)))
                }
                Step::Unwatch(number) => {
                    self.raw.unwatch(self.nodes[number].as_ref());
                    self.nodes[number] = Box::pin(Node::new());
                    String::new()
                }
                Step::Try if self.taken => {
                    self.taken = false;
                    self.release();
                    String::new()
                }
                Step::Try => {
                    let fast = if self.is_only { self.raw.try_take_only_fast() } else { None };
                    self.taken = fast.unwrap_or_else(|| self.raw.try_take(Want::Plain, 1));
                    format!("{}", self.taken)
                }
            };
            let phases: Vec<_> = self.nodes.iter().map(|node| node.phase()).collect();
            let (word, woken) =
                (self.raw.word.settled(), std::mem::take(&mut *self.woken.lock().unwrap()));
            format!("{outcome} {:x} {} {phases:?} {woken:?}", word.0, self.raw.queued())
        }
    }

    #[test]
    fn a_lock_of_one_permit_steps_as_any_other() {
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        let mut draw = |below: usize| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            usize::try_from(random % below as u64).unwrap()
        };
        for _ in 0..200 {
            let (mut only, mut any) = (Side::new(true), Side::new(false));
            // A waiter that was granted on arrival stays outside of the queue.
            let mut holder = None;
            for _ in 0..200 {
                let (waiter, watcher) = (draw(WAITERS), WAITERS + draw(WAITERS));
                let phase = only.nodes[waiter].phase();
                let step = match draw(6) {
                    0 | 1 if phase == Phase::Outside && holder != Some(waiter) => {
                        Step::Arrive(waiter)
                    }
                    2 if phase != Phase::Outside => Step::Leave(waiter),
                    3 if phase == Phase::Granted || holder == Some(waiter) => Step::Release(waiter),
                    4 => match only.nodes[watcher].phase() {
                        Phase::Outside => Step::Watch(watcher),
                        _ => Step::Unwatch(watcher),
                    },
                    5 => Step::Try,
                    _ => continue,
                };
                let (seen, expected) = (only.run(step), any.run(step));
                assert_eq!(seen, expected, "{step:?}");
                match step {
                    Step::Arrive(_) if seen.starts_with("Granted") => holder = Some(waiter),
                    Step::Release(_) if holder == Some(waiter) => holder = None,
                    _ => {}
                }
            }
            for number in 0..only.nodes.len() {
                for side in [&mut only, &mut any] {
                    let node = side.nodes[number].as_ref();
                    if number >= WAITERS {
                        side.raw.unwatch(node)
                    } else {
                        let _ = side.raw.leave(node);
                    }
                }
            }
        }
    }
}
