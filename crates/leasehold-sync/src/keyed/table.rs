//! The table behind keyed locks and object locks (rules K1 to K3).
//!
//! A request is granted iff no request that came before it, held or queued, conflicts with it: that
//! is rule K2, and as nobody who conflicts is ever let past, it stays the rule until the grant.
//!
//! Keys are spread over shards, each behind a small mutex of its own, and a request for a key
//! touches its shard and nothing else, while nobody asks for the whole set. The first whole-set
//! request takes the mutexes of all shards, in order, and marks the shards *gated*: from then on
//! a keyed request, under the mutex of its shard, takes the one of [`Whole`] too, until the last
//! whole-set request ends, again under all of them. So every two requests that may conflict meet
//! under one mutex, and which came first is never in doubt.

#[cfg(not(leasehold_loom))]
use std::num::NonZeroU64;
use std::{fmt, num::NonZeroU32, task::Waker};

use smallvec::SmallVec;

use super::{
    ask::{Access, Ask},
    shard::{Arrival, Name, Shard},
    sys::{Locked, Small},
    wakers::Wakers,
    whole::{Waiting, Whole, id_of, index_of},
};

/// See the module.
#[doc(hidden)]
pub struct Table<K> {
    shards: Box<[Padded<K>]>,
    /// How far a hash is shifted to get the shard.
    shift: u32,
    whole: Small<Whole>,
    /// What the frames know it by.
    #[cfg(not(leasehold_loom))]
    domain: u64,
}

/// A cache line of its own, so that different shards do not meet.
#[repr(align(64))]
struct Padded<K>(Small<Shard<K>>);

/// One grant, to be given back once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grant {
    hash: u32,
    /// The id of the entry, or of the whole-set request.
    id: NonZeroU32,
    ask: Ask,
}

/// One place in a queue, to be left once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    hash: u32,
    waiter: u32,
    ask: Ask,
}

/// What became of a request.
pub(crate) enum Outcome {
    Granted(Grant),
    Queued(Place),
    /// Neither: the key may have got another name meanwhile.
    Renamed,
}

impl Grant {
    pub(crate) const fn ask(self) -> Ask {
        self.ask
    }

    /// What a grant of the whole set is known by; `None` for a key.
    #[cfg(not(leasehold_loom))]
    pub(crate) fn whole(self) -> Option<NonZeroU32> {
        self.ask.is_whole().then_some(self.id)
    }

    /// What the key is known by; `None` for the whole set.
    #[cfg(not(leasehold_loom))]
    pub(crate) fn name(self) -> Option<NonZeroU64> {
        (!self.ask.is_whole()).then(|| full_name(self.hash, self.id))
    }
}

/// What a request is for: a key, unless it is for the whole set, and its hash.
pub(crate) struct Wanted<K> {
    ask: Ask,
    hash: u32,
    /// Taken when a new entry is made for it.
    key: Option<K>,
    /// What the key is known by, once that matters to anybody. From then on it is known by that
    /// alone: comparing keys is foreign code, and must not run under the locks of the frames.
    name: Option<Name>,
}

impl<K> Wanted<K> {
    /// The hash is 64 bits of any quality.
    #[inline]
    pub(crate) const fn key(ask: Ask, key: K, hash: u64) -> Self {
        Self { ask, hash: mix(hash), key: Some(key), name: None }
    }

    #[inline]
    pub(crate) const fn whole(ask: Ask) -> Self {
        Self { ask, hash: 0, key: None, name: None }
    }

    #[inline]
    pub(crate) const fn ask(&self) -> Ask {
        self.ask
    }
}

impl<K> Table<K> {
    /// The number of shards is a power of two from 2 to 256.
    pub(crate) fn new(shards: usize) -> Self {
        assert!(shards.is_power_of_two() && (2..=256).contains(&shards));
        let shift = u32::BITS - shards.trailing_zeros();
        let shards = (0..shards).map(|_| Padded(Small::new(Shard::new()))).collect();
        Self {
            shards,
            shift,
            whole: Small::new(Whole::new()),
            #[cfg(not(leasehold_loom))]
            domain: crate::frames::next_domain(),
        }
    }

