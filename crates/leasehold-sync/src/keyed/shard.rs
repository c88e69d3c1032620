//! One shard of the table: the keys that are held or waited for, and who waits for them.
//!
//! An entry lives from the first request for its key to the end of the last one (rule K3). Who
//! waits for a key stands in the ring of its entry, in the order of arrival. A waiter is *gated*
//! while a whole-set request that came before it stands in its way: then the table's
//! [`Whole`](super::whole::Whole) knows it too, and it is not granted.

use std::{num::NonZeroU32, task::Waker};

use hashbrown::{HashTable, hash_table::Entry as Slot};

use super::{
    ask::Access,
    nodes::{NIL, Nodes},
    wakers::Wakers,
};

/// A table that has grown beyond this shrinks once few keys are left.
const KEPT: usize = 64;
/// As many readers of one key as a read-write lock admits.
const READERS_MAX: u32 = 1 << 29;
/// The holders of a key that is written.
const WRITTEN: u32 = u32::MAX;

pub(super) struct Shard<K> {
    table: HashTable<Entry<K>>,
    /// There is a box once somebody had to wait.
    waiters: Option<Box<Nodes<Waiter>>>,
    /// The requests that are held or queued, the gated ones not, by their access. A count that is
    /// full stays so: only guards that were forgotten can fill it, and they are for ever.
    live: [u32; 2],
    next_id: NonZeroU32,
    /// Whether ids have come round, so that an old entry may have the next one.
    wrapped: bool,
    /// Whether there is a whole-set request.
    pub(super) gated: bool,
}

/// 16 bytes and the key. The hash and the id name it among all entries that live.
struct Entry<K> {
    key: K,
    hash: u32,
    id: NonZeroU32,
    /// How many read, or [`WRITTEN`].
    holders: u32,
    /// The first waiter, or [`NIL`].
    queue: u32,
}

struct Waiter {
    hash: u32,
    id: NonZeroU32,
    access: Access,
    /// Granted and not seen yet: in no ring any more.
    granted: bool,
    /// The node of it in the gate that holds it up, or [`NIL`].
    gate: u32,
    waker: Option<Waker>,
}

/// What became of a request on arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// The id of the entry, or of the whole-set request.
    Granted(NonZeroU32),
    /// The index of the waiter.
    Queued(u32),
    /// Neither: the key may be known by another name by now.
    Renamed,
}

/// What a key is known by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Name {
    pub(super) id: NonZeroU32,
    /// The next id of the shard when it was named.
    next: NonZeroU32,
}

/// What a waiter that leaves the queue leaves behind.
pub(super) struct Gone<K> {
    /// How many wait for the key still.
    pub(super) queued: u32,
    pub(super) gate: u32,
    pub(super) waker: Option<Waker>,
    /// The key, if its entry is gone too.
    pub(super) key: Option<K>,
}

impl<K> Shard<K> {
    pub(super) const fn new() -> Self {
        let table = HashTable::new();
        Self {
            table,
            waiters: None,
            live: [0; 2],
            next_id: NonZeroU32::MIN,
            wrapped: false,
            gated: false,
        }
    }

    /// How many keys are held or waited for.
    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    /// How many wait.
    pub(super) fn queued(&self) -> usize {
        self.waiters.as_ref().map_or(0, |waiters| waiters.linked())
    }

    /// How many wait for a key.
    pub(super) fn queued_for(&self, hash: u32, key: &Option<K>) -> u32
    where
        K: Eq,
    {
        let entry = self.table.find(expand(hash), is_of(hash, key));
        let ring = |waiters: &Nodes<Waiter>| entry.map(|entry| waiters.ring(entry.queue));
        self.waiters.as_deref().and_then(ring).unwrap_or(0)
    }

    pub(super) const fn live(&self, access: Access) -> u32 {
        self.live[access as usize]
    }

    /// Grants the request if nothing is in its way, and counts it (rule K2). The key is taken if
    /// the entry is new.
    #[inline]
    pub(super) fn take(
        &mut self,
        hash: u32,
        key: &mut Option<K>,
        access: Access,
    ) -> Option<NonZeroU32>
    where
        K: Eq,
    {
        let next = self.next_id_for(hash);
        let found = self.table.entry(expand(hash), is_of(hash, key), hash_of);
        let id = admit(found, key, hash, next, access)?;
        if id == next {
            self.advance_id();
        }
        self.count(access);
        Some(id)
    }

