//! How many calls a script makes inside of the server, and what does not grow with the queue (rule Q6).

use std::time::Duration;

use leasehold_core::{LockKind, Released, Token};
use leasehold_redis::script::{self, AcquireReply};
use redis::Value;
use test_servers::{Flavor, Server};

use crate::{
    Own,
    store::{Ask, Store, ttl},
};

pub(crate) const TESTS: &[Own] = &[
    ("l6_each_script_makes_few_calls", l6_each_script_makes_few_calls),
    ("q6_a_release_costs_the_same_with_a_long_queue", q6_a_release_costs_the_same),
    ("q6_a_crowd_is_rejected_and_forgotten", q6_a_crowd_is_rejected_and_forgotten),
];

fn start(flavor: Flavor) -> Server {
    Server::start(flavor).expect("it is installed")
}

/// Calls inside of scripts since the last count. EVALSHA itself and what the test asks are not among
/// them.
fn calls(store: &mut Store) -> i64 {
    let info: String =
        redis::cmd("INFO").arg("commandstats").query(&mut store.connection).expect("INFO");
    store.command(&["CONFIG", "RESETSTAT"]);
    let counted = info.lines().filter_map(|line| {
        let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
        let own = ["eval", "info", "config", "subscribe", "hello", "client", "script"];
        if own.iter().any(|word| name.starts_with(word)) {
            return None;
        }
        rest.split(',').next()?.parse::<i64>().ok()
    });
    counted.sum()
}

fn l6_each_script_makes_few_calls(flavor: Flavor) {
    let server = start(flavor);
    let mut lock = Store::new(&server, LockKind::Mutex, "calls", 1);
    let until = lock.time().after(Duration::from_secs(4));
    let mut asks: Vec<_> = (0..6)
        .map(|n| lock.wants(n).ttl(ttl(60_000)).with(|ask| ask.sender.not_after = Some(until)))
        .collect();
    let last = asks.split_off(4);
    calls(&mut lock);
    let mut seen = Vec::new();
    let mut count = |lock: &mut Store, what: &'static str, most: i64| {
        let made = calls(lock);
        seen.push((what, made));
        assert!((1..=most).contains(&made), "{what} makes {made} calls; all: {seen:?}");
    };
    lock.held(&asks[0]);
    count(&mut lock, "acquire", 3);
    let other = lock.wants(9).try_only();
    assert!(matches!(lock.acquire(&other), AcquireReply::Busy(_)));
    count(&mut lock, "busy try", 2);
    lock.renew(&asks[0].token());
    count(&mut lock, "renew", 3);
    lock.extend(&asks[0].token(), Some(ttl(70_000)));
    count(&mut lock, "extend", 3);
    lock.queued(&asks[1]);
    count(&mut lock, "first in the queue", 8);
    lock.queued(&asks[2]);
    count(&mut lock, "enqueue", 6);
    lock.queued(&asks[3]);
    count(&mut lock, "enqueue", 6);
    lock.beat(&[asks[3].token()], &[]);
    count(&mut lock, "beat", 4);
    lock.beat(&[asks[1].token()], &[]);
    count(&mut lock, "beat of the head", 5);
    lock.release(&asks[0].token());
    count(&mut lock, "hand-over", 10);
    lock.granted(&asks[1].token());
    count(&mut lock, "confirm", 4);
    lock.renew(&asks[1].token());
    count(&mut lock, "renew while others wait", 4);
    for ask in &asks[1..3] {
        lock.release(&ask.token());
        count(&mut lock, "hand-over", 10);
    }
    lock.release(&asks[3].token());
    count(&mut lock, "last release", 4);
    for ask in &last {
        lock.held(ask);
        count(&mut lock, "acquire with tombstones", 3);
        lock.release(&ask.token());
        count(&mut lock, "release with tombstones", 3);
    }
}

/// Sends many requests at once.
fn all<R>(store: &mut Store, requests: &[script::Request<R>]) -> Vec<R> {
    store.command(&["SCRIPT", "LOAD", requests[0].source().text()]);
    let mut pipe = redis::pipe();
    for request in requests {
        pipe.add_command(request.by_digest().clone());
    }
    let answers: Vec<Value> = pipe.query(&mut store.connection).expect("answers");
    let read = answers.into_iter().zip(requests);
    read.map(|(answer, request)| request.read(answer).expect("an answer")).collect()
}

