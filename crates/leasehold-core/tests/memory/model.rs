//! Random programs on the store and on a model that is too simple to be wrong.

use std::time::Duration;

use leasehold_core::{
    Acquire, Acquired, Backend, Binding, Confirmed, Extended, MemoryBackend, Released, Remaining,
    defaults,
};
use proptest::prelude::*;

use crate::kit::{Ask, Kit, answer, is_set, ms, ttl};

const CAPACITY: u32 = 12;
const CLIENTS: usize = 2;

#[derive(Clone, Debug)]
enum Do {
    Acquire { client: usize, weight: u32, ttl: Option<u64>, wait: bool, detached: bool },
    Confirm { which: usize },
    Release { which: usize },
    Extend { which: usize, ttl: Option<u64> },
    Renew { which: usize },
    CancelAll,
    Advance { ms: u64 },
    Die { client: usize },
}

fn any_do() -> impl Strategy<Value = Do> {
    let which = 0..1000usize;
    let ttls = || prop::option::weighted(0.7, 1..4000u64);
    prop_oneof![
        8 => (0..CLIENTS, prop_oneof![3 => Just(1u32), 1 => 1..=CAPACITY], ttls(), any::<bool>(),
            prop::bool::weighted(0.2))
            .prop_map(|(client, weight, ttl, wait, detached)| {
                Do::Acquire { client, weight, ttl, wait, detached }
            }),
        5 => which.clone().prop_map(|which| Do::Confirm { which }),
        5 => which.clone().prop_map(|which| Do::Release { which }),
        2 => (which.clone(), ttls()).prop_map(|(which, ttl)| Do::Extend { which, ttl }),
        1 => which.prop_map(|which| Do::Renew { which }),
        1 => Just(Do::CancelAll),
        4 => prop_oneof![Just(0), 1..50u64, 1..5000u64].prop_map(|ms| Do::Advance { ms }),
        1 => (0..CLIENTS).prop_map(|client| Do::Die { client }),
    ]
}

/// A request as the model has it; times in milliseconds.
#[derive(Clone, Debug)]
struct Entry {
    id: usize,
    client: usize,
    weight: u32,
    ttl: Option<u64>,
    detached: bool,
    expiry: Option<u64>,
    claimed: bool,
}

/// Holders in the order of their grants, waiters in queue order, everything by scanning.
#[derive(Default)]
struct Model {
    now: u64,
    holders: Vec<Entry>,
    waiters: Vec<Entry>,
    rejected: Vec<(usize, usize)>,
}

impl Model {
    fn free(&self) -> u32 {
        CAPACITY - self.holders.iter().map(|holder| holder.weight).sum::<u32>()
    }

    fn grant_on(&mut self) {
        while self.waiters.first().is_some_and(|head| head.weight <= self.free()) {
            let mut head = self.waiters.remove(0);
            let claim = u64::try_from(defaults::CLAIM.as_millis()).unwrap();
            head.claimed = true;
            head.expiry = Some(self.now + head.ttl.map_or(claim, |ttl| ttl.min(claim)));
            self.holders.push(head);
        }
    }

    fn advance(&mut self, by: u64) {
        for _ in 0..by {
            self.now += 1;
            let now = self.now;
            self.holders.retain(|holder| holder.expiry.is_none_or(|expiry| expiry > now));
            self.grant_on();
        }
    }

    fn confirm(&mut self, id: usize) -> Option<bool> {
        let now = self.now;
        if let Some(holder) = self.holders.iter_mut().find(|holder| holder.id == id) {
            holder.expiry = holder.ttl.map(|ttl| (now + ttl).max(holder.expiry.unwrap_or(0)));
            holder.claimed = false;
            return Some(true);
        }
        self.waiters.iter().any(|waiter| waiter.id == id).then_some(false)
    }
}

struct Run {
    kit: Kit,
    clients: Vec<MemoryBackend>,
    requests: Vec<Acquire>,
    model: Model,
}

impl Run {
    fn new() -> Self {
        let kit = Kit::with_capacity(CAPACITY);
        let clients = (0..CLIENTS).map(|_| kit.client()).collect();
        Self { kit, clients, requests: Vec::new(), model: Model::default() }
    }

