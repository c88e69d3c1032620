//! One FIFO of weights: nobody overtakes, nobody starves, no permit is lost (rules Q).

use leasehold_core::{Acquired, Backend, Released};

use crate::kit::{Ask, Kit, answer, is_set};

/// Rule Q2, acceptance R6, AK9: in the order of arrival, over two clients, one at a time.
#[test]
fn waiters_are_granted_in_the_order_of_their_arrival() {
    let kit = Kit::mutex();
    let clients = [kit.client(), kit.client()];
    let requests: Vec<_> = (0..50).map(|_| kit.lasting(60_000)).collect();
    clients[0].granted(&requests[0]);
    let rest = requests.iter().enumerate().skip(1);
    let places: Vec<_> = rest.map(|(n, request)| clients[n % 2].queued(request).wake).collect();
    let mut last = 0;
    for n in 1..50 {
        clients[(n - 1) % 2].gives_back(&requests[n - 1]);
        assert!(is_set(&places[n - 1]), "{n}");
        assert!(places[n..].iter().all(|wake| !is_set(wake)), "{n}");
        let fence = clients[n % 2].confirmed(&requests[n]).fencing.get();
        assert!(fence > last);
        last = fence;
    }
}

/// Rule Q3: no barging, not by a try either; nothing is free in between.
#[test]
fn nobody_barges_while_somebody_is_queued() {
    let kit = Kit::with_capacity(4);
    let client = kit.client();
    let (holder, heavy) = (kit.weighing(3), kit.weighing(2));
    client.granted(&holder);
    client.queued(&heavy);
    // One permit is free, and would do.
    let mut late = kit.request();
    late.wait = false;
    assert!(matches!(answer(client.acquire(&late)), Acquired::Busy(_)));
    client.gives_back(&holder);
    let counts = answer(client.counts(&kit.lock)).unwrap();
    assert_eq!((counts.used, counts.queued), (2, 0));
    client.granted(&late);
}

/// Field reports 14, 15: the head gives up, and those behind it that fit get in at once.
#[test]
fn a_heavy_head_that_leaves_lets_the_others_in() {
    let kit = Kit::with_capacity(4);
    let client = kit.client();
    client.granted(&kit.weighing(2));
    let heavy = kit.whole();
    client.queued(&heavy);
    let light: Vec<_> = (0..3).map(|_| client.queued(&kit.request()).wake).collect();
    let released = answer(client.release(&kit.lock, &heavy.token));
    assert!(matches!(released, Released::Waiter(Some(_))), "{released:?}");
    assert_eq!(light.iter().map(is_set).collect::<Vec<_>>(), [true, true, false]);
}

/// Field reports 16, 17: a large weight is not starved by small ones.
#[test]
fn a_large_weight_gets_in_after_those_before_it() {
    let kit = Kit::with_capacity(8);
    let client = kit.client();
    let light: Vec<_> = (0..8).map(|_| kit.request()).collect();
    for request in &light {
        client.granted(request);
    }
    let write = kit.whole();
    let place = client.queued(&write);
    for request in &light {
        client.queued(&kit.request());
        assert!(!is_set(&place.wake));
        client.gives_back(request);
    }
    assert!(is_set(&place.wake));
    assert!(answer(client.counts(&kit.lock)).unwrap().whole);
}

/// Rule T6, acceptance SL2, S5, R18: one grant is given back once, by whoever has its token.
#[test]
fn a_grant_is_given_back_once() {
    let kit = Kit::with_capacity(2);
    let (one, two) = (kit.client(), kit.client());
    let (first, second) = (kit.request(), kit.request());
    one.granted(&first);
    one.granted(&second);
    two.gives_back(&first);
    for client in [&one, &two] {
        assert_eq!(answer(client.release(&kit.lock, &first.token)), Released::Unknown);
    }
    assert_eq!(kit.used(), 1);
    one.gives_back(&second);
}

/// Field report 55: four thousand permits are a number; and many holders are found by their tokens.
#[test]
fn thousands_of_permits_and_of_holders() {
    let kit = Kit::with_capacity(4_000);
    let client = kit.client();
    let bulk = kit.weighing(4_000);
    client.granted(&bulk);
    client.gives_back(&bulk);
    let many: Vec<_> = (0..4_000).map(|n| kit.lasting(60_000 + n % 7)).collect();
    for request in &many {
        client.granted(request);
    }
    assert_eq!(kit.used(), 4_000);
    for request in many.iter().rev() {
        client.gives_back(request);
    }
    assert_eq!(kit.used(), 0);
}
