//! Who is told of what: watchers, those who wait, and who looks.

use std::{slice, time::Duration};

use leasehold_core::{Confirmed, LockKind, Released, Renewed, Share, Token, WatchFor};
use leasehold_redis::script::{ConfirmReply, Pulse, Push, WakeId, WatchReply};
use test_servers::{Flavor, Server};

use crate::{
    Own, Test,
    life::mutex,
    store::{Store, ms, ttl},
};

pub(crate) const TESTS: &[Test] = &[
    ("u1_watchers_complete_and_stay_done", u1_watchers_complete_and_stay_done),
    ("l5_pushes_name_the_one_concerned", l5_pushes_name_the_one_concerned),
    ("l5_who_times_the_expiry_is_told", l5_who_times_the_expiry_is_told),
    ("l4_the_beat_says_who_should_look", l4_the_beat_says_who_should_look),
    ("l4_one_is_told_what_many_are", l4_one_is_told_what_many_are),
    ("n4_inspect_shows_holders_and_waiters", n4_inspect_shows_holders_and_waiters),
    ("l5_everybody_is_forgotten_by_a_flush", l5_everybody_is_forgotten_by_a_flush),
];

/// Where the clock can be stepped.
pub(crate) const TESTS_OF_TIME: &[Own] = &[("l4_who_beats_alone_lives", l4_who_beats_alone_lives)];

fn u1_watchers_complete_and_stay_done(server: &Server) {
    let mut lock = Store::new(server, LockKind::Semaphore, "watched", 2);
    let ids: Vec<_> = (0..4).map(|_| Token::random()).collect();
    let kinds = [WatchFor::Unlocked, WatchFor::AnyPermit, WatchFor::Readable, WatchFor::Destroyed];
    assert_eq!(lock.watch(&ids[0], WatchFor::Unlocked, None), WatchReply::Done);
    let held = [lock.wants(1), lock.wants(2)];
    for ask in &held {
        lock.held(ask);
    }
    let waits = |store: &mut Store, n: usize| {
        matches!(store.watch(&ids[n], kinds[n], None), WatchReply::Waiting(_))
    };
    (0..4).for_each(|n| assert!(waits(&mut lock, n)));
    let heavy = lock.wants(3).weight(2);
    lock.queued(&heavy);
    lock.release(&held[0].token());
    // A permit is free, but somebody is queued and somebody holds.
    assert_eq!([0, 1, 2, 3].map(|n| waits(&mut lock, n)), [true, false, true, true]);
    lock.release(&held[1].token());
    // A hand-over makes nothing free.
    lock.granted(&heavy.token());
    assert_eq!([0, 2, 3].map(|n| waits(&mut lock, n)), [true, true, true]);
    lock.release(&heavy.token());
    let next = lock.wants(4).weight(2);
    lock.held(&next);
    assert_eq!([0, 2, 3].map(|n| waits(&mut lock, n)), [false, false, true]);
    lock.unwatch(&ids[3]);
    lock.release(&next.token());
    assert_eq!(lock.counts(), None);
}

fn l5_pushes_name_the_one_concerned(server: &Server) {
    let mut lock = mutex(server, "pushes");
    let (mut one, mut two) = (lock.subscribe(server, 41), lock.subscribe(server, 42));
    let held = lock.wants(40);
    lock.held(&held);
    let asks = [lock.wants(41), lock.wants(42), lock.wants(42), lock.wants(41)];
    for ask in &asks {
        lock.queued(ask);
    }
    lock.release(&held.token());
    assert_eq!(one.next(), Push::Look(vec![asks[0].sender.wake]));
    // The new head is to time the claim.
    assert!(matches!(two.next(), Push::LookIn(at, wakes)
        if at <= ms(2000) && wakes == [asks[1].sender.wake]));
    lock.cancel_all("all");
    assert_eq!(two.next(), Push::Look(vec![asks[1].sender.wake, asks[2].sender.wake]));
    assert_eq!(one.next(), Push::Look(vec![asks[3].sender.wake]));
    // Whoever is released by its token elsewhere still waits here.
    let waiter = lock.wants(41);
    lock.queued(&waiter);
    assert!(matches!(lock.release(&waiter.token()), Released::Waiter(_)));
    assert_eq!(one.next(), Push::Look(vec![waiter.sender.wake]));
    let id = Token::random();
    assert!(matches!(lock.watch(&id, WatchFor::Unlocked, None), WatchReply::Waiting(_)));
    let mut nine = lock.subscribe(server, 9);
    lock.granted(&asks[0].token());
    lock.release(&asks[0].token());
    assert!(matches!(nine.next(), Push::Look(wakes) if wakes.len() == 1 && wakes[0] > WakeId(5)));
}