    /// As [`Self::take`], of a key that goes by that name: no keys are compared.
    pub(super) fn take_named(
        &mut self,
        hash: u32,
        key: &mut Option<K>,
        access: Access,
        name: NonZeroU32,
    ) -> Option<NonZeroU32> {
        let found = self.table.entry(expand(hash), named(hash, name), hash_of);
        let id = admit(found, key, hash, name, access)?;
        // Every new entry takes an id, so that names that are older are known to be.
        self.advance_id();
        self.count(access);
        Some(id)
    }

    /// The name of a key: the id of its entry, or, if there is none, one that is kept for it.
    pub(super) fn name(&mut self, hash: u32, key: &Option<K>) -> Name
    where
        K: Eq,
    {
        if let Some(entry) = self.table.find(expand(hash), is_of(hash, key)) {
            return Name { id: entry.id, next: self.next_id };
        }
        let id = self.next_id_for(hash);
        self.advance_id();
        Name { id, next: self.next_id }
    }

    /// Whether the key goes by that name still: its entry does, or no entry was made since.
    pub(super) fn goes_by(&self, hash: u32, name: Name) -> bool {
        self.next_id == name.next || self.is_known(hash, name.id)
    }

    /// Queues the request, which was not granted. The key is taken if the entry is new. One
    /// without a gate has to be counted. A key that is `named` is not compared.
    pub(super) fn queue(
        &mut self,
        hash: u32,
        key: &mut Option<K>,
        access: Access,
        name: Option<NonZeroU32>,
        waker: &mut Option<Waker>,
    ) -> u32
    where
        K: Eq,
    {
        let next = self.next_id_for(hash);
        let found = match name {
            None => self.table.entry(expand(hash), is_of(hash, key), hash_of),
            Some(name) => self.table.entry(expand(hash), named(hash, name), hash_of),
        };
        let (mut slot, is_new) = match found {
            Slot::Occupied(slot) => (slot, false),
            Slot::Vacant(slot) => (slot.insert(Entry::new(key, hash, name.unwrap_or(next))), true),
        };
        let entry = slot.get_mut();
        let (id, waker) = (entry.id, waker.take());
        let waiter = Waiter { hash, id, access, granted: false, gate: NIL, waker };
        let waiters = self.waiters.get_or_insert_with(|| Box::new(Nodes::new()));
        let waiter = waiters.push_back(&mut entry.queue, waiter);
        if is_new {
            self.advance_id();
        }
        waiter
    }

    /// Gives back a grant that nobody waits for, counted or not. Gives the key if nobody else has
    /// it, and nothing at all if somebody waits.
    #[inline]
    pub(super) fn release_quietly(
        &mut self,
        hash: u32,
        id: NonZeroU32,
        access: Access,
    ) -> Option<Option<K>> {
        let Ok(mut found) = self.table.find_entry(expand(hash), named(hash, id)) else {
            unreachable!("a key that is held has its entry");
        };
        let entry = found.get_mut();
        if entry.queue != NIL {
            return None;
        }
        entry.give_back(access);
        if entry.holders != 0 {
            return Some(None);
        }
        let (entry, _) = found.remove();
        self.shrink_if_sparse();
        Some(Some(entry.key))
    }

    /// Gives back a grant and hands the key on. Gives the key if nobody wants it any more.
    pub(super) fn release(
        &mut self,
        hash: u32,
        id: NonZeroU32,
        access: Access,
        wakers: &mut Wakers,
    ) -> Option<K> {
        self.with_entry(hash, id, |entry, waiters| {
            entry.give_back(access);
            if let Some(waiters) = waiters {
                entry.settle(waiters, wakers);
            }
        })
    }

    /// The id of the entry if the waiter was granted, and it is a waiter no more. Else its waker is
    /// replaced, where `waker` has another one, which then is the old one.
    pub(super) fn look(&mut self, waiter: u32, waker: &mut Option<Waker>) -> Option<NonZeroU32> {
        let waiters = self.waiters_mut();
        let found = waiters.get_mut(waiter);
        if found.granted {
            return Some(waiters.remove(waiter).id);
        }
        if waker.is_some() {
            std::mem::swap(&mut found.waker, waker);
        }
        None
    }

    /// Whether that waiter wakes that task.
    pub(super) fn wakes(&mut self, waiter: u32, waker: &Waker) -> bool {
        self.waiters_mut().get(waiter).waker.as_ref().is_some_and(|own| own.will_wake(waker))
    }