    /// Grants the request if nothing is in its way.
    #[inline]
    pub(crate) fn take(&self, wanted: &mut Wanted<K>) -> Option<Grant>
    where
        K: Eq,
    {
        let (ask, hash) = (wanted.ask, wanted.hash);
        let id = if ask.is_whole() {
            self.take_whole(ask.access())
        } else {
            let mut shard = self.shard(hash).lock();
            if shard.gated { self.take_gated(&mut shard, wanted) } else { take(&mut shard, wanted) }
        };
        Some(Grant { hash, id: id?, ask })
    }

    /// Grants the request, or queues it.
    pub(crate) fn arrive(&self, wanted: &mut Wanted<K>, waker: &mut Option<Waker>) -> Outcome
    where
        K: Eq,
    {
        let (ask, hash) = (wanted.ask, wanted.hash);
        let arrival = if ask.is_whole() {
            self.arrive_whole(ask.access(), waker)
        } else {
            self.arrive_key(wanted, waker)
        };
        match arrival {
            Arrival::Granted(id) => Outcome::Granted(Grant { hash, id, ask }),
            Arrival::Queued(waiter) => Outcome::Queued(Place { hash, waiter, ask }),
            Arrival::Renamed => Outcome::Renamed,
        }
    }

    /// Settles what a key will be known by, from its entry if there is one.
    #[cfg(not(leasehold_loom))]
    pub(crate) fn name(&self, wanted: &mut Wanted<K>) -> Option<NonZeroU64>
    where
        K: Eq,
    {
        if wanted.ask.is_whole() {
            return None;
        }
        let name = self.shard(wanted.hash).lock().name(wanted.hash, &wanted.key);
        wanted.name = Some(name);
        Some(full_name(wanted.hash, name.id))
    }

    /// A share of that read of the whole set, or else of the key, which has its name.
    #[cfg(not(leasehold_loom))]
    pub(crate) fn shared(&self, wanted: &Wanted<K>, whole: Option<NonZeroU32>) -> Grant {
        let Wanted { ask, hash, name, .. } = *wanted;
        match whole {
            Some(id) => Grant { hash, id, ask: Ask::ReadAll },
            None => Grant { hash, id: name.expect("it was asked for by its name").id, ask },
        }
    }

    #[cfg(not(leasehold_loom))]
    pub(crate) const fn domain(&self) -> u64 {
        self.domain
    }

    /// Gives a grant back and hands on what it held.
    #[inline]
    pub(crate) fn release(&self, grant: Grant) {
        let Grant { hash, id, ask } = grant;
        if ask.is_whole() {
            self.end_whole(index_of(id), true);
            return;
        }
        let mut shard = self.shard(hash).lock();
        if !shard.gated
            && let Some(key) = shard.release_quietly(hash, id, ask.access())
        {
            shard.uncount(ask.access());
            // Foreign code, so not under the lock.
            drop(shard);
            drop(key);
            return;
        }
        self.release_slowly(shard, grant);
    }

    #[cold]
    fn release_slowly(&self, mut shard: Locked<'_, Shard<K>>, grant: Grant) {
        let Grant { hash, id, ask } = grant;
        let mut wakers = Wakers::new();
        let key = shard.release(hash, id, ask.access(), &mut wakers);
        let counted = shard.uncount(ask.access());
        if shard.gated && counted {
            self.settle_whole(|whole| whole.uncount(ask.access()), &mut wakers);
        }
        // Before the wakers and the key, which are foreign code.
        drop(shard);
        drop(wakers);
        drop(key);
    }

    /// The grant, if there is one by now; then the place is given up. Else that task is woken by it.
    pub(crate) fn look(&self, place: Place, waker: &Waker) -> Option<Grant> {
        let Place { hash, waiter, ask } = place;
        if ask.is_whole() {
            return self.look_whole(place, waker);
        }
        // A second round if it has to wake another task than the last time, as far as can be told:
        // a waker is foreign code, so it is cloned and dropped outside of the lock.
        let mut other = None;
        for renewed in [false, true] {
            let mut shard = self.shard(hash).lock();
            if let Some(id) = shard.look(waiter, &mut other) {
                return Some(Grant { hash, id, ask });
            }
            if renewed || shard.wakes(waiter, waker) {
                break;
            }
            drop(shard);
            other = Some(waker.clone());
        }
        None
    }