fn l5_who_times_the_expiry_is_told(server: &Server) {
    let mut lock = mutex(server, "timed");
    let mut channel = lock.subscribe(server, 51);
    let held = lock.wants(50).ttl(ttl(60_000));
    lock.held(&held);
    let (head, behind) = (lock.wants(51), lock.wants(51));
    assert!(lock.queued(&head).1.times);
    assert!(!lock.queued(&behind).1.times);
    // Sooner than the head was told.
    lock.extend(&held.token(), Some(ttl(9_000)));
    assert!(matches!(channel.next(), Push::LookIn(at, wakes)
        if at > ms(5000) && at <= ms(9000) && wakes == [head.sender.wake]));
    // Later: it looks at the old time and is told the new one.
    lock.extend(&held.token(), Some(ttl(90_000)));
    let waiting = lock.beat(&[behind.token(), head.token()], &[]).waiting;
    assert!(waiting.times && waiting.next_expiry > Some(ms(80_000)));
    assert!(!lock.beat(&[behind.token()], &[]).waiting.times);
    // Another head.
    lock.release(&head.token());
    assert_eq!(channel.next(), Push::Look(vec![head.sender.wake]));
    assert!(matches!(channel.next(), Push::LookIn(at, wakes)
        if at > ms(80_000) && wakes == [behind.sender.wake]));
    assert!(lock.waits(&behind.token()).times);
    lock.release(&behind.token());
    lock.release(&held.token());
}

fn l4_the_beat_says_who_should_look(server: &Server) {
    let mut lock = mutex(server, "beats");
    let held = lock.wants(1);
    lock.held(&held);
    let asks = [lock.wants(2), lock.wants(3)];
    for ask in &asks {
        lock.queued(ask);
    }
    let (id, unknown) = (Token::random(), Token::random());
    assert!(matches!(lock.watch(&id, WatchFor::Unlocked, None), WatchReply::Waiting(_)));
    let tokens = [asks[0].token(), asks[1].token(), unknown.clone(), held.token()];
    let beat = lock.beat(&tokens, &[id.clone(), unknown.clone()]);
    use Pulse::{Look, Waits};
    assert_eq!(beat.pulses, [Waits, Waits, Look, Look, Waits, Look]);
    assert!(beat.waiting.pushed && beat.waiting.times);
    lock.release(&held.token());
    assert_eq!(lock.beat(&tokens, &[]).pulses, [Look, Waits, Look, Look]);
    lock.cancel_all("beats");
    lock.release(&asks[0].token());
    assert_eq!(lock.beat(&tokens, &[id]).pulses, [Look; 5]);
}

/// Who waits alone, or beats for one alone, is told what it is told in company.
fn l4_one_is_told_what_many_are(server: &Server) {
    let mut lock = mutex(server, "one-beat");
    let held = lock.wants(1).ttl(ttl(50_000));
    lock.held(&held);
    let unknown = Token::random();
    let agree = |lock: &mut Store, tokens: &[Token], expected: &[Pulse]| {
        for (token, expected) in tokens.iter().zip(expected) {
            let one = lock.beat(slice::from_ref(token), &[]);
            let many = lock.beat(&[token.clone(), unknown.clone()], &[]);
            assert_eq!(one.pulses, [*expected]);
            assert_eq!(many.pulses, [*expected, Pulse::Look]);
            assert_eq!((one.waiting.times, one.waiting.pushed), (many.waiting.times, true));
            let near = |at: Duration, other: Duration| at.abs_diff(other) < ms(10_000);
            let (at, other) = (one.waiting.next_expiry, many.waiting.next_expiry);
            assert!(at == other || at.zip(other).is_some_and(|(at, other)| near(at, other)));
        }
        let records = lock.keys.all().nth(1).expect("T").to_owned();
        let stray = lock.command(&["HEXISTS", &records, &format!("b:{unknown}")]);
        assert_eq!(stray, redis::Value::Int(0), "a beat of nobody leaves nothing");
    };
    use Pulse::{Look, Waits};
    let asks = [lock.wants(2), lock.wants(3).ttl(ttl(40_000))];
    let tokens: Vec<Token> = [&asks[0], &asks[1], &held].map(|ask| ask.token()).into();
    lock.queued(&asks[0]);
    agree(&mut lock, &tokens, &[Waits, Look, Look]);
    lock.queued(&asks[1]);
    agree(&mut lock, &tokens, &[Waits, Waits, Look]);
    lock.extend(&held.token(), None);
    agree(&mut lock, &tokens, &[Waits, Waits, Look]);
    lock.extend(&held.token(), Some(ttl(60_000)));
    agree(&mut lock, &tokens, &[Waits, Waits, Look]);
    lock.release(&held.token());
    agree(&mut lock, &tokens, &[Look, Waits, Look]);
    lock.granted(&asks[0].token());
    lock.cancel_all("beats");
    agree(&mut lock, &tokens, &[Look, Look, Look]);
    lock.confirm(&asks[1].token());
    lock.release(&asks[0].token());
    agree(&mut lock, &tokens, &[Look, Look, Look]);
}

