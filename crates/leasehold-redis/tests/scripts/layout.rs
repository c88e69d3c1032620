//! What lies in the server, and for how long (rules L9, N5; nothing stays behind).

use std::time::Duration;

use leasehold_core::{FaultKind, LockKind, Released, Token, WatchFor};
use leasehold_redis::script::{self, WatchReply};
use test_servers::Server;

use crate::{
    Test,
    store::{Store, ms, ttl},
};

pub(crate) const TESTS: &[Test] = &[
    ("l9_another_layout_is_refused", l9_another_layout_is_refused),
    ("l9_what_is_no_lock_is_refused", l9_what_is_no_lock_is_refused),
    ("n7_what_outlived_the_state_is_nobodys", n7_what_outlived_the_state_is_nobodys),
    ("n7_nothing_stays_behind", n7_nothing_stays_behind),
    ("n7_what_is_held_without_end_stays", n7_what_is_held_without_end_stays),
];

fn set(lock: &mut Store, bytes: &[u8]) {
    let key = lock.keys.state().to_owned();
    let _: () = redis::cmd("SET").arg(key).arg(bytes).query(&mut lock.connection).expect("SET");
}

fn refuses(lock: &mut Store, kind: FaultKind) -> String {
    let ask = lock.wants(1);
    let keys = lock.keys.clone();
    let fault = lock.try_ask(&script::acquire(&keys, &ask.request, ask.sender)).expect_err("no");
    assert_eq!(fault.kind(), kind, "{fault}");
    assert_eq!(lock.try_ask(&script::renew(&keys, &ask.token())).expect_err("no").kind(), kind);
    assert_eq!(lock.try_ask(&script::inspect(&keys)).expect_err("no").kind(), kind);
    let released = script::release(&keys, &ask.token(), ask.sender.client, None);
    assert_eq!(lock.try_ask(&released).expect_err("no").kind(), kind);
    fault.to_string()
}

fn l9_another_layout_is_refused(server: &Server) {
    let mut lock = Store::new(server, LockKind::Mutex, "layout", 1);
    let ask = lock.wants(1);
    lock.held(&ask);
    let key = lock.keys.state().to_owned();
    let mut state: Vec<u8> =
        redis::cmd("GET").arg(key).query(&mut lock.connection).expect("it is there");
    for other in [0, 1, 200] {
        state[1] = other;
        set(&mut lock, &state);
        let message = refuses(&mut lock, FaultKind::Layout);
        assert!(message.contains(&format!("layout {other}")), "{message}");
    }
    // What an older or newer program may have made of less.
    set(&mut lock, &[76, 9]);
    refuses(&mut lock, FaultKind::Layout);
    state[1] = 2;
    set(&mut lock, &state);
    lock.release(&ask.token());
}

fn l9_what_is_no_lock_is_refused(server: &Server) {
    let mut lock = Store::new(server, LockKind::Mutex, "no-lock", 1);
    for other in [&b"hello"[..], b"", &[76, 2, 0]] {
        set(&mut lock, other);
        refuses(&mut lock, FaultKind::Corrupt);
    }
    let key = lock.keys.state().to_owned();
    lock.command(&["DEL", &key]);
    lock.command(&["HSET", &key, "a", "b"]);
    refuses(&mut lock, FaultKind::Corrupt);
    lock.command(&["DEL", &key]);
}