fn enqueue(store: &mut Store, count: usize) -> Vec<Ask> {
    let mut asks = Vec::new();
    while asks.len() < count {
        let some: Vec<_> = (0..500)
            .map(|n| {
                // On a busy machine, nobody shall lapse meanwhile.
                store.wants(n % 3).with(|ask| ask.sender.claim = Duration::from_secs(60))
            })
            .collect();
        let keys = store.keys.clone();
        let requests: Vec<_> =
            some.iter().map(|ask| script::acquire(&keys, &ask.request, ask.sender)).collect();
        for answer in all(store, &requests) {
            assert!(matches!(answer, AcquireReply::Queued { .. }), "{answer:?}");
        }
        asks.extend(some);
    }
    asks
}

/// What the server itself says that a release took, in microseconds.
fn cost_of_release(store: &mut Store, token: &Token) -> f64 {
    store.command(&["CONFIG", "RESETSTAT"]);
    assert_eq!(store.release(token), Released::Holder);
    let info: String =
        redis::cmd("INFO").arg("commandstats").query(&mut store.connection).expect("INFO");
    let line = info.lines().find(|line| line.starts_with("cmdstat_evalsha:")).expect("it ran");
    let figure = line.split("usec_per_call=").nth(1).and_then(|rest| rest.split(',').next());
    figure.expect("a figure").parse().expect("a number")
}

/// The server is not alone on the machine: both are measured in turns, and their quartiles compared.
fn q6_a_release_costs_the_same(flavor: Flavor) {
    const ROUNDS: usize = 40;
    let server = start(flavor);
    let mut few = Store::new(&server, LockKind::Mutex, "few", 1);
    // So that no call is refused for want of its script, which is quick.
    for source in script::SOURCES {
        few.command(&["SCRIPT", "LOAD", source.text()]);
    }
    let mut many = Store::new(&server, LockKind::Mutex, "many", 1);
    let held = many.wants(1);
    many.held(&held);
    let mut tokens = vec![held.token()];
    tokens.extend(enqueue(&mut many, 20_000).iter().map(Ask::token));
    // However long it took to queue them, they live.
    for some in tokens[1..].chunks(script::BEAT_TOKENS_MAX) {
        many.beat(some, &[]);
    }
    let (mut alone, mut crowd) = (Vec::new(), Vec::new());
    for token in &tokens[..ROUNDS] {
        // One waiter behind the holder.
        let pair = [few.wants(1), few.wants(2)];
        few.held(&pair[0]);
        few.queued(&pair[1]);
        alone.push(cost_of_release(&mut few, &pair[0].token()));
        few.release(&pair[1].token());
        crowd.push(cost_of_release(&mut many, token));
    }
    let [alone, crowd] = [alone, crowd].map(|mut costs| {
        costs.sort_by(f64::total_cmp);
        costs[ROUNDS / 4]
    });
    assert!(crowd <= 2.0 * alone, "{crowd} us with 20,000 waiters, {alone} us with one");
    let counts = many.counts().expect("in use");
    assert_eq!((counts.used, counts.queued), (1, 20_000 - ROUNDS as u64));
}

fn q6_a_crowd_is_rejected_and_forgotten(flavor: Flavor) {
    let server = start(flavor);
    let mut lock = Store::new(&server, LockKind::Semaphore, "crowd", 2000);
    let holders: Vec<_> = (0..2000).map(|n| lock.wants(n)).collect();
    let keys = lock.keys.clone();
    let requests: Vec<_> =
        holders.iter().map(|ask| script::acquire(&keys, &ask.request, ask.sender)).collect();
    assert!(
        all(&mut lock, &requests).iter().all(|answer| matches!(answer, AcquireReply::Granted(_)))
    );
    let waiters = enqueue(&mut lock, 5000);
    assert_eq!(lock.cancel_all("crowd"), 5000);
    let more = enqueue(&mut lock, 5000);
    assert!(lock.inspect().expect("in use").waiters.len() == 5000);
    lock.destroy(None, "crowd");
    assert_eq!(lock.counts(), None);
    let tokens = waiters.iter().chain(&more).map(Ask::token);
    let requests: Vec<_> = tokens.map(|token| script::confirm(&keys, &token)).collect();
    let told = |answer: &script::ConfirmReply| {
        use leasehold_core::Confirmed::Rejected;
        matches!(answer, script::ConfirmReply::Told(Rejected(_)))
    };
    for chunk in requests.chunks(500) {
        let answers = all(&mut lock, chunk);
        assert_eq!(answers.iter().filter(|answer| told(answer)).count(), chunk.len());
    }
    let left = lock.keys_there();
    assert!(left.iter().all(|(_, left)| left.is_some()), "nothing stays for ever: {left:?}");
}