fn l4_who_beats_alone_lives(flavor: Flavor) {
    let server = Server::builder(flavor).fake_clock().start().expect("it is installed");
    let mut lock = mutex(&server, "alone");
    let held = lock.wants(1);
    lock.held(&held);
    let asks = [lock.wants(2), lock.wants(3), lock.wants(4)];
    for ask in &asks {
        lock.queued(ask);
    }
    // The first is silent for longer than it may be; who stays, is the whole queue after it.
    for now in [6, 12, 18] {
        server.step_clock(now);
        for ask in &asks[1..] {
            assert_eq!(lock.beat(&[ask.token()], &[]).pulses, [Pulse::Waits]);
        }
    }
    lock.release(&held.token());
    lock.granted(&asks[1].token());
    assert_eq!(lock.confirm(&asks[0].token()), ConfirmReply::Told(Confirmed::Unknown));
    for now in [24, 30, 36] {
        server.step_clock(now);
        assert_eq!(lock.beat(&[asks[2].token()], &[]).pulses, [Pulse::Waits]);
    }
    lock.release(&asks[1].token());
    lock.granted(&asks[2].token());
    lock.release(&asks[2].token());
    assert_eq!(lock.counts(), None);
}

fn n4_inspect_shows_holders_and_waiters(server: &Server) {
    let mut lock = Store::new(server, LockKind::RwLock, "{inspect}/🔒\n", 8);
    assert!(lock.inspect().is_none());
    let reads: Vec<_> = (0..3).map(|n| lock.wants(n).ttl(ttl(50_000 - n * 1000))).collect();
    for read in &reads {
        lock.held(read);
    }
    let write = lock.wants(4).with(|ask| ask.request.share = Share::Whole);
    lock.queued(&write);
    let read = lock.wants(5).weight(2);
    lock.queued(&read);
    let state = lock.inspect().expect("in use");
    assert_eq!(state.lock, *lock.id);
    assert_eq!((state.capacity.get(), state.used, state.free()), (8, 3, 5));
    let ids = |asks: &[crate::store::Ask]| {
        asks.iter().map(|ask| ask.token().short_id()).collect::<Vec<_>>()
    };
    let holders: Vec<_> = state.holders.iter().map(|holder| holder.short_id.clone()).collect();
    assert_eq!(holders, ids(&reads), "in the order of their grants");
    assert!(state.holders.iter().all(|holder| holder.ttl_left > Some(ms(40_000))
        && holder.info.pid() == 7
        && holder.info.host() == "host"
        && !holder.claimed));
    let waiters: Vec<_> = state.waiters.iter().map(|waiter| waiter.short_id.clone()).collect();
    assert_eq!(waiters, ids(&[write.clone(), read.clone()]));
    assert_eq!(state.waiters[0].share, Share::Whole);
    assert!(matches!(state.waiters[1].share, Share::Permits(weight) if weight.get() == 2));
}

fn l5_everybody_is_forgotten_by_a_flush(server: &Server) {
    let mut lock = mutex(server, "flushed");
    let asks = [lock.wants(1), lock.wants(2), lock.wants(3)];
    lock.held(&asks[0]);
    for ask in &asks[1..] {
        lock.queued(ask);
    }
    for key in lock.keys.all().map(str::to_owned).collect::<Vec<_>>() {
        lock.command(&["DEL", &key]);
    }
    assert_eq!(lock.beat(&[asks[1].token()], &[]).pulses, [Pulse::Look]);
    for ask in &asks {
        assert_eq!(lock.confirm(&ask.token()), ConfirmReply::Told(Confirmed::Unknown));
        assert_eq!(lock.renew(&ask.token()), Renewed::Unknown);
        assert_eq!(lock.release(&ask.token()), Released::Unknown);
    }
    assert!(lock.keys_there().is_empty());
    // Half of it was lost: what is left of the old life is not mixed with the new one.
    lock.held(&asks[0]);
    for ask in &asks[1..] {
        lock.queued(ask);
    }
    let state = lock.keys.state().to_owned();
    lock.command(&["DEL", &state]);
    let again = [lock.wants(1), lock.wants(2)];
    lock.held(&again[0]);
    assert_eq!(lock.queued(&again[1]).0, 0);
    lock.release(&again[0].token());
    lock.granted(&again[1].token());
    lock.release(&again[1].token());
    assert_eq!(lock.counts(), None);
}
