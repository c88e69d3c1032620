//! The waiters in memory: a slab of slots, linked by index into one FIFO.
//!
//! Removal of any waiter unlinks one slot, so it costs the same in a queue of ten and of a million
//! (rule Q6). Freed slots are chained and reused, so memory follows the longest queue since it was
//! last empty, never the number of past waiters; an emptied large slab is given back.

use std::num::NonZeroU64;

/// Marks the end of a chain; no slot has this index.
const NIL: u32 = u32::MAX;

/// Every index but [`NIL`].
const SLOTS_MAX: u32 = NIL;

/// Slots that an empty list may keep. Growing beyond them costs an allocation only once per many
/// waiters, and an idle lock that once had a crowd is small again.
const SLOTS_KEPT: usize = 64;

/// Names one waiter of one queue.
///
/// A key holds the waiter's arrival number, which a queue never gives out twice. So the key of a
/// waiter that has left hits nobody, however often its place was reused since. Using a key with a
/// queue that did not give it is a mistake that may hit a waiter there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WaiterKey {
    arrival: NonZeroU64,
    index: u32,
}

/// What a waiter gets when its turn comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    /// Permits.
    Plain,
    /// Permits and the one upgradable slot.
    Upgradable,
    /// The rest of the permits for the holder in the upgradable slot.
    Upgrade,
}

/// One waiter.
#[derive(Debug)]
pub(crate) struct Entry<W> {
    pub(crate) weight: u32,
    pub(crate) want: Want,
    pub(crate) waiter: W,
}

/// A doubly linked FIFO inside one growable array.
#[derive(Debug)]
pub(crate) struct WaiterList<W> {
    slots: Vec<Slot<W>>,
    head: u32,
    tail: u32,
    /// First free slot.
    vacant: u32,
    len: u32,
    next_arrival: NonZeroU64,
}

#[derive(Debug)]
struct Slot<W> {
    /// Of the waiter in it, or of the last one.
    arrival: NonZeroU64,
    prev: u32,
    /// Next in the queue, or the next free slot.
    next: u32,
    /// `None`: the slot is free.
    entry: Option<Entry<W>>,
}

impl<W> WaiterList<W> {
    pub(crate) const fn new() -> Self {
        Self {
            slots: Vec::new(),
            head: NIL,
            tail: NIL,
            vacant: NIL,
            len: 0,
            next_arrival: NonZeroU64::MIN,
        }
    }