    fn pick(&self, which: usize) -> Option<usize> {
        // Of the latest, which are likely to be there still.
        let latest = self.requests.len().min(16);
        (latest > 0).then(|| self.requests.len() - 1 - which % latest)
    }

    fn acquire(&mut self, client: usize, weight: u32, of: Option<u64>, wait: bool, det: bool) {
        let detached = det && of.is_some();
        let request = Acquire {
            ttl: of.and_then(ttl),
            binding: if detached { Binding::Token } else { Binding::Client },
            wait,
            ..self.kit.weighing(weight)
        };
        let fits = self.model.waiters.is_empty() && weight <= self.model.free();
        let id = self.requests.len();
        let expiry = of.map(|of| self.model.now + of);
        let entry = Entry { id, client, weight, ttl: of, detached, expiry, claimed: false };
        match answer(self.clients[client].acquire(&request)) {
            Acquired::Granted(grant) => {
                assert!(fits);
                assert_eq!(grant.remaining, of.map(ms));
                self.model.holders.push(entry);
            }
            Acquired::Queued(place) => {
                assert!(!fits && wait);
                assert_eq!(place.obstacle.ahead, Some(self.model.waiters.len() as u64));
                self.model.waiters.push(entry);
            }
            Acquired::Busy(_) => assert!(!fits && !wait),
            Acquired::Refused(refusal) => panic!("{refusal:?}"),
        }
        self.requests.push(request);
    }

    fn release(&mut self, id: usize) {
        let model = &mut self.model;
        let released = answer(self.clients[0].release(&self.kit.lock, &self.requests[id].token));
        if let Some(at) = model.holders.iter().position(|holder| holder.id == id) {
            model.holders.remove(at);
            assert_eq!(released, Released::Holder);
        } else if let Some(at) = model.waiters.iter().position(|waiter| waiter.id == id) {
            model.waiters.remove(at);
            let Released::Waiter(Some(obstacle)) = released else { panic!("{released:?}") };
            assert_eq!(obstacle.ahead, Some(at as u64));
        } else {
            model.rejected.retain(|(rejected, _)| *rejected != id);
            assert_eq!(released, Released::Unknown);
        }
        model.grant_on();
    }

    fn step(&mut self, what: Do) {
        let lock = self.kit.lock.clone();
        match what {
            Do::Acquire { client, weight, ttl, wait, detached } => {
                self.acquire(client, weight, ttl, wait, detached);
            }
            Do::Confirm { which } => {
                let Some(id) = self.pick(which) else { return };
                let told = answer(self.clients[1].confirm(&lock, &self.requests[id].token));
                let rejected = self.model.rejected.iter().position(|(other, _)| *other == id);
                match (self.model.confirm(id), rejected) {
                    (Some(true), _) => assert!(matches!(told, Confirmed::Granted(_)), "{told:?}"),
                    (Some(false), _) => assert_eq!(told, Confirmed::Waiting),
                    (None, Some(at)) => {
                        self.model.rejected.remove(at);
                        assert!(matches!(told, Confirmed::Rejected(_)), "{told:?}");
                    }
                    (None, None) => assert_eq!(told, Confirmed::Unknown),
                }
            }
            Do::Release { which } => {
                if let Some(id) = self.pick(which) {
                    self.release(id);
                }
            }
            Do::Extend { which, ttl: to } => {
                let Some(id) = self.pick(which) else { return };
                let token = &self.requests[id].token;
                let told = answer(self.clients[0].extend(&lock, token, to.and_then(ttl)));
                let now = self.model.now;
                match self.model.holders.iter_mut().find(|holder| holder.id == id) {
                    None => assert_eq!(told, Extended::Gone),
                    Some(holder) if holder.detached && to.is_none() => {
                        assert_eq!(told, Extended::NeedsTtl);
                    }
                    Some(holder) => {
                        assert_eq!(told, Extended::Held);
                        holder.ttl = to;
                        holder.expiry = to.map(|to| now + to);
                    }
                }
            }
            Do::Renew { which } => {
                let Some(id) = self.pick(which) else { return };
                let token = self.requests[id].token.clone();
                let renewal = leasehold_core::Renewal { lock, token };
                answer(self.clients[0].renew(vec![renewal]));
                let now = self.model.now;
                if let Some(holder) = self.model.holders.iter_mut().find(|holder| holder.id == id)
                    && let Some(ttl) = holder.ttl
                {
                    holder.expiry = holder.expiry.max(Some(now + ttl));
                }
            }
            Do::CancelAll => {
                let count = answer(self.clients[0].cancel_all(&lock, "all"));
                assert_eq!(count, self.model.waiters.len() as u64);
                let gone = self.model.waiters.drain(..).map(|waiter| (waiter.id, waiter.client));
                self.model.rejected.extend(gone);
            }
            Do::Advance { ms: by } => {
                self.kit.clock.advance(ms(by));
                self.model.advance(by);
            }
            Do::Die { client } => {
                self.clients[client] = self.kit.client();
                self.model.waiters.retain(|waiter| waiter.client != client);
                self.model.holders.retain(|holder| holder.client != client || holder.detached);
                self.model.rejected.retain(|(_, owner)| *owner != client);
                self.model.grant_on();
            }
        }
    }

