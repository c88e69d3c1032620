//! What others may see of a lock (rules N4, T5, E2).

use std::sync::Arc;

use leasehold_core::{
    Acquire, Backend, HolderInfo, LockId, LockKind, LockName, Namespace, Released, Share,
};

use crate::kit::{Ask, Kit, answer, ms};

#[test]
fn a_lock_is_shown_with_holders_and_waiters_in_order_and_without_tokens() {
    let kit = Kit::with_capacity(3);
    let client = kit.client();
    let here = HolderInfo::from_parts("host", 7, None);
    let named = |label: &str| Arc::new(here.labelled(label).unwrap());
    let first = Acquire { info: named("first"), ..kit.lasting(1_000) };
    let second = Acquire { info: named("second"), ..kit.weighing(2) };
    let third = Acquire { info: named("third"), ..kit.whole() };
    client.granted(&first);
    kit.clock.advance(ms(10));
    client.granted(&second);
    client.queued(&third);
    kit.clock.advance(ms(20));
    let state = answer(client.inspect(&kit.lock)).unwrap();
    assert_eq!((state.capacity.get(), state.used, state.free()), (3, 3, 0));
    let labels: Vec<_> = state.holders.iter().map(|holder| holder.info.label().unwrap()).collect();
    assert_eq!(labels, ["first", "second"]);
    assert_eq!(state.holders[0].held_for, ms(30));
    assert_eq!(state.holders[0].ttl_left, Some(ms(970)));
    assert_eq!((state.waiters.len(), state.waiters[0].share), (1, Share::Whole));
    assert_eq!(state.waiters[0].waited_for, ms(20));
    assert_eq!(state.holders[0].short_id, first.token.short_id());
    let text = format!("{state:?} {client:?} {:?}", kit.store);
    for request in [&first, &second, &third] {
        assert!(!text.contains(&request.token.to_string()));
    }
}

/// Rule E2: how many were ahead, exactly near the head and never too low far from it.
#[test]
fn a_waiter_that_leaves_learns_what_stood_in_its_way() {
    let kit = Kit::mutex();
    let client = kit.client();
    let held = kit.request();
    client.granted(&held);
    let waiters: Vec<_> = (0..500).map(|_| kit.request()).collect();
    for (n, waiter) in (0..).zip(&waiters) {
        assert_eq!(client.queued(waiter).obstacle.ahead, Some(n));
    }
    let ahead = |waiter: &Acquire| match answer(client.release(&kit.lock, &waiter.token)) {
        Released::Waiter(Some(obstacle)) => obstacle.ahead.unwrap(),
        other => panic!("{other:?}"),
    };
    assert_eq!(ahead(&waiters[0]), 0);
    assert_eq!(ahead(&waiters[50]), 49);
    client.gives_back(&held);
    assert_eq!(ahead(&waiters[60]), 57);
    // Four are gone by now, of whom one by a grant; the others are not taken off so far back.
    let far = ahead(&waiters[400]);
    assert!((396..=399).contains(&far), "{far}");
    // Never more than there are.
    assert_eq!(ahead(&waiters[499]), 494);
}

/// Only what is in use, sorted, of one namespace or of all; kinds do not mix (rule N1).
#[test]
fn a_survey_lists_what_is_in_use() {
    let kit = Kit::mutex();
    let client = kit.client();
    let id = |namespace: &str, kind, name: &str| {
        let namespace = Namespace::new(namespace).unwrap();
        Arc::new(LockId::new(namespace, kind, LockName::new(name).unwrap()))
    };
    let ids = [
        id("a", LockKind::Mutex, "x"),
        id("a", LockKind::RwLock, "x"),
        id("a", LockKind::Mutex, "z"),
        id("b", LockKind::Mutex, "a"),
    ];
    for lock in ids.iter().rev() {
        client.granted(&Acquire { lock: lock.clone(), ..kit.lasting(100) });
    }
    let over = Acquire { lock: id("a", LockKind::Mutex, "over"), ..kit.lasting(1) };
    client.granted(&over);
    kit.clock.advance(ms(1));
    let keys = |namespace: Option<&Namespace>| -> Vec<String> {
        let states = answer(client.survey(namespace));
        states.iter().map(|state| state.lock.key().to_owned()).collect()
    };
    assert_eq!(keys(None), ids.iter().map(|id| id.key().to_owned()).collect::<Vec<_>>());
    assert_eq!(keys(Some(&Namespace::new("b").unwrap())), [ids[3].key()]);
    kit.clock.advance(ms(100));
    assert!(keys(None).is_empty());
}