    #[inline]
    pub(crate) const fn len(&self) -> u32 {
        self.len
    }

    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.head == NIL
    }

    /// How many slots are allocated.
    pub(crate) const fn capacity(&self) -> usize {
        self.slots.capacity()
    }

    /// Adds at the tail, or hands the entry back if every index is taken.
    #[inline]
    pub(crate) fn push_back(&mut self, entry: Entry<W>) -> Result<WaiterKey, Entry<W>> {
        let key = self.occupy(entry, SLOTS_MAX)?;
        self.link(key.index, self.tail, NIL);
        Ok(key)
    }

    /// Adds before everybody, or hands the entry back if every index is taken.
    #[inline]
    pub(crate) fn push_front(&mut self, entry: Entry<W>) -> Result<WaiterKey, Entry<W>> {
        let key = self.occupy(entry, SLOTS_MAX)?;
        self.link(key.index, NIL, self.head);
        Ok(key)
    }

    #[inline]
    pub(crate) fn front(&self) -> Option<(WaiterKey, &Entry<W>)> {
        self.at(self.head)
    }

    #[inline]
    pub(crate) fn pop_front(&mut self) -> Option<(WaiterKey, Entry<W>)> {
        self.take(self.head)
    }

    #[inline]
    pub(crate) fn get(&self, key: WaiterKey) -> Option<&Entry<W>> {
        let slot = self.slot(key.index)?;
        if slot.arrival == key.arrival { slot.entry.as_ref() } else { None }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, key: WaiterKey) -> Option<&mut Entry<W>> {
        let slot = self.slot_mut(key.index)?;
        if slot.arrival == key.arrival { slot.entry.as_mut() } else { None }
    }

    /// Takes a waiter out, from any place. A stale key finds nobody.
    #[inline]
    pub(crate) fn remove(&mut self, key: WaiterKey) -> Option<Entry<W>> {
        self.get(key)?;
        self.take(key.index).map(|(_, entry)| entry)
    }

    /// The waiter queued just behind that one.
    pub(crate) fn behind(&self, key: WaiterKey) -> Option<WaiterKey> {
        self.get(key)?;
        self.at(self.slot(key.index)?.next).map(|(behind, _)| behind)
    }

    /// In queue order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (WaiterKey, &Entry<W>)> {
        let mut index = self.head;
        std::iter::from_fn(move || {
            let found = self.at(index)?;
            index = self.slot(index)?.next;
            Some(found)
        })
    }

    /// Puts the entry into a free slot, or into a new one while there are fewer than `slots_max`.
    #[inline]
    fn occupy(&mut self, entry: Entry<W>, slots_max: u32) -> Result<WaiterKey, Entry<W>> {
        let arrival = self.next_arrival;
        let mut index = self.vacant;
        if let Some(slot) = self.slot_mut(index) {
            let vacant = slot.next;
            slot.arrival = arrival;
            slot.entry = Some(entry);
            self.vacant = vacant;
        } else {
            match u32::try_from(self.slots.len()) {
                Ok(len) if len < slots_max => index = len,
                _ => return Err(entry),
            }
            self.slots.push(Slot { arrival, prev: NIL, next: NIL, entry: Some(entry) });
        }
        // At a billion waiters per second this counter lasts for five hundred years.
        self.next_arrival = arrival.saturating_add(1);
        Ok(WaiterKey { arrival, index })
    }

    /// Empties an occupied slot and chains it to the free ones.
    #[inline]
    fn take(&mut self, index: u32) -> Option<(WaiterKey, Entry<W>)> {
        let vacant = self.vacant;
        let slot = self.slot_mut(index)?;
        let entry = slot.entry.take()?;
        let key = WaiterKey { arrival: slot.arrival, index };
        let (prev, next) = (slot.prev, slot.next);
        slot.next = vacant;
        self.vacant = index;
        self.unlink(prev, next);
        if self.is_empty() {
            self.shrink();
        }
        Some((key, entry))
    }

    #[inline]
    fn link(&mut self, index: u32, prev: u32, next: u32) {
        if let Some(slot) = self.slot_mut(index) {
            slot.prev = prev;
            slot.next = next;
        }
        self.set_next(prev, index);
        self.set_prev(next, index);
        self.len += 1;
    }

    #[inline]
    fn unlink(&mut self, prev: u32, next: u32) {
        self.set_next(prev, next);
        self.set_prev(next, prev);
        self.len -= 1;
    }

    /// Lets `next` follow `index`, or be the head if there is no such slot.
    #[inline]
    fn set_next(&mut self, index: u32, next: u32) {
        match self.slot_mut(index) {
            Some(slot) => slot.next = next,
            None => self.head = next,
        }
    }

    /// Lets `prev` precede `index`, or be the tail if there is no such slot.
    #[inline]
    fn set_prev(&mut self, index: u32, prev: u32) {
        match self.slot_mut(index) {
            Some(slot) => slot.prev = prev,
            None => self.tail = prev,
        }
    }

    /// Gives a large slab back once nobody is in it. Each slot was paid for by the waiter that made
    /// it, so this is O(1) per waiter too.
    #[inline]
    fn shrink(&mut self) {
        if self.slots.len() > SLOTS_KEPT {
            self.slots.clear();
            self.slots.shrink_to(SLOTS_KEPT);
            self.vacant = NIL;
        }
    }

    #[inline]
    fn at(&self, index: u32) -> Option<(WaiterKey, &Entry<W>)> {
        let slot = self.slot(index)?;
        let entry = slot.entry.as_ref()?;
        Some((WaiterKey { arrival: slot.arrival, index }, entry))
    }

    #[inline]
    fn slot(&self, index: u32) -> Option<&Slot<W>> {
        #[cfg(test)]
        tests::count_visit();
        self.slots.get(index as usize)
    }

    #[inline]
    fn slot_mut(&mut self, index: u32) -> Option<&mut Slot<W>> {
        #[cfg(test)]
        tests::count_visit();
        self.slots.get_mut(index as usize)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        static VISITS: Cell<u64> = const { Cell::new(0) };
    }

    /// Every look at a slot passes here, so a test can count steps instead of time.
    pub(super) fn count_visit() {
        VISITS.set(VISITS.get() + 1);
    }

    fn visits_of<R>(work: impl FnOnce() -> R) -> u64 {
        let before = VISITS.get();
        work();
        VISITS.get() - before
    }

    fn entry(waiter: u32) -> Entry<u32> {
        Entry { weight: 1, want: Want::Plain, waiter }
    }

    fn list_of(len: u32) -> (WaiterList<u32>, Vec<WaiterKey>) {
        let mut list = WaiterList::new();
        let keys = (0..len).map(|waiter| list.push_back(entry(waiter)).unwrap()).collect();
        (list, keys)
    }

    #[test]
    fn no_operation_visits_more_slots_in_a_longer_queue() {
        let steps = |len: u32| {
            let (mut list, keys) = list_of(len);
            let middle = keys[keys.len() / 2];
            [
                visits_of(|| list.get(middle).is_some()),
                visits_of(|| list.remove(middle)),
                visits_of(|| list.push_back(entry(0))),
                visits_of(|| list.push_front(entry(0))),
                visits_of(|| list.pop_front()),
            ]
        };
        let short = steps(10);
        assert_eq!(short, steps(100_000));
        assert!(short.iter().all(|&visits| (1..=8).contains(&visits)), "{short:?}");
    }

    #[test]
    fn memory_does_not_grow_with_the_number_of_past_waiters() {
        let (mut list, keys) = list_of(10);
        let allocated = list.capacity();
        // Somebody stays, so that it is reuse, not the reset of an empty list, that is seen here.
        for waiter in 0..100_000 {
            let key = list.push_back(entry(waiter)).unwrap();
            assert_eq!(list.remove(key).unwrap().waiter, waiter);
        }
        assert_eq!(list.capacity(), allocated);
        for key in keys {
            list.remove(key).unwrap();
        }
        for waiter in 0..100_000 {
            list.push_back(entry(waiter)).unwrap();
            list.pop_front().unwrap();
        }
        assert_eq!(list.capacity(), allocated);
    }

    #[test]
    fn a_crowd_that_left_leaves_no_memory_behind() {
        let (mut list, keys) = list_of(100_000);
        assert!(list.capacity() >= 100_000);
        for &key in keys.iter().rev() {
            list.remove(key).unwrap();
        }
        assert!(list.capacity() <= SLOTS_KEPT, "{}", list.capacity());
        // Keys from before the reset stay stale, though the slots start afresh.
        let (first, now) = (keys[0], list.push_back(entry(7)).unwrap());
        assert_eq!(first.index, now.index);
        assert!(list.remove(first).is_none());
        assert_eq!(list.remove(now).unwrap().waiter, 7);
    }

    #[test]
    fn a_small_list_keeps_its_slots_when_it_empties() {
        let len = u32::try_from(SLOTS_KEPT).unwrap();
        let (mut list, _) = list_of(len);
        while list.pop_front().is_some() {}
        assert_eq!(list.slots.len(), SLOTS_KEPT);
        for waiter in 0..len {
            list.push_back(entry(waiter)).unwrap();
        }
        assert_eq!(list.slots.len(), SLOTS_KEPT);
        assert!(list.iter().map(|(_, entry)| entry.waiter).eq(0..len));
    }

    #[test]
    fn a_full_list_hands_the_entry_back_and_stays_usable() {
        let mut list = WaiterList::new();
        let first = list.occupy(entry(1), 2).unwrap();
        list.link(first.index, NIL, NIL);
        let second = list.occupy(entry(2), 2).unwrap();
        list.link(second.index, first.index, NIL);
        assert_eq!(list.occupy(entry(3), 2).unwrap_err().waiter, 3);
        assert_eq!(list.remove(first).unwrap().waiter, 1);
        assert!(list.occupy(entry(3), 2).is_ok());
    }
}