    /// The store looks like the model: who holds, in which order, until when, and who waits.
    fn compare(&self) {
        let state = answer(self.clients[0].inspect(&self.kit.lock));
        let (holders, waiters) =
            state.map_or_else(Default::default, |state| (state.holders, state.waiters));
        let short = |entry: &Entry| self.requests[entry.id].token.short_id();
        let left = |entry: &Entry| entry.expiry.map(|expiry| ms(expiry - self.model.now));
        let seen: Vec<(String, Option<Duration>, bool)> = holders
            .iter()
            .map(|holder| (holder.short_id.clone(), holder.ttl_left, holder.claimed))
            .collect();
        let expected: Vec<_> = self
            .model
            .holders
            .iter()
            .map(|entry| (short(entry), left(entry), entry.claimed))
            .collect();
        assert_eq!(seen, expected);
        assert!(holders.windows(2).all(|pair| pair[0].fencing < pair[1].fencing));
        let seen: Vec<_> = waiters.iter().map(|waiter| waiter.short_id.clone()).collect();
        assert_eq!(seen, self.model.waiters.iter().map(short).collect::<Vec<_>>());
        let awaited = self.model.holders.iter().any(|holder| holder.expiry.is_some());
        if !self.model.waiters.is_empty() && awaited {
            assert_eq!(self.kit.clock.timers(), 1);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..Default::default() })]

    #[test]
    fn the_store_does_what_the_model_does(program in prop::collection::vec(any_do(), 1..120)) {
        let mut run = Run::new();
        for what in program {
            run.step(what);
            run.compare();
        }
        // And in the end nothing is lost: all is given back, and all of it is free.
        for id in 0..run.requests.len() {
            run.release(id);
        }
        let client = run.kit.client();
        let all = run.kit.whole();
        client.granted(&all);
        prop_assert_eq!(client.left(&all), Remaining::Never);
        prop_assert_eq!(run.kit.clock.timers(), 0);
    }
}

/// Every waiter that was granted was told so (rule L5).
#[test]
fn each_grant_sets_its_wake() {
    let kit = Kit::with_capacity(3);
    let client = kit.client();
    let holder = kit.whole();
    client.granted(&holder);
    let requests: Vec<_> = (0..9).map(|_| kit.lasting(60_000)).collect();
    let wakes: Vec<_> = requests.iter().map(|request| client.queued(request).wake).collect();
    client.gives_back(&holder);
    for round in 0..3 {
        for n in 0..3 {
            let at = round * 3 + n;
            assert!(is_set(&wakes[at]), "{at}");
            client.confirmed(&requests[at]);
        }
        assert!(wakes[round * 3 + 3..].iter().all(|wake| !is_set(wake)));
        requests[round * 3..round * 3 + 3].iter().for_each(|request| client.gives_back(request));
    }
}