    /// Leaves the queue, and says how many wait on. `Err`: a grant that came first is told, never
    /// lost (rule Q4).
    pub(crate) fn leave(&self, place: Place) -> Result<u32, Grant> {
        let Place { hash, waiter, ask } = place;
        let access = ask.access();
        if ask.is_whole() {
            let granted = self.end_whole(waiter, false);
            return match granted {
                true => Err(Grant { hash, id: id_of(waiter), ask }),
                false => Ok(self.whole.lock().queued()),
            };
        }
        let mut wakers = Wakers::new();
        let _gone;
        let mut shard = self.shard(hash).lock();
        if let Some(id) = shard.look(waiter, &mut None) {
            return Err(Grant { hash, id, ask });
        }
        let gone = shard.leave(waiter, &mut wakers);
        let (gate, queued) = (gone.gate, gone.queued);
        _gone = gone;
        if gate != super::nodes::NIL {
            self.settle_whole(|whole| whole.let_go(access, gate), &mut wakers);
        } else if shard.uncount(access) && shard.gated {
            self.settle_whole(|whole| whole.uncount(access), &mut wakers);
        }
        Ok(queued)
    }

    /// How many wait for that key, or else for the whole set.
    pub(crate) fn queued_for(&self, wanted: &Wanted<K>) -> u32
    where
        K: Eq,
    {
        if wanted.ask.is_whole() {
            return self.whole.lock().queued();
        }
        self.shard(wanted.hash).lock().queued_for(wanted.hash, &wanted.key)
    }

    /// How many keys are held or waited for.
    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.0.lock().len()).sum()
    }

    /// How many whole-set requests are held or queued.
    pub(crate) fn whole(&self) -> usize {
        self.whole.lock().len()
    }

    /// How many requests wait, keyed and whole-set ones.
    pub(crate) fn queued(&self) -> usize {
        let keyed: usize = self.shards.iter().map(|shard| shard.0.lock().queued()).sum();
        keyed + self.whole.lock().queued() as usize
    }

    fn arrive_key(&self, wanted: &mut Wanted<K>, waker: &mut Option<Waker>) -> Arrival
    where
        K: Eq,
    {
        let (hash, access) = (wanted.hash, wanted.ask.access());
        let name = wanted.name.map(|name| name.id);
        let mut shard = self.shard(hash).lock();
        if wanted.name.is_some_and(|name| !shard.goes_by(hash, name)) {
            return Arrival::Renamed;
        }
        if !shard.gated {
            if let Some(id) = take(&mut shard, wanted) {
                return Arrival::Granted(id);
            }
            let waiter = shard.queue(hash, &mut wanted.key, access, name, waker);
            shard.count(access);
            return Arrival::Queued(waiter);
        }
        if let Some(id) = self.take_gated(&mut shard, wanted) {
            return Arrival::Granted(id);
        }
        let mut whole = self.whole.lock();
        let waiter = shard.queue(hash, &mut wanted.key, access, name, waker);
        if whole.holds_up(access) {
            let waiting = Waiting { shard: self.shard_of(hash), waiter };
            shard.gate(waiter, whole.hold_up(access, waiting));
        } else if shard.count(access) {
            whole.count(access);
        }
        Arrival::Queued(waiter)
    }

    /// Grants a keyed request while there are whole-set ones, if it is behind none that conflicts.
    #[cold]
    fn take_gated(&self, shard: &mut Shard<K>, wanted: &mut Wanted<K>) -> Option<NonZeroU32>
    where
        K: Eq,
    {
        let access = wanted.ask.access();
        let mut whole = self.whole.lock();
        if whole.holds_up(access) {
            return None;
        }
        let counts = shard.live(access) != u32::MAX;
        let id = take(shard, wanted)?;
        if counts {
            whole.count(access);
        }
        Some(id)
    }

    fn take_whole(&self, access: Access) -> Option<NonZeroU32> {
        self.with_whole(|whole| match whole.admits(access) {
            true => Some(whole.arrive(access, &mut None)),
            false => None,
        })
        .map(|arrival| match arrival {
            Arrival::Granted(id) => id,
            Arrival::Queued(_) | Arrival::Renamed => unreachable!("it is admitted"),
        })
    }

    fn arrive_whole(&self, access: Access, waker: &mut Option<Waker>) -> Arrival {
        self.with_whole(|whole| whole.arrive(access, waker))
    }

    /// Runs the arrival of a whole-set request, and gates the shards if it stays.
    fn with_whole<R>(&self, arrive: impl FnOnce(&mut Whole) -> R) -> R {
        // While the shards are gated, whatever happens in them happens under this mutex too.
        let mut whole = self.whole.lock();
        if whole.is_gating() {
            return arrive(&mut whole);
        }
        drop(whole);
        let mut shards = self.lock_all();
        let mut whole = self.whole.lock();
        if !whole.is_gating() {
            let live = |access| shards.iter().map(|shard| u64::from(shard.live(access))).sum();
            whole.set_live([live(Access::Read), live(Access::Write)]);
        }
        let arrived = arrive(&mut whole);
        let gating = whole.is_gating();
        shards.iter_mut().for_each(|shard| shard.gated = gating);
        arrived
    }

    /// The end of a whole-set request that is held, or, if it is not, of one that is queued. Says
    /// whether it was held.
    fn end_whole(&self, request: u32, held: bool) -> bool {
        let mut wakers = Wakers::new();
        let _own;
        let mut shards = self.lock_all();
        let mut whole = self.whole.lock();
        if !held && whole.is_granted(request) {
            return true;
        }
        _own = whole.end(request);
        for access in [Access::Read, Access::Write] {
            while let Some(Waiting { shard, waiter }) = whole.pass(access) {
                let shard = &mut shards[shard as usize];
                if shard.count(access) {
                    whole.count(access);
                }
                shard.open_gate(waiter, &mut wakers);
            }
        }
        whole.settle(&mut wakers);
        if !whole.is_gating() {
            shards.iter_mut().for_each(|shard| shard.gated = false);
        }
        held
    }

    #[cold]
    fn settle_whole(&self, change: impl FnOnce(&mut Whole), wakers: &mut Wakers) {
        let mut whole = self.whole.lock();
        change(&mut whole);
        whole.settle(wakers);
    }

    fn look_whole(&self, place: Place, waker: &Waker) -> Option<Grant> {
        let Place { hash, waiter: request, ask } = place;
        let mut other = None;
        for renewed in [false, true] {
            let mut whole = self.whole.lock();
            if whole.is_granted(request) {
                return Some(Grant { hash, id: id_of(request), ask });
            }
            if renewed {
                other = whole.renew(request, other);
            }
            if renewed || whole.wakes(request, waker) {
                break;
            }
            drop(whole);
            other = Some(waker.clone());
        }
        drop(other);
        None
    }

    fn lock_all(&self) -> SmallVec<[Locked<'_, Shard<K>>; 64]> {
        self.shards.iter().map(|shard| shard.0.lock()).collect()
    }

    #[inline]
    fn shard(&self, hash: u32) -> &Small<Shard<K>> {
        &self.shards[self.shard_of(hash) as usize].0
    }

    #[inline]
    const fn shard_of(&self, hash: u32) -> u32 {
        hash >> self.shift
    }
}