    /// Takes out a waiter that was not granted, and lets in those it blocked on its key.
    pub(super) fn leave(&mut self, waiter: u32, wakers: &mut Wakers) -> Gone<K> {
        let found = self.waiters_mut().get(waiter);
        let (hash, id) = (found.hash, found.id);
        let mut gone = Gone { queued: 0, gate: NIL, waker: None, key: None };
        gone.key = self.with_entry(hash, id, |entry, waiters| {
            let Some(waiters) = waiters else { unreachable!("there is a waiter") };
            waiters.unlink(&mut entry.queue, waiter);
            let left = waiters.remove(waiter);
            (gone.gate, gone.waker) = (left.gate, left.waker);
            entry.settle(waiters, wakers);
            gone.queued = waiters.ring(entry.queue);
        });
        gone
    }

    /// The waiter stands in that gate.
    pub(super) fn gate(&mut self, waiter: u32, gate: u32) {
        self.waiters_mut().get_mut(waiter).gate = gate;
    }

    /// No whole-set request holds the waiter up any more.
    pub(super) fn open_gate(&mut self, waiter: u32, wakers: &mut Wakers) {
        let found = self.waiters_mut().get_mut(waiter);
        found.gate = NIL;
        let (hash, id) = (found.hash, found.id);
        let idle = self.with_entry(hash, id, |entry, waiters| {
            let Some(waiters) = waiters else { unreachable!("there is a waiter") };
            entry.settle(waiters, wakers);
        });
        debug_assert!(idle.is_none(), "it is waited for, or held");
    }

    /// Counts a request that is granted, or queued without a gate. Says whether it could.
    #[inline]
    pub(super) fn count(&mut self, access: Access) -> bool {
        // No number made of a comparison that is branched on too: rustc 1.95 may forget to compare
        // then when it optimizes (rust-lang/rust#158206), and the count was wrong in release builds.
        let live = &mut self.live[access as usize];
        if *live == u32::MAX {
            return false;
        }
        *live += 1;
        true
    }

    /// The end of one that was counted. Says whether it is counted no more.
    #[inline]
    pub(super) fn uncount(&mut self, access: Access) -> bool {
        // As in `count`.
        let live = &mut self.live[access as usize];
        if *live == u32::MAX {
            return false;
        }
        *live -= 1;
        true
    }

    /// Runs a step of an entry that must exist, and removes the entry if it is of no use any more.
    fn with_entry(
        &mut self,
        hash: u32,
        id: NonZeroU32,
        step: impl FnOnce(&mut Entry<K>, Option<&mut Nodes<Waiter>>),
    ) -> Option<K> {
        let Ok(mut found) = self.table.find_entry(expand(hash), named(hash, id)) else {
            unreachable!("a key that is held or waited for has its entry");
        };
        let entry = found.get_mut();
        step(entry, self.waiters.as_deref_mut());
        if entry.holders != 0 || entry.queue != NIL {
            return None;
        }
        let (entry, _) = found.remove();
        self.shrink_if_sparse();
        Some(entry.key)
    }

    #[inline]
    fn shrink_if_sparse(&mut self) {
        if self.table.capacity() > KEPT && self.table.len() < self.table.capacity() / 8 {
            self.shrink();
        }
    }

    #[cold]
    fn shrink(&mut self) {
        self.table.shrink_to(self.table.len() * 2, hash_of);
    }

    /// What a new entry with that hash would be called: the number alone names it, and once
    /// numbers have come round, the number together with the hash.
    #[inline]
    fn next_id_for(&mut self, hash: u32) -> NonZeroU32 {
        while self.wrapped && self.is_known(hash, self.next_id) {
            self.advance_id();
        }
        self.next_id
    }

    #[inline]
    fn advance_id(&mut self) {
        self.next_id = self.next_id.checked_add(1).unwrap_or_else(|| {
            self.wrapped = true;
            NonZeroU32::MIN
        });
    }

    #[cold]
    fn is_known(&self, hash: u32, id: NonZeroU32) -> bool {
        self.table.find(expand(hash), named(hash, id)).is_some()
    }

    fn waiters_mut(&mut self) -> &mut Nodes<Waiter> {
        let Some(waiters) = &mut self.waiters else { unreachable!("there is a waiter") };
        waiters
    }
}

impl<K> Entry<K> {
    /// Nobody holds it yet.
    #[inline]
    fn new(key: &mut Option<K>, hash: u32, id: NonZeroU32) -> Self {
        let Some(key) = key.take() else {
            unreachable!("a request has its key until it has a place")
        };
        Self { key, hash, id, holders: 0, queue: NIL }
    }

    /// Whether an arriving request conflicts with no holder and with nobody queued: a read that is
    /// queued waits for a write, or for a whole-set write that is in the way of every later read.
    #[inline]
    const fn admits(&self, access: Access) -> bool {
        self.queue == NIL && self.fits(access)
    }

