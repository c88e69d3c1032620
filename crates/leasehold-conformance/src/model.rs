//! The queue as a naive model says it, for random programs (rules Q2 to Q4).

use leasehold_core::{Acquired, Confirmed, Released};

use crate::bench::{Ask, Bench, Client, Lock};

const ACTIONS: usize = 150;
/// So many are in the lock at most; beyond, the program only gives back.
const CROWD: usize = 24;

/// Holders and waiters by short id and weight, each in order.
#[derive(Default)]
struct Model {
    capacity: u32,
    holders: Vec<Entry>,
    waiters: Vec<Entry>,
}

struct Entry {
    short_id: String,
    weight: u32,
    /// What takes it out again, and whose client asked for it.
    ask: Ask,
    client: usize,
}

impl Model {
    fn free(&self) -> u32 {
        self.capacity - self.holders.iter().map(|entry| entry.weight).sum::<u32>()
    }

    /// Grants from the head and says how many were granted.
    fn grant(&mut self) -> usize {
        let before = self.holders.len();
        while self.waiters.first().is_some_and(|head| head.weight <= self.free()) {
            let head = self.waiters.remove(0);
            self.holders.push(head);
        }
        self.holders.len() - before
    }
}

/// A generator that a failure can be repeated with; the quality of its numbers does not matter.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let high = usize::try_from(self.0 >> 33).expect("31 bits fit");
        high % end
    }
}

/// Runs one random program on the store and on the model and compares them after every action; in
/// the end everybody has left.
pub(crate) fn compare(bench: &Bench, lock: &Lock, capacity: u32, seed: u64) {
    compare_by(&[bench.client(), bench.client()], lock, capacity, seed);
}

/// The same with given clients.
pub(crate) fn compare_by(clients: &[Client; 2], lock: &Lock, capacity: u32, seed: u64) {
    let mut numbers = Numbers(seed);
    let mut model = Model { capacity, ..Model::default() };
    for action in 0..ACTIONS {
        let crowd = model.holders.len() + model.waiters.len();
        if crowd < CROWD && numbers.below(5) < 3 {
            arrive(clients, lock, &mut model, &mut numbers);
        } else if crowd > 0 {
            let one = numbers.below(crowd);
            leave(clients, lock, &mut model, one);
        }
        assert_agree(&clients[0], lock, &model, seed, action);
    }
    while !model.holders.is_empty() {
        leave(clients, lock, &mut model, 0);
    }
    assert_agree(&clients[1], lock, &model, seed, ACTIONS);
}

fn arrive(clients: &[Client; 2], lock: &Lock, model: &mut Model, numbers: &mut Numbers) {
    let weight = 1 + u32::try_from(numbers.below(model.capacity as usize)).expect("small");
    let client = numbers.below(2);
    let mut ask = clients[client].acquire(lock);
    ask = if weight == model.capacity { ask.whole() } else { ask.weight(weight) };
    let tries = numbers.below(4) == 0;
    if tries {
        ask = ask.try_only();
    }
    let fits = model.waiters.is_empty() && weight <= model.free();
    let short_id = ask.request().token.short_id();
    let entry = Entry { short_id, weight, ask: ask.clone(), client };
    match ask.answer() {
        Acquired::Granted(_) if fits => model.holders.push(entry),
        Acquired::Queued(_) if !fits && !tries => model.waiters.push(entry),
        Acquired::Busy(_) if !fits && tries => {}
        other => panic!("fits: {fits}, tries: {tries}, the store says {other:?}"),
    }
}

fn leave(clients: &[Client; 2], lock: &Lock, model: &mut Model, one: usize) {
    let (entry, was_held) = if one < model.holders.len() {
        (model.holders.remove(one), true)
    } else {
        (model.waiters.remove(one - model.holders.len()), false)
    };
    // Every other time somebody else gives it back: a release is anybody's who has the token.
    let client = &clients[(entry.client + one) % 2];
    let token = &entry.ask.request().token;
    match client.release(lock, token) {
        Released::Holder if was_held => {}
        Released::Waiter(_) if !was_held => {}
        other => panic!("held: {was_held}, the store says {other:?}"),
    }
    let granted = model.grant();
    for entry in model.holders.iter().rev().take(granted) {
        // An unconfirmed claim would end in the middle of a slow program (rule L10).
        match clients[entry.client].confirm(lock, &entry.ask.request().token) {
            Confirmed::Granted(_) => {}
            other => panic!("granted in the model, the store says {other:?}"),
        }
    }
}

fn assert_agree(client: &Client, lock: &Lock, model: &Model, seed: u64, action: usize) {
    let place = format!("program {seed}, action {action}");
    let (used, queued) = client.used_and_queued(lock);
    assert_eq!(used, model.capacity - model.free(), "permits used, {place}");
    assert_eq!(queued, model.waiters.len() as u64, "waiters, {place}");
    if model.holders.is_empty() && model.waiters.is_empty() {
        return;
    }
    let state = client.inspect(lock);
    let ids = |entries: &[Entry]| -> Vec<String> {
        entries.iter().map(|entry| entry.short_id.clone()).collect()
    };
    let holders: Vec<_> = state.holders.into_iter().map(|holder| holder.short_id).collect();
    let waiters: Vec<_> = state.waiters.into_iter().map(|waiter| waiter.short_id).collect();
    assert_eq!(holders, ids(&model.holders), "holders in the order of their grants, {place}");
    assert_eq!(waiters, ids(&model.waiters), "waiters in the order of the queue, {place}");
}