/// Grants a keyed request that no whole-set one is in the way of, if nothing else is.
#[inline]
fn take<K: Eq>(shard: &mut Shard<K>, wanted: &mut Wanted<K>) -> Option<NonZeroU32> {
    let (hash, access, key) = (wanted.hash, wanted.ask.access(), &mut wanted.key);
    match wanted.name {
        Some(name) if shard.goes_by(hash, name) => shard.take_named(hash, key, access, name.id),
        _ => shard.take(hash, key, access),
    }
}

impl<K> fmt::Debug for Table<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table")
            .field("keys", &self.len())
            .field("queued", &self.queued())
            .finish_non_exhaustive()
    }
}

/// Unique among the entries of a table: the hash tells the shard, and within it the id is unique
/// at least together with the hash.
#[cfg(not(leasehold_loom))]
const fn full_name(hash: u32, id: NonZeroU32) -> NonZeroU64 {
    match NonZeroU64::new((hash as u64) << 32 | id.get() as u64) {
        Some(name) => name,
        None => unreachable!(),
    }
}

/// 32 bits that all depend on all 64: a hasher may be as poor as the identity.
#[inline]
#[allow(clippy::cast_possible_truncation, reason = "the halves are what is wanted")]
const fn mix(hash: u64) -> u32 {
    let product = hash as u128 * 0x9e37_79b9_7f4a_7c15;
    let folded = (product >> 64) as u64 ^ product as u64;
    (folded >> 32) as u32
}