/// A clock that goes far ahead and back lets the server drop some keys of a lock and keep others.
fn n7_what_outlived_the_state_is_nobodys(server: &Server) {
    for left in 0..8_usize {
        let mut lock = Store::new(server, LockKind::Mutex, &format!("outlived-{left}"), 1);
        let asks: Vec<_> = (0..6).map(|n| lock.wants(n).ttl(ttl(60_000))).collect();
        lock.held(&asks[0]);
        asks[1..3].iter().for_each(|ask| _ = lock.queued(ask));
        let state = lock.keys.state().to_owned();
        let keys: Vec<String> = lock.keys.all().map(str::to_owned).collect();
        let others = keys.iter().filter(|key| **key != state).enumerate();
        let gone =
            others.filter(|(index, _)| left & (1 << index) == 0).map(|(_, key)| key.as_str());
        let command: Vec<&str> = ["DEL", &state].into_iter().chain(gone).collect();
        lock.command(&command);
        lock.held(&asks[3]);
        asks[4..].iter().for_each(|ask| _ = lock.queued(ask));
        let counts = lock.counts().expect("in use");
        assert_eq!((counts.used, counts.queued), (1, 2), "{command:?}");
        assert_eq!(lock.inspect().expect("in use").waiters.len(), 2, "{command:?}");
        for pair in asks[3..].windows(2) {
            assert_eq!(lock.release(&pair[0].token()), Released::Holder, "{command:?}");
            lock.granted(&pair[1].token());
        }
        assert_eq!(lock.release(&asks[5].token()), Released::Holder);
        assert_eq!(lock.counts(), None, "{command:?}");
    }
}

/// The keys of a lock, none of which may outlive `longest`.
fn assert_short_lived(lock: &mut Store, longest: Duration) {
    let there = lock.keys_there();
    for (key, left) in &there {
        assert!(left.is_some_and(|left| left <= longest), "{key} stays {left:?}: {there:?}");
    }
}

fn n7_nothing_stays_behind(server: &Server) {
    let mut lock = Store::new(server, LockKind::Semaphore, "short", 2);
    let asks: Vec<_> = (0..5).map(|n| lock.wants(n).ttl(ttl(3_000))).collect();
    lock.held(&asks[0]);
    assert_short_lived(&mut lock, ms(5_100));
    lock.release(&asks[0].token());
    assert_short_lived(&mut lock, ms(2_600));
    lock.held(&asks[1]);
    lock.held(&asks[2]);
    lock.queued(&asks[3]);
    lock.queued(&asks[4]);
    assert_eq!(lock.keys_there().len(), 4, "state, records, expiries, queue");
    let id = Token::random();
    assert!(matches!(lock.watch(&id, WatchFor::Destroyed, None), WatchReply::Waiting(_)));
    // Everybody dies now.
    assert_short_lived(&mut lock, ms(57_000));
    lock.cancel_all("all");
    assert_short_lived(&mut lock, ms(57_000));
    lock.unwatch(&id);
    for ask in &asks {
        lock.confirm(&ask.token());
        lock.release(&ask.token());
    }
    assert_eq!(lock.counts(), None);
    assert_short_lived(&mut lock, ms(57_000));
}

fn n7_what_is_held_without_end_stays(server: &Server) {
    let mut lock = Store::new(server, LockKind::Semaphore, "endless", 3);
    let endless = lock.wants(1);
    lock.held(&endless);
    let stays = |lock: &mut Store| {
        let there = lock.keys_there();
        assert!(there.iter().all(|(_, left)| left.is_none()), "{there:?}");
    };
    stays(&mut lock);
    let mortal = lock.wants(2).ttl(ttl(60_000));
    lock.held(&mortal);
    let waiter = lock.wants(3).weight(3);
    lock.queued(&waiter);
    stays(&mut lock);
    lock.release(&endless.token());
    assert_short_lived(&mut lock, ms(90_000));
    assert_eq!(lock.keys_there().len(), 4);
    let endless = lock.wants(1).try_only();
    lock.release(&waiter.token());
    lock.held(&endless);
    stays(&mut lock);
    lock.release(&mortal.token());
    stays(&mut lock);
    lock.extend(&endless.token(), Some(ttl(5_000)));
    assert_short_lived(&mut lock, ms(90_000));
    lock.release(&endless.token());
    assert_short_lived(&mut lock, ms(2_600));
    assert_eq!(lock.keys_there().len(), 1);
}
