//! A server that has no memory left, and one that lets nobody publish.

use leasehold_core::{Extended, FaultKind, LockKind, Released, Renewed, Token, WatchFor};
use leasehold_redis::script::{self, AcquireReply, ConfirmReply, Pulse};
use test_servers::{Flavor, Server};

use crate::{
    Own,
    store::{Store, client, ms, ttl},
};

pub(crate) const TESTS: &[Own] = &[
    ("l5_l10_a_claim_that_is_not_pushed_waits_for_a_beat", l5_l10_a_claim_that_is_not_pushed),
    ("l3_leases_end_and_renew_without_memory", l3_leases_end_and_renew_without_memory),
    ("l5_a_server_that_does_not_publish_says_so", l5_a_server_that_does_not_publish_says_so),
];

fn l3_leases_end_and_renew_without_memory(flavor: Flavor) {
    let server = Server::start(flavor).expect("it is installed");
    let mut alone = Store::new(&server, LockKind::Mutex, "alone", 1);
    let mut shared = Store::new(&server, LockKind::Semaphore, "shared", 2);
    let mut queued = Store::new(&server, LockKind::Mutex, "queued", 1);
    let one = alone.wants(1).ttl(ttl(60_000));
    alone.held(&one);
    let two = [shared.wants(1).ttl(ttl(60_000)), shared.wants(2)];
    for ask in &two {
        shared.held(ask);
    }
    let line = [1, 2, 3, 4].map(|n| queued.wants(n).ttl(ttl(60_000)));
    queued.held(&line[0]);
    for ask in &line[1..] {
        queued.queued(ask);
    }
    let id = Token::random();
    queued.watch(&id, WatchFor::Destroyed, None);

    alone.command(&["CONFIG", "SET", "maxmemory", "1mb"]);
    let full = |store: &mut Store| {
        let ask = store.wants(9);
        let fault = store.try_ask(&script::acquire(&store.keys, &ask.request, ask.sender));
        assert_eq!(fault.expect_err("no memory is left").kind(), FaultKind::Full);
    };
    full(&mut queued);
    full(&mut Store::new(&server, LockKind::Mutex, "new", 1));
    assert!(matches!(alone.renew(&one.token()), Renewed::Held { .. }));
    assert_eq!(alone.extend(&one.token(), Some(ttl(70_000))), Extended::Held);
    alone.granted(&one.token());
    assert_eq!(alone.release(&one.token()), Released::Holder);
    assert_eq!(alone.counts(), None);
    for ask in &two {
        assert!(matches!(shared.renew(&ask.token()), Renewed::Held { .. }));
        assert_eq!(shared.extend(&ask.token(), Some(ttl(80_000))), Extended::Held);
    }
    assert_eq!(shared.release(&two[1].token()), Released::Holder);
    assert_eq!(shared.counts().map(|counts| counts.used), Some(1));
    assert_eq!(queued.beat(&[line[3].token()], &[id]).pulses, [Pulse::Waits; 2]);
    assert_eq!(queued.beat(&[line[3].token()], &[]).pulses, [Pulse::Waits]);
    assert!(matches!(queued.release(&line[2].token()), Released::Waiter(_)));
    assert_eq!(queued.release(&line[0].token()), Released::Holder);
    queued.granted(&line[1].token());
    assert_eq!(queued.cancel_all("no memory"), 1);
    queued.destroy(None, "no memory");
    alone.command(&["CONFIG", "SET", "maxmemory", "0"]);
    let next = queued.wants(1);
    queued.held(&next);
}

fn l5_a_server_that_does_not_publish_says_so(flavor: Flavor) {
    let server = Server::start(flavor).expect("it is installed");
    let mut lock = Store::new(&server, LockKind::Mutex, "silent", 1);
    let held = lock.wants(1);
    lock.held(&held);
    let asks = [lock.wants(2), lock.wants(3), lock.wants(4)];
    asks.iter().for_each(|ask| assert!(lock.queued(ask).1.pushed));
    lock.command(&["ACL", "SETUSER", "mute", "on", ">pw", "~*", "resetchannels", "+@all"]);
    lock.command(&["AUTH", "mute", "pw"]);
    assert_eq!(lock.release(&held.token()), Released::Holder);
    lock.granted(&asks[0].token());
    assert!(!lock.waits(&asks[1].token()).pushed);
    assert!(!lock.beat(&[asks[2].token()], &[]).waiting.pushed);
    lock.command(&["ACL", "SETUSER", "mute", "&*"]);
    let mut channel = lock.subscribe(&server, 3);
    assert_eq!(lock.release(&asks[0].token()), Released::Holder);
    channel.next();
    assert!(lock.waits(&asks[2].token()).pushed);
    let AcquireReply::Queued { waiting, .. } = lock.acquire(&asks[2]) else { panic!("it waits") };
    assert!(waiting.pushed);
    assert!(matches!(
        lock.ask(&script::release(&lock.keys, &asks[2].token(), client(4), None)),
        Released::Waiter(Some(_))
    ));
}

/// A claim that nobody is told of lasts beyond the next beat, by which its waiter sees it.
fn l5_l10_a_claim_that_is_not_pushed(flavor: Flavor) {
    let server = Server::start(flavor).expect("it is installed");
    let mut lock = Store::new(&server, LockKind::Mutex, "untold", 1);
    let held = lock.wants(1);
    lock.held(&held);
    let asks = [
        lock.wants(2).ttl(ttl(60_000)),
        lock.wants(3).ttl(ttl(100)),
        lock.wants(4).ttl(ttl(60_000)),
        lock.wants(5),
    ]
    .map(|ask| ask.with(|ask| ask.sender.claim = ms(50)));
    asks.iter().for_each(|ask| _ = lock.queued(ask));
    lock.command(&["ACL", "SETUSER", "mute", "on", ">pw", "~*", "resetchannels", "+@all"]);
    lock.command(&["AUTH", "mute", "pw"]);
    assert_eq!(lock.release(&held.token()), Released::Holder);
    // sleep: longer than the claim, and no more than a beat, on a real clock
    std::thread::sleep(ms(500));
    assert!(matches!(lock.beat(&[asks[0].token()], &[]).pulses[..], [Pulse::Look]));
    lock.granted(&asks[0].token());
    // Never longer than its TTL: a dead waiter's is over then.
    assert_eq!(lock.release(&asks[0].token()), Released::Holder);
    // sleep: longer than that TTL on a real clock
    std::thread::sleep(ms(150));
    assert!(matches!(lock.beat(&[asks[2].token()], &[]).pulses[..], [Pulse::Look]));
    assert_eq!(
        lock.confirm(&asks[1].token()),
        ConfirmReply::Told(leasehold_core::Confirmed::Unknown)
    );
    lock.granted(&asks[2].token());
    // Whoever may tell of it makes it a short one again.
    lock.command(&["ACL", "SETUSER", "mute", "&*"]);
    assert_eq!(lock.release(&asks[2].token()), Released::Holder);
    // sleep: longer than the claim on a real clock
    std::thread::sleep(ms(100));
    assert_eq!(lock.counts(), None);
}