    #[inline]
    const fn fits(&self, access: Access) -> bool {
        match access {
            Access::Read => self.holders < READERS_MAX,
            Access::Write => self.holders == 0,
        }
    }

    #[inline]
    fn take(&mut self, access: Access) {
        debug_assert!(self.fits(access));
        self.holders = if access.writes() { WRITTEN } else { self.holders + 1 };
    }

    #[inline]
    fn give_back(&mut self, access: Access) {
        debug_assert!(self.holders > 0 && access.writes() == (self.holders == WRITTEN));
        self.holders = if access.writes() { 0 } else { self.holders - 1 };
    }

    /// Grants from the head until the head does not fit. Nobody behind it does either: what is in
    /// its way is in the way of whoever shares the key with it, and it conflicts with the others.
    #[inline]
    fn settle(&mut self, waiters: &mut Nodes<Waiter>, wakers: &mut Wakers) {
        while self.queue != NIL {
            let head = self.queue;
            let waiter = waiters.get_mut(head);
            if waiter.gate != NIL || !self.fits(waiter.access) {
                return;
            }
            self.take(waiter.access);
            waiter.granted = true;
            wakers.push(waiter.waker.take());
            waiters.unlink(&mut self.queue, head);
        }
    }
}

/// Grants a request of the key whose entry is there, or would be, with that id, if it is new.
/// Gives the id that the entry has.
#[inline]
fn admit<K>(
    found: Slot<'_, Entry<K>>,
    key: &mut Option<K>,
    hash: u32,
    id: NonZeroU32,
    access: Access,
) -> Option<NonZeroU32> {
    match found {
        Slot::Occupied(slot) => {
            let entry = slot.into_mut();
            if !entry.admits(access) {
                return None;
            }
            entry.take(access);
            Some(entry.id)
        }
        Slot::Vacant(slot) => {
            let mut entry = Entry::new(key, hash, id);
            entry.take(access);
            slot.insert(entry);
            Some(id)
        }
    }
}

/// Comparing keys is foreign code: it may panic, and nothing has changed then.
#[inline]
fn is_of<K: Eq>(hash: u32, key: &Option<K>) -> impl Fn(&Entry<K>) -> bool {
    move |entry| entry.hash == hash && Some(&entry.key) == key.as_ref()
}

#[inline]
fn hash_of<K>(entry: &Entry<K>) -> u64 {
    expand(entry.hash)
}

#[inline]
fn named<K>(hash: u32, id: NonZeroU32) -> impl Fn(&Entry<K>) -> bool {
    move |entry| entry.id == id && entry.hash == hash
}

/// The hash as the table wants it: the place from the low bits, the tag from the high ones.
#[inline]
const fn expand(hash: u32) -> u64 {
    (hash as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(shard: &mut Shard<u32>, hash: u32, key: u32) -> NonZeroU32 {
        shard.take(hash, &mut Some(key), Access::Read).expect("nothing in the way")
    }

    #[test]
    fn an_entry_costs_16_bytes_and_its_key() {
        assert_eq!(size_of::<Entry<u64>>(), 24);
        assert!(size_of::<Shard<u64>>() <= 56);
    }

    #[test]
    fn ids_that_come_round_miss_those_that_are_in_use() {
        let mut shard = Shard::new();
        let hash = 7;
        let first = take(&mut shard, hash, 1);
        shard.next_id = NonZeroU32::MAX;
        let second = take(&mut shard, hash, 2);
        // Other keys with the same hash.
        let third = take(&mut shard, hash, 3);
        assert_eq!([first, second, third].map(NonZeroU32::get), [1, u32::MAX, 2]);
        assert_eq!(take(&mut shard, hash, 1), first, "the same key is the same entry");
        let mut wakers = Wakers::new();
        let gone = [(first, None), (first, Some(1)), (second, Some(2)), (third, Some(3))];
        for (id, key) in gone {
            assert_eq!(shard.release(hash, id, Access::Read, &mut wakers), key);
        }
        assert_eq!(shard.len(), 0);
    }

    #[test]
    fn a_count_that_is_full_stays_so() {
        let mut shard = Shard::<u32>::new();
        assert!(shard.count(Access::Read) && shard.uncount(Access::Read));
        shard.live[0] = u32::MAX - 1;
        assert!(shard.count(Access::Read));
        assert!(!shard.count(Access::Read) && !shard.uncount(Access::Read));
        assert_eq!(shard.live(Access::Read), u32::MAX);
    }
}
